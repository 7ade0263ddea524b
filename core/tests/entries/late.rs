//! Requests that come in another order than they were decided in.

use fencelock::Token;
use fencelock::port::{Action, Kind, LeaseStore, LockKey, Outcome, OwnerId, Step};

use super::{TTL, World, check};
use crate::world::take;

/// A Take whose Leave came while there was no session, as when a hold is handed over to a waiter that leaves at that moment: nobody would
/// take back what the Take gets.
pub(crate) async fn take_after_its_leave(world: &World) -> Result<(), String> {
    let (_, queue) = world.queue(&world.node);
    let owner = OwnerId::draw(&*world.node);
    let leave = Action::Leave { tombstone: Some(TTL) };
    for action in [leave, take(TTL, Token::default(), true)] {
        let step = Step { lock: LockKey::new("x"), owner, kind: Kind::Mutex, action };
        let answers = queue.step(&[step]).await;
        check(matches!(answers[..], [Ok(Outcome::Gone)]), || format!("{answers:?}"))?;
    }
    let left = world.entries().await;
    check(left.is_empty(), || format!("{left:?}"))
}
