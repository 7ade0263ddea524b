//! Refusals of requests for a lease that lives with its client's session.

use std::time::Duration;

use crate::error::{Code, Error};
use crate::port::{Action, Failure, Take};

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

/// The store has not answered the heartbeats of late, so that nothing can be promised.
pub(super) fn doubt() -> Failure {
    let message =
        "the store has not answered for half of the session's time; nothing is granted or renewed";
    Failure::refused(Error::new(Code::Unavailable, message))
}
