//! Connections of a client that nobody uses at the moment. They are closed when they lay idle for long: a server has few, and other programs
//! need them too. One that is full is asked again.

use std::future::Future;
use std::time::Duration;

use super::fault::is_full;
use crate::error::Result;
use crate::port::backoff::Backoff;
use crate::port::{Instant, RuntimeHandle};

/// After so long an idle connection is closed.
pub(in crate::driver) const REST: Duration = Duration::from_secs(20);

/// The connections of a client that nobody uses at the moment; the one that was used last is the last.
pub(in crate::driver) struct Idle<T> {
    all: Vec<(T, Instant)>,
    /// A task closes those that lie idle for long.
    is_watched: bool,
}

impl<T> Default for Idle<T> {
    fn default() -> Self {
        Self { all: Vec::new(), is_watched: false }
    }
}

impl<T> Idle<T> {
    /// Keeps one. Answers whether a task is to begin that [closes](close_old) them.
    pub(in crate::driver) fn push(&mut self, connection: T, now: Instant) -> bool {
        self.all.push((connection, now));
        !std::mem::replace(&mut self.is_watched, true)
    }

    /// The one that was used last, and when that was.
    pub(in crate::driver) fn pop(&mut self) -> Option<(T, Instant)> {
        self.all.pop()
    }

    pub(in crate::driver) fn take_all(&mut self) -> Vec<(T, Instant)> {
        std::mem::take(&mut self.all)
    }

    /// Takes the connections that lay idle for long. Answers also whether the task goes on.
    pub(in crate::driver) fn take_old(&mut self, now: Instant) -> (Vec<T>, bool) {
        let old = self.all.iter().take_while(|(_, since)| now.since(*since) >= REST).count();
        let old = self.all.drain(..old).map(|(connection, _)| connection).collect();
        self.is_watched = !self.all.is_empty();
        (old, self.is_watched)
    }
}

/// Closes connections that lie idle for long, for as long as `take_old` answers that there are more.
pub(in crate::driver) async fn close_old<T>(
    runtime: RuntimeHandle,
    mut take_old: impl FnMut(Instant) -> Option<(Vec<T>, bool)>,
) {
    loop {
        runtime.sleep_until(runtime.now() + REST).await;
        let Some((old, goes_on)) = take_old(runtime.now()) else { return };
        drop(old);
        if !goes_on {
            return;
        }
    }
}

/// The longest pause before it is asked again: each refusal costs the server a thread or a process.
const PAUSE: Duration = Duration::from_secs(1);

/// The result of `open`, which is begun anew while the server is full, for as long as the limit allows. In a pause no connection is held, and one
/// of the client's own may be given back.
pub(in crate::driver) async fn when_there_is_room<T, F: Future<Output = Result<T>>>(
    runtime: &RuntimeHandle,
    limit: Duration,
    mut open: impl FnMut() -> F,
) -> Result<T> {
    let (end, mut backoff) = (runtime.now() + limit, Backoff::new());
    loop {
        let opened = open().await;
        let again = runtime.now() + Backoff::spread(backoff.next_up_to(PAUSE), runtime);
        // The reason is known before whoever waits is told that it took too long.
        if !opened.as_ref().is_err_and(is_full) || again + limit / 8 >= end {
            return opened;
        }
        runtime.sleep_until(again).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_go_when_they_are_old() {
        let at = |seconds: u64| Instant::from_nanos(seconds * 1_000_000_000);
        let mut idle = Idle::default();
        assert!(idle.push('a', at(1)));
        assert!(!idle.push('b', at(2)), "one task is enough");
        assert!(!idle.push('c', at(10)));
        assert_eq!(idle.take_old(at(20)), (vec![], true));
        assert_eq!(idle.take_old(at(22)), (vec!['a', 'b'], true));
        assert_eq!((idle.pop(), idle.pop()), (Some(('c', at(10))), None));
        assert_eq!(idle.take_old(at(90)), (vec![], false));
        assert!(idle.push('d', at(91)));
    }
}
