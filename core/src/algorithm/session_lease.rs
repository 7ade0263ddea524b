//! Answers about a lease that lives with its client's session.

use std::time::Duration;

use crate::error::{Code, Error};
use crate::fence::Token;
use crate::port::{Action, Failure, Outcome, Take};

/// Why a step is refused that asks for a vote, or for a longer lease than the session's.
pub(super) fn refusal(action: &Action, most: Duration) -> Option<Failure> {
    if let Action::Take(Take { vote: Some(_), .. }) = action {
        let message = "a store with sessions is no node of a quorum; use stores with leases";
        return Some(Failure::refused(Error::new(Code::Unsupported, message)));
    }
    let (Action::Take(Take { ttl, .. }) | Action::Renew { ttl } | Action::Refresh { ttl }) = action
    else {
        return None;
    };
    (*ttl > most).then(|| {
        let most = most.as_secs_f64();
        let message = format!(
            "on this store a lease is at most as long as the client's session, {most} s; ask for less, or connect with a longer one"
        );
        Failure::refused(Error::invalid("ttl", message))
    })
}

/// The answer to a step that waits behind so many others, as far as is known.
pub(super) fn queued(ahead: usize) -> Outcome {
    let ahead = u32::try_from(ahead).unwrap_or(u32::MAX);
    Outcome::Queued { last: Token::default(), left: None, ahead, foreign: false }
}

/// The answer to a Free or a Leave that has found something or not.
pub(super) fn removed(found: bool) -> Outcome {
    if found { Outcome::Freed } else { Outcome::Gone }
}

/// The store has not answered the heartbeats of late, so that nothing can be promised.
pub(super) fn doubt() -> Failure {
    let message =
        "the store has not answered for half of the session's time; nothing is granted or renewed";
    Failure::refused(Error::new(Code::Unavailable, message))
}
