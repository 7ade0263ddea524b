//! Actors between two cases: a language takes longer to start than most cases last, so who has played one to its end plays
//! the next one with a new client.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::player::Player;

/// How long an actor may take to leave.
pub(super) const LEAVING: Duration = Duration::from_secs(5);

/// Those of one column.
#[derive(Clone, Default)]
pub struct Ready(Arc<Mutex<Vec<Player>>>);

impl Ready {
    fn all(&self) -> std::sync::MutexGuard<'_, Vec<Player>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One that has nothing to do.
    pub(super) fn take(&self) -> Option<Player> {
        self.all().pop()
    }

    /// One that has closed its client.
    pub(super) fn put(&self, player: Player) {
        self.all().push(player);
    }

    /// Ends the input of all; what went wrong with one that did not leave in good order.
    pub(super) async fn leave(&self, slack: Duration) -> Result<(), String> {
        let players = std::mem::take(&mut *self.all());
        let end = Instant::now() + LEAVING + slack;
        // All at once: the first look ends each one's input.
        loop {
            let left = players.iter().map(Player::has_left).collect::<Vec<_>>();
            if left.into_iter().try_fold(true, |all, left| left.map(|left| all && left))? {
                break;
            }
            if Instant::now() >= end {
                return Err(format!("an actor that was done did not leave within {LEAVING:?}"));
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        players.iter().for_each(Player::left);
        players.iter().find_map(Player::complaint).map_or(Ok(()), Err)
    }
}

impl fmt::Debug for Ready {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Ready").field(&self.all().len()).finish()
    }
}
