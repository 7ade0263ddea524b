//! Waiting for the file while another connection writes: first awake, then asleep.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use super::fault::Fault;
use super::writer_queue::Manners;
use crate::port::{Instant, RuntimeHandle};

/// Attempts that follow each other at once: for some 100 µs, many times as long as a step holds the file.
const BURST: u32 = 16;
/// The same after a nap. A hundred processes that tried for long each time would keep slow processors from whoever has the file.
const BURST_AFTER_NAP: u32 = 4;
/// From this burst on, turns are not waited for.
const PUSHY: u32 = 4;
const SHORTEST_NAP: Duration = Duration::from_millis(1);
const LONGEST_NAP: Duration = Duration::from_millis(64);

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
        mut attempt: impl FnMut(Manners) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let mut manners = Manners::Brisk;
        let mut bursts = 0;
        loop {
            let mut busy = None;
            let attempts = if bursts < 2 { BURST } else { BURST_AFTER_NAP };
            for _ in 0..attempts {
                match attempt(manners) {
                    Err(Fault::Busy(error)) => busy = Some(error),
                    other => return other,
                }
                manners = if bursts < PUSHY { Manners::Patient } else { Manners::Pushy };
                // Whoever has the file may be waiting for this processor.
                std::thread::yield_now();
            }
            bursts += 1;
            if bursts == 1 {
                let_others_run().await;
                continue;
            }
            let now = runtime.now();
            let until = *self.until.get_or_insert(now + self.timeout);
            if let Some(error) = busy.filter(|_| now >= until) {
                return Err(Fault::Failed(error));
            }
            runtime.sleep_until(until.min(now + nap(bursts - 2, runtime))).await;
        }
    }
}

/// Twice as long each time, less up to a half, so that those who collided do not meet again.
fn nap(before: u32, runtime: &RuntimeHandle) -> Duration {
    let mut byte = [0];
    runtime.random(&mut byte);
    let full = (SHORTEST_NAP * (1 << before.min(6))).min(LONGEST_NAP);
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
