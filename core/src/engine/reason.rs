//! The reason a waiter does not have the lock yet, for the error at the end of its wait. Shortly before that, the store is asked for the holders.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::WeakShared;
use scopeguard::guard;
use serde::Deserialize;
use serde_json::Value;

use super::Engine;
use super::request::{Asked, LockId};
use crate::error::{Code, Error};
use crate::event::Event;
use crate::fence::Token;
use crate::port::{Action, Answer, BoxFuture, HolderView, Instant, Outcome, OwnerId, is_hidden};
use crate::runtime::sync::Mutex;

/// The reason a waiter does not have the lock yet.
#[derive(Clone, Debug, Default)]
pub(crate) enum Reason {
    /// The store has not answered yet.
    #[default]
    Unanswered,
    /// Somebody else has it: the store said so, or it is held in this client.
    Held,
    /// The store refuses, does not answer, or answers too late.
    Trouble(Box<Error>),
}

impl Reason {
    pub(crate) fn trouble(&self) -> Option<&Error> {
        match self {
            Self::Trouble(error) => Some(error),
            Self::Unanswered | Self::Held => None,
        }
    }

    /// The error of a wait that ends now, with these holders.
    pub(crate) fn into_error(self, holders: &[HolderView]) -> Error {
        let error = match self {
            Self::Trouble(error) => return *error,
            Self::Unanswered => Error::new(
                Code::Timeout,
                "the lock was not granted within the wait; the store has not answered yet: wait longer, or look at the store",
            ),
            Self::Held => Error::held(
                "the lock was not granted within the wait; it is held by somebody else: wait longer, or try again later",
            ),
        };
        with_holders(error, holders)
    }
}

/// A grant arrived when nothing was left of it.
pub(crate) fn too_late() -> Error {
    let message = "the store's answer came after the lease had ended, so nothing is held; raise `ttl` or look at the store";
    Error::new(Code::Unavailable, message)
}

/// A value of others that has no end is in the way: a lock that outlives its holder, or no lock at all.
pub(super) fn endless() -> Error {
    let message = "the key holds a value that is not fencelock's and never ends by itself; if it is no lock that somebody holds, delete it, or choose another name or prefix";
    Error::new(Code::Conflict, message)
}

/// The store granted with a token below one that was seen: it has lost its data, and its clock shows less than when that was
/// drawn.
pub(super) fn behind(token: Token, seen: Token) -> Error {
    let message = "the store has lost its data and its clock has stepped back, so its tokens are older than those it gave before; nothing is held: set its clock right, or wait until it has passed them";
    Error::new(Code::Unavailable, message)
        .with("token", token.to_string())
        .with("seen", seen.to_string())
}

/// Shorter waits are not for people to read of, and cost no request more. A wait of a second has become a little shorter by then.
const LEAST_WAIT: Duration = Duration::from_millis(900);
/// The least time before the end of a wait at which the store is asked. If it answers too late, the error says less.
const LATEST_QUESTION: Duration = Duration::from_millis(250);
/// The most, for waits of four seconds and more.
const EARLIEST_QUESTION: Duration = Duration::from_secs(1);

/// A wait so long is worth a warning: its holder may hang, or wait for this one.
const LONG_WAIT: Duration = Duration::from_secs(30);

