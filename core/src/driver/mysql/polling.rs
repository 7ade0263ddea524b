//! These servers wake nobody. A client that waits reads what is told at its rows, at first often, then less often: that takes no connection
//! of its own, and a server that is full, another user or a proxy changes nothing.

use std::sync::Weak;
use std::time::Duration;

use super::link::Link;
use super::live::Statement;
use super::{statement, told};
use crate::driver::sql::foreign::lock_of_row;
use crate::port::LockKey;
use crate::port::backoff::Backoff;

/// The longest pause between two looks of the one who is next, and of any.
const LONGEST_OF_NEXT: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_millis(250);

impl Link {
    /// A row that was read in this version is about to be written, and so many wait there before the first of ours, or none of ours waits.
    pub(super) fn expect(&self, lock: &LockKey, version: u64, ahead: Option<usize>) {
        let mut state = self.state.lock();
        let is_new = state.heard.expect(lock, version, ahead, self.runtime.now());
        if is_new {
            state.pause = Backoff::new();
        }
        if ahead.is_none() || state.polls || state.closed {
            return;
        }
        state.polls = true;
        drop(state);
        self.runtime.spawn(Box::pin(poll(self.weak.clone())));
    }

    /// Tells this client what is new of what a row says.
    pub(super) fn hear(&self, lock: &LockKey, version: u64, told: &[told::Told]) {
        let mut state = self.state.lock();
        let notices = state.heard.read(lock, version, told, &self.channel);
        drop(state);
        self.tell_self(notices);
    }

    /// Reads what is told where one of ours waits. A row that cannot be read now is read at the next look.
    async fn read_told(&self) {
        let (locks, _) = self.state.lock().heard.waits_at(self.runtime.now());
        if locks.is_empty() {
            return;
        }
        let asked = Statement::Text(statement::told(&self.tables, &locks, &self.channel));
        let Ok(answered) = self.ask(asked, false).await else { return };
        for row in answered.rows() {
            let (name, version, text, path): (Vec<u8>, u64, Option<String>, Option<String>) =
                match mysql_async::from_row_opt(row) {
                    Ok(row) => row,
                    Err(_) => continue,
                };
            let Ok(name) = String::from_utf8(name) else { continue };
            let lock = lock_of_row(&name);
            if let Some(ahead) = path.as_deref().and_then(place) {
                let mut state = self.state.lock();
                // A queue that moves may move on soon.
                if state.heard.moves(&lock, ahead) {
                    state.pause = Backoff::new();
                }
            }
            // One that cannot be read is refused by the steps on its lock.
            let told = told::read(text.as_deref()).unwrap_or_default();
            self.hear(&lock, version, &told);
        }
    }

    /// How long until the next look; `None` if none of ours waits, and nobody polls from then on.
    fn next_pause(&self) -> Option<Duration> {
        let mut state = self.state.lock();
        let (locks, ahead) = state.heard.waits_at(self.runtime.now());
        if locks.is_empty() || state.closed {
            state.polls = false;
            return None;
        }
        // With each one before it, its turn is further away.
        let turns = u32::try_from(ahead).unwrap_or(u32::MAX).saturating_add(1);
        let pause = state.pause.next_up_to(LONGEST_OF_NEXT).saturating_mul(turns);
        Some(Backoff::spread(pause.min(LONGEST), &self.runtime))
    }
}

/// The number in a path such as `"$.waiters[3].channel"`.
fn place(path: &str) -> Option<usize> {
    path.split_once('[')?.1.split_once(']')?.0.parse().ok()
}

/// Looks for as long as one of ours waits.
async fn poll(weak: Weak<Link>) {
    while let Some(link) = weak.upgrade() {
        let Some(pause) = link.next_pause() else { return };
        let runtime = link.runtime.clone();
        // A client that nobody uses any more ends while this sleeps.
        drop(link);
        runtime.sleep_until(runtime.now() + pause).await;
        let Some(link) = weak.upgrade() else { return };
        link.read_told().await;
    }
}
