//! The steps that the renewer sends: those that are due, as one batch.

use std::sync::Arc;
use std::time::Duration;

use super::entries::{Slot, Stage};
use super::hold::Hold;
use super::next_look::{LONGEST_REST, SHORTEST_REST, aligned, ticket_rest};
use super::pending_attempt::Progress;
use super::registry::Registry;
use super::renewer::Renewer;
use crate::port::{Action, OwnerId, Step};

/// The most steps that go out at once, as far as leases are long enough to wait: what a store answers in some 10 ms, so that
/// whatever else this client asks for need not wait longer, and that a hundred thousand leases do not need room for as many
/// requests and answers.
const BATCH: usize = 1200;
/// A batch that large is waited for before the next one goes out; but not longer than this, since it may be one of many
/// stores that does not answer.
const PACE: Duration = Duration::from_millis(100);

/// The work that the renewer's task has to do now.
#[derive(Default)]
pub(crate) struct Work {
    /// One batch.
    pub steps: Vec<Step>,
    /// The owner of each step, and the slot of its entry.
    pub asked: Vec<BatchEntry>,
    /// Holds whose claim ended by the clock.
    pub lost: Vec<Arc<Hold>>,
    /// Whether more may be due: [`Renewer::go_on`] once this is answered.
    pub more: bool,
}

/// The owner of a step of a batch, and the slot of its entry.
#[derive(Clone, Copy)]
pub(crate) struct BatchEntry {
    pub(super) owner: OwnerId,
    pub(super) slot: Slot,
}

impl Renewer {
    /// Takes what is due.
    pub(crate) fn collect(&self) -> Work {
        let now = self.runtime.now();
        let mut state = self.state.lock();
        let Registry { entries, due_queue, .. } = &mut *state;
        let mut work = Work::default();
        loop {
            let full = work.steps.len() >= BATCH && !work.more;
            if full && due_queue.long_are_due(now) {
                due_queue.paced_until = now + PACE;
                work.more = true;
            }
            let Some(slot) = due_queue.take(entries, now) else { break };
            let (next, step) = match &mut entries[slot].stage {
                Stage::Held(hold) if hold.is_over() => continue,
                Stage::Held(hold) if now >= hold.deadline() => {
                    work.lost.push(hold.clone());
                    continue;
                }
                Stage::Held(hold) if hold.renew && now < hold.cap() => {
                    // Unanswered by then, it is sent again: renewing twice changes nothing.
                    let again = (hold.deadline().since(now) / 6).clamp(SHORTEST_REST, LONGEST_REST);
                    hold.asks(now + hold.ttl());
                    let step = hold.lock.step(hold.owner, Action::Renew { ttl: hold.ttl() });
                    ((now + again).min(hold.deadline()), Some(step))
                }
                Stage::Held(hold) => (hold.deadline(), None),
                Stage::Pending(pending) => match &pending.progress {
                    Progress::Waiting(_) => {
                        // If it finds the ticket served, the lease is this long from then on.
                        let ttl = pending.request.ttl;
                        pending.asked = pending.asked.max(now + ttl);
                        let step = pending.lock.step(pending.owner, Action::Refresh { ttl });
                        (aligned(now, ticket_rest(&pending.request)), Some(step))
                    }
                    Progress::Asked { .. } | Progress::Gone => continue,
                },
                Stage::Free(_) => continue,
            };
            if let Some(step) = step {
                work.asked.push(BatchEntry { owner: step.owner, slot });
                work.steps.push(step);
            }
            due_queue.set(entries, slot, next);
        }
        work
    }

    /// A full batch is answered: the next one may go out.
    pub(crate) fn go_on(&self) {
        let mut state = self.state.lock();
        (state.due_queue.paced_until, state.due_queue.rests_until) = Default::default();
        state.due_queue.wake_task();
    }
}
