//! The nodes of a quorum, and the knowledge that one client has of them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::holds::QuorumHold;
use super::node::Node;
use super::proposal::Proposal;
use crate::error::{Code, Error};
use crate::port::{Action, Failure, Mode, OwnerId, RuntimeHandle, Step, Take};
use crate::runtime::sync::Mutex;

/// So long a node is always waited for, where `timeout` and lease allow it: servers stumble.
const PATIENCE: Duration = Duration::from_millis(250);

/// The nodes, and what this client knows of them.
pub(super) struct Voters {
    pub(super) nodes: Vec<Arc<Node>>,
    pub(super) runtime: RuntimeHandle,
    pub(super) max_ttl: Duration,
    pub(super) timeout: Duration,
    /// How long the slowest decision of late took, in nanoseconds; 0 before the first.
    pub(super) slowest: AtomicU64,
    pub(super) proposal: Mutex<Proposal>,
    pub(super) holds: Mutex<BTreeMap<OwnerId, QuorumHold>>,
}

impl Voters {
    pub(super) fn majority(&self) -> usize {
        majority_of(self.nodes.len())
    }

    /// How long the slower nodes are waited for, by somebody who asks for a lease of `ttl`. A way that is long grants no
    /// lock to who is too impatient for it, so what ran out of patience counts as slow, too.
    pub(super) fn patience(&self, ttl: Duration) -> Duration {
        let slowest = self.slowest.load(Ordering::Relaxed);
        let grown = if slowest == 0 { self.timeout } else { Duration::from_nanos(slowest) * 4 };
        grown.max(PATIENCE).min(self.timeout).min(ttl / 4)
    }

    /// A decision took so long.
    pub(super) fn took(&self, time: Duration) {
        let time = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let slowest = self.slowest.load(Ordering::Relaxed);
        self.slowest.store((slowest - slowest / 8).max(time).max(1), Ordering::Relaxed);
    }

    /// Why a step cannot be carried out on a quorum, if it cannot.
    pub(super) fn refusal(&self, step: &Step) -> Option<Failure> {
        let ttl = match &step.action {
            Action::Take(take) if take.mode == Mode::Permit => {
                return Some(Failure::refused(no_permits()));
            }
            Action::Take(Take { ttl, .. }) | Action::Renew { ttl } | Action::Refresh { ttl } => {
                *ttl
            }
            _ => return None,
        };
        (ttl > self.max_ttl).then(|| {
            let most = self.max_ttl.as_secs_f64();
            let message = format!(
                "on a quorum a lease is at most `max_ttl` long, {most} s; ask for less, or set `max_ttl` for all clients"
            );
            Failure::refused(Error::invalid("ttl", message))
        })
    }
}

/// So many nodes decide.
pub(super) fn majority_of(nodes: usize) -> usize {
    nodes / 2 + 1
}

/// Permits are counted by each node for itself: five nodes with two permits each are ten, a majority is three of them.
fn no_permits() -> Error {
    let message = "a quorum has no permits: each node would count them for itself; use one store for a semaphore";
    Error::new(Code::Unsupported, message)
}
