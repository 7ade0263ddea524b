//! Checks the store's own record of changes: tokens rise, the order is kept, and waiters are served.

use fencelock::Token;

use super::book::Book;
use super::{Checker, Rule};
use crate::server::{Change, Fact};

impl Checker {
    /// Reads what has happened on the store since the last time.
    pub(super) fn read_facts(&self, book: &mut Book) {
        if self.stores.vote() {
            // The nodes of a quorum have no queues, and tokens of their own.
            return;
        }
        let seen = book.facts_read;
        let news: Vec<Fact> = self.stores.first().store(|store| store.facts()[seen..].to_vec());
        book.facts_read += news.len();
        for fact in news {
            self.judge(book, &fact);
        }
    }

    fn judge(&self, book: &mut Book, fact: &Fact) {
        let Some(lock) = book.locks.iter().position(|lock| lock.key.as_ref() == Some(&fact.lock))
        else {
            return;
        };
        match &fact.change {
            Change::Granted { token, queued, passed, dead } => {
                book.figures.hand_overs += u64::from(*queued);
                if *dead {
                    book.violated(
                        fact.at,
                        Rule::DeadGrantee,
                        format!("{:?} of lock {lock}", fact.owner),
                    );
                }
                if *passed > 0 && self.rules.fair {
                    let detail = format!("{:?} of lock {lock} went past {passed}", fact.owner);
                    book.violated(fact.at, Rule::Unfair, detail);
                }
                let newest = book.locks[lock].granted;
                if *token <= newest && !self.rules.forgets_tokens {
                    let detail = format!("lock {lock} was granted {token} after {newest}");
                    book.violated(fact.at, Rule::TokenFell, detail);
                }
                book.locks[lock].granted = Token::max(*token, newest);
                book.locks[lock].grants += 1;
            }
            Change::Unserved if self.rules.fair => {
                book.violated(fact.at, Rule::Unserved, format!("{:?} of lock {lock}", fact.owner));
            }
            Change::Ended => {
                let of = self.stores.first().store(|store| store.client_of(fact.owner).cloned());
                let client = book.clients.iter_mut().find(|one| of.as_ref() == Some(&one.channel));
                if let Some(client) = client {
                    client.ended[lock] = fact.at;
                }
            }
            Change::Queued { .. } | Change::Dropped | Change::Unserved => {}
        }
    }
}
