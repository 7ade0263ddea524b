//! The state of a lock on the store, for people who look.

use std::sync::Arc;

use super::order::{Want, to_watch};
use super::own::TOKENS;
use super::session::Shared;
use crate::fence::Token;
use crate::port::{
    EntryView, Failure, HolderView, LockKey, LockState, QueueStore, Standing, WaiterView,
};

impl<S: QueueStore> Shared<S> {
    pub(super) async fn read(self: &Arc<Self>, lock: &LockKey) -> Result<LockState, Failure> {
        let all = self.store.show(lock).await.map_err(Failure::refused)?;
        Ok(state(all))
    }
}

/// The holders and the waiters, by the same rule by which each of them knows what it is.
fn state(all: Vec<EntryView>) -> LockState {
    let kind = all.first().map(|first| first.standing.mode.kind()).unwrap_or_default();
    let mut state = LockState { kind, ..LockState::default() };
    let mut before: Vec<Standing> = Vec::new();
    for EntryView { standing, owner, fence, limit, age, left, info } in all {
        let mode = standing.mode;
        let holds = to_watch(Want { mode, limit }, &before).is_empty();
        let token = fence.map(|fence| Token::new(fence * u64::from(TOKENS)));
        before.push(standing);
        if holds {
            state.last = state.last.max(token.unwrap_or_default());
        }
        if holds {
            state.holders.push(HolderView { mode, token, left, held_for: None, info, owner });
        } else if mode.kind() == kind {
            state.waiters.push(WaiterView { mode, info, waiting_for: age });
        }
    }
    state
}
