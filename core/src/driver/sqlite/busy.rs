//! Waiting for the file while another connection writes: first awake, then asleep.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use super::fault::Fault;
use crate::port::{Instant, RuntimeHandle};

/// Attempts that follow each other at once. A step holds the file for some 10 µs, an attempt takes 2: most
/// collisions are over by then.
const AT_ONCE: u32 = 12;
/// Attempts after which other tasks of this thread run first.
const AFTER_OTHERS: u32 = AT_ONCE + 12;
const SHORTEST_NAP: Duration = Duration::from_millis(1);
const LONGEST_NAP: Duration = Duration::from_millis(16);

/// How long an operation goes on trying, shared by all its attempts.
pub(super) struct Patience {
    timeout: Duration,
    until: Option<Instant>,
}

impl Patience {
    /// Patience for `timeout`, counted from the first time the file is busy.
    pub(super) fn of(timeout: Duration) -> Self {
        Self { timeout, until: None }
    }

    /// Tries until the file is not busy or patience ends; then the fault is [`Fault::Failed`].
    pub(super) async fn keep<T>(
        &mut self,
        runtime: &RuntimeHandle,
        mut attempt: impl FnMut() -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let mut tries = 0;
        loop {
            let error = match attempt() {
                Err(Fault::Busy(error)) => error,
                other => return other,
            };
            tries += 1;
            if tries <= AT_ONCE {
                std::thread::yield_now();
                continue;
            }
            if tries <= AFTER_OTHERS {
                let_others_run().await;
                continue;
            }
            let now = runtime.now();
            let until = *self.until.get_or_insert(now + self.timeout);
            if now >= until {
                return Err(Fault::Failed(error));
            }
            let wake = now + nap(tries - AFTER_OTHERS, runtime);
            runtime.sleep_until(wake.min(until)).await;
        }
    }
}

/// Twice as long each time, less up to a half, so that those who collided do not meet again.
fn nap(tries: u32, runtime: &RuntimeHandle) -> Duration {
    let mut byte = [0];
    runtime.random(&mut byte);
    let full = (SHORTEST_NAP * (1 << tries.min(5))).min(LONGEST_NAP);
    full * (512 - u32::from(byte[0])) / 512
}

/// Gives the thread to the tasks that are ready to run.
pub(super) async fn let_others_run() {
    let mut asked = false;
    poll_fn(|context| {
        if asked {
            return Poll::Ready(());
        }
        asked = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