/// The questions under way: all whose waits end at once share one.
#[derive(Default)]
pub(super) struct Questions(Mutex<BTreeMap<LockId, WeakShared<BoxFuture<'static, Vec<Answer>>>>>);

impl Questions {
    /// Somebody asks no more. The last one to leave has the question forgotten.
    fn left(&self, lock: &LockId) {
        let mut questions = self.0.lock();
        if questions.get(lock).is_some_and(|question| question.upgrade().is_none()) {
            questions.remove(lock);
        }
    }
}

impl Engine {
    /// Completes at the end of a wait of this length, with the holders shortly before, if the store tells. Warns of a wait that is long.
    pub(super) async fn holders_after(
        &self,
        wait: Duration,
        end: Instant,
        lock: &LockId,
        asked: Asked,
    ) -> Vec<HolderView> {
        let mut holders = Vec::new();
        if wait > LONG_WAIT {
            let late = asked.since + LONG_WAIT;
            self.runtime.sleep_until(late).await;
            let until = (late + EARLIEST_QUESTION).min(end);
            let known = self.runtime.until(until, self.who_holds(lock)).await;
            let holder = known.unwrap_or_default().first().map(who);
            let waited = self.runtime.now().since(asked.since);
            self.events.warn(Event::long_wait(lock.as_str(), asked.attempt, waited, holder));
        }
        if end == Instant::FAR {
            std::future::pending::<()>().await;
        }
        if wait >= LEAST_WAIT {
            // Who waits longer leaves a busy store more time for its answer.
            let before = (wait / 4).clamp(LATEST_QUESTION, EARLIEST_QUESTION);
            self.runtime.sleep_until(end - before).await;
            holders = self.runtime.until(end, self.who_holds(lock)).await.unwrap_or_default();
        }
        self.runtime.sleep_until(end).await;
        holders
    }

    async fn who_holds(&self, lock: &LockId) -> Vec<HolderView> {
        // Goes after the question.
        let _asking = guard((), |()| self.questions.left(lock));
        let question = {
            let mut questions = self.questions.0.lock();
            let under_way = questions.get(lock).and_then(WeakShared::upgrade);
            under_way.unwrap_or_else(|| {
                let step = lock.step(OwnerId::draw(&*self.runtime), Action::Read);
                let question = self.store.step(vec![step]).shared();
                questions.extend(question.downgrade().map(|weak| (lock.clone(), weak)));
                question
            })
        };
        match question.await.pop() {
            Some(Ok(Outcome::State(state))) => state.holders,
            // What the store has to say of itself is told by whoever waits for its grant.
            _ => Vec::new(),
        }
    }
}

/// The error of a wait, with who holds: `web pid 411 on node-7`, and for how long.
pub(super) fn with_holders(error: Error, holders: &[HolderView]) -> Error {
    let Some(holder) = holders.first() else { return error };
    let error = error.with("holder", who(holder));
    match holder.held_for {
        Some(held) => error.with("held_for", shown(whole(held))),
        None => error,
    }
}

/// A time for people, up to a millisecond more.
pub(super) fn shown(time: Duration) -> String {
    let millis = time.as_micros().div_ceil(1000) as u64;
    humantime::format_duration(Duration::from_millis(millis)).to_string()
}

/// People read seconds, and of less than one milliseconds.
fn whole(held: Duration) -> Duration {
    let seconds = Duration::from_secs(held.as_secs());
    if seconds.is_zero() { Duration::from_millis(held.as_millis() as u64) } else { seconds }
}

/// The holder in words. What has no end may be no lock at all, but a value that lies where the lock does.
fn who(holder: &HolderView) -> String {
    let name = named(&holder.info);
    let endless = holder.info.is_empty() && holder.left.is_none();
    if endless { format!("{name}; it has no end") } else { name }
}

fn named(info: &str) -> String {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Named {
        Client {
            app: String,
            pid: u32,
            host: String,
            #[serde(default)]
            info: Value,
        },
        /// Where the server knows no more than which of its processes it is.
        Backend { app: String, backend: u32 },
        /// A client of another library, which says no more than a name.
        Other { by: String },
    }
    // Others wrote it: it must not look like more than a name in a log.
    let plain = |text: String| -> String {
        text.chars().take(100).map(|c| if is_hidden(c) { '\u{fffd}' } else { c }).collect()
    };
    match serde_json::from_str(info) {
        Ok(Named::Client { app, pid, host, info }) => {
            let name = format!("{} pid {pid} on {}", plain(app), plain(host));
            match info {
                Value::Null => name,
                Value::String(text) => format!("{name} ({})", plain(text)),
                texts => format!("{name} ({})", plain(texts.to_string())),
            }
        }
        Ok(Named::Backend { app, backend }) => {
            format!("{} by process {backend} of the server", plain(app))
        }
        Ok(Named::Other { by }) => format!("{}, a client that is not fencelock's", plain(by)),
        Err(_) => "a client that is not fencelock's".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Code;
    use crate::port::Mode;

    fn holder(info: &str, held: u64) -> HolderView {
        let held_for = Some(Duration::from_millis(held));
        let (mode, info) = (Mode::Read, info.into());
        HolderView { mode, token: None, left: None, held_for, info, owner: None }
    }

    fn fields(holders: &[HolderView]) -> String {
        with_holders(Error::new(Code::Timeout, "late"), holders).text()
    }

    #[test]
    fn who_holds_is_named() {
        let web = r#"{"app":"web\u202e3","host":"node-7","pid":411,"language":"python"}"#;
        assert_eq!(fields(&[]), "late");
        assert_eq!(
            fields(&[holder(web, 12_345)]),
            "late (held_for: 12s, holder: web\u{fffd}3 pid 411 on node-7)"
        );
        let cart = r#"{"app":"web","host":"node-7","pid":411,"info":"cart \u202e42"}"#;
        assert_eq!(
            fields(&[holder(cart, 20)]),
            "late (held_for: 20ms, holder: web pid 411 on node-7 (cart \u{fffd}42))"
        );
        assert_eq!(
            fields(&[holder(r#"{"app":"web","backend":7}"#, 20)]),
            "late (held_for: 20ms, holder: web by process 7 of the server)"
        );
        assert_eq!(
            fields(&[holder("", 20)]),
            "late (held_for: 20ms, holder: a client that is not fencelock's; it has no end)"
        );
    }
}
