//! A hold is lost while another thread gives it back: whoever was told of the loss does not hear from the release that it was held.

use std::sync::Arc;
use std::time::Duration;

use ::shuttle::sync::atomic::{AtomicU64, Ordering};
use ::shuttle::{future, thread};

use super::super::{Engine, Hold, Request, Wait};
use super::{NOW, Still, assert_free, check_pct, check_random, engine, lock_id};
use crate::driver::memory::Memory;
use crate::guard::Guard;
use crate::port::{BoxFuture, Instant, Runtime, RuntimeHandle};
use crate::released::Released;

/// A clock that stands still until it is set. Whoever looks at it may be overtaken by that.
struct Clock {
    now: AtomicU64,
    still: Still,
}

impl Runtime for Clock {
    fn now(&self) -> Instant {
        Instant::from_nanos(self.now.load(Ordering::SeqCst))
    }
    fn wall(&self) -> u64 {
        self.still.wall()
    }
    fn sleep_until(&self, at: Instant) -> BoxFuture<'static, ()> {
        // One that rests is woken by the release.
        if at <= self.now() {
            Box::pin(std::future::ready(()))
        } else {
            Box::pin(std::future::pending())
        }
    }
    fn spawn(&self, task: BoxFuture<'static, ()>) {
        self.still.spawn(task);
    }
    fn random(&self, bytes: &mut [u8]) {
        self.still.random(bytes);
    }
}

/// One thread gives back what `lose` ends in another one; a third waits for the loss.
async fn released_while(
    runtime: RuntimeHandle,
    lose: impl FnOnce(Arc<Engine>, &Arc<Hold>) + Send + 'static,
) {
    let memory = Memory::new();
    let client = engine(&memory, &runtime).await;
    let request = Request::of_a_mutex(0);
    let held = client.acquire(&lock_id(), request, Wait::Forever).await.unwrap().unwrap();
    let guard = Guard::new(client.clone(), "x".into(), held.clone());
    let (core_of_finder, hold) = (client.clone(), held.hold.clone());
    let finder = thread::spawn(move || lose(core_of_finder, &hold));
    let claim = guard.claim();
    let waiter = thread::spawn(move || future::block_on(claim.ended()));
    let released = guard.release().await;
    finder.join().unwrap();
    let was_told = waiter.join().unwrap();
    assert!(!was_told || released == Released::AlreadyLost, "told as lost, then {released:?}");
    client.close(Duration::from_secs(1)).await;
    let last = engine(&memory, &runtime).await;
    assert_free(&last, &lock_id(), &runtime).await;
    // The renewer's task may have found the loss, too, and still be at it. The search ends a wait that is endless.
    while client.load() != (0, 0) {
        future::yield_now().await;
    }
    last.close(Duration::ZERO).await;
}

/// It is found lost, as by the answer to a renewal.
pub(super) fn found() {
    let runtime = Arc::new(Still::default());
    future::block_on(released_while(runtime, |engine, hold| engine.lose(hold, false)));
}

/// Its end comes by the clock.
pub(super) fn by_the_clock() {
    let clock = Clock { now: AtomicU64::new(NOW.as_nanos()), still: Still::default() };
    let clock = Arc::new(clock);
    let runtime: RuntimeHandle = clock.clone();
    let expire = move |_, hold: &Arc<Hold>| {
        clock.now.store(hold.deadline().as_nanos(), Ordering::SeqCst);
    };
    future::block_on(released_while(runtime, expire));
}

#[test]
fn a_release_after_a_loss_does_not_say_that_it_was_held() {
    for world in [found, by_the_clock] {
        check_random(world, 2000);
        check_pct(world, 2000, 3);
    }
}
