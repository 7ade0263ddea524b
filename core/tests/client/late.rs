//! A store whose answers come later than the lease they grant lasts, in virtual time: said as what it is, at once to who
//! only tries, and at the end of the wait to who waits.
#![cfg(feature = "test-hooks")]
#![allow(missing_docs)]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use fencelock::driver::memory::Memory;
use fencelock::port::Runtime;
use fencelock::{Client, Code, Error, EventKind};
use fencelock_sim::{Chaos, Fault};
use fencelock_sim::{Sim, SimNode};

const MS: Duration = Duration::from_millis(1);
/// Every request takes longer than the lease it asks for.
const SLOW: Duration = Duration::from_millis(60);
const TTL: Duration = Duration::from_millis(50);

struct World {
    node: Arc<SimNode>,
    memory: Memory,
    troubles: Arc<Mutex<Vec<String>>>,
}

impl World {
    async fn client(&self, fault: Fault) -> Client {
        let store =
            Chaos::new(self.memory.store(self.node.clone()), self.node.clone(), move || fault);
        let troubles = self.troubles.clone();
        let note = move |event: &fencelock::Event| {
            if event.kind == EventKind::Trouble {
                troubles
                    .lock()
                    .unwrap()
                    .push(event.reason.as_deref().unwrap_or_default().to_owned());
            }
        };
        let builder = Client::builder().runtime(self.node.clone()).on_event(note);
        builder.store(store).await.expect("memory connects")
    }

    async fn sleep(&self, time: Duration) {
        self.node.sleep_until(self.node.now() + time).await;
    }

    /// How long it took, and the error.
    async fn fails<T>(
        &self,
        work: impl Future<Output = fencelock::Result<T>>,
    ) -> (Duration, Error) {
        let began = self.node.now();
        let error = work.await.err().expect("nothing can be held");
        (self.node.now().since(began), error)
    }
}

fn play(story: impl AsyncFnOnce(World)) {
    let sim = Sim::new(7);
    let world = World { node: sim.node(0), memory: Memory::new(), troubles: Arc::default() };
    sim.block_on(story(world)).expect("the world goes on");
}

fn assert_says_late(error: &Error) {
    assert_eq!(error.code(), Code::Unavailable, "{error}");
    assert!(error.retryable() && error.message().contains("after the lease had ended"), "{error}");
    assert!(error.message().contains("raise `ttl`"), "{error}");
}

#[test]
fn a_try_ends_with_the_first_late_answer() {
    play(async |world| {
        let slow = world.client(Fault::Late(SLOW)).await;
        let lock = slow.lock("x").ttl(TTL);
        let (took, error) = world.fails(lock.try_acquire()).await;
        assert_says_late(&error);
        assert_eq!(error.fields()["name"], "x");
        assert!(took <= SLOW + MS, "{took:?}");
        let (took, error) = world.fails(slow.all(["y", "x"]).ttl(TTL).try_acquire()).await;
        assert_says_late(&error);
        assert!(took <= SLOW + MS, "{took:?}");
        let (_, error) = world.fails(slow.read_lock("r").ttl(TTL).try_acquire()).await;
        assert_says_late(&error);
        world.sleep(SLOW * 4).await;
        assert_eq!(slow.stats(), (0, 0));
        let quick = world.client(Fault::None).await;
        let taken = quick.all(["x", "y"]).try_acquire().await.expect("memory answers");
        assert!(taken.is_some(), "what came too late was kept");
    });
}

#[test]
fn a_wait_goes_on_and_says_so_at_its_end() {
    play(async |world| {
        let slow = world.client(Fault::Late(SLOW)).await;
        let wait = Duration::from_secs(2);
        let lock = slow.lock("x").ttl(TTL);
        let behind = lock.clone();
        // Whoever stands behind it in the line of the client is told the same.
        let both = futures_util::future::join(
            world.fails(lock.acquire_within(wait)),
            world.fails(behind.acquire_within(wait)),
        );
        let ((took, first), (_, second)) = both.await;
        assert_says_late(&first);
        assert_says_late(&second);
        assert!(took >= wait && took <= wait + MS, "{took:?}");
        assert_eq!(world.troubles.lock().unwrap().len(), 1, "{:?}", world.troubles);
        let (_, error) = world.fails(slow.all(["y", "x"]).ttl(TTL).acquire_within(wait)).await;
        assert_says_late(&error);
        let (_, error) = world.fails(slow.semaphore("p", 2).ttl(TTL).acquire_within(wait)).await;
        assert_says_late(&error);
    });
}

#[test]
fn a_waiter_that_is_served_too_late_says_so() {
    play(async |world| {
        let (quick, slow) =
            (world.client(Fault::None).await, world.client(Fault::Late(SLOW)).await);
        let guard = quick.lock("x").acquire().await.expect("it is free");
        let waiting = slow.lock("x").ttl(TTL).acquire_within(Duration::from_secs(2));
        let frees = async {
            world.sleep(SLOW * 5).await;
            guard.release().await.check().expect("it was held");
        };
        let ((_, error), ()) = futures_util::future::join(world.fails(waiting), frees).await;
        assert_says_late(&error);
    });
}

/// The answer to a request for several never comes, and the store is out of reach for longer than a minute.
#[test]
fn several_that_were_not_answered_are_given_back_however_long_it_takes() {
    play(async |world| {
        let fault = Arc::new(Mutex::new(Fault::ReplyLost));
        let (store, now) = (world.memory.store(world.node.clone()), fault.clone());
        let store = Chaos::new(store, world.node.clone(), move || *now.lock().unwrap());
        let builder = Client::builder().runtime(world.node.clone());
        let client = builder.store(store).await.expect("memory connects");
        let minute = Duration::from_secs(60);
        let (_, error) = world.fails(client.all(["x", "y"]).ttl(60 * minute).try_acquire()).await;
        assert_eq!(error.code(), Code::Unavailable, "{error}");
        *fault.lock().unwrap() = Fault::RequestLost;
        world.sleep(5 * minute).await;
        *fault.lock().unwrap() = Fault::None;
        world.sleep(Duration::from_secs(3)).await;
        let other = world.client(Fault::None).await;
        let guard = other.all(["x", "y"]).try_acquire().await.expect("memory answers");
        assert!(guard.is_some(), "they are held by nobody");
    });
}

/// A store has a quarter of the wait to say who holds, and no more than a second.
#[test]
fn who_holds_is_said_where_the_store_answers_before_the_wait_ends() {
    play(async |world| {
        let quick = world.client(Fault::None).await;
        let _guard = quick.lock("x").acquire().await.expect("it is free");
        for (late, wait, is_told) in
            [(200, 1000, true), (300, 1000, false), (900, 4000, true), (1100, 8000, false)]
        {
            let slow = world.client(Fault::Late(late * MS)).await;
            let (took, error) = world.fails(slow.lock("x").acquire_within(wait * MS)).await;
            assert!(error.message().contains("held by somebody else"), "{error}");
            assert_eq!(error.fields().contains_key("holder"), is_told, "{late} ms late: {error}");
            assert!(took >= wait * MS && took <= (wait + 1) * MS, "{took:?}");
        }
    });
}

#[test]
fn held_by_somebody_is_said_only_when_the_store_said_so() {
    play(async |world| {
        let (quick, slow) =
            (world.client(Fault::None).await, world.client(Fault::Late(SLOW)).await);
        let (_, error) = world.fails(slow.lock("x").acquire_within(SLOW / 2)).await;
        assert_eq!(error.code(), Code::Timeout, "{error}");
        assert!(error.message().contains("has not answered yet"), "{error}");
        let (_, error) = world.fails(slow.all(["x", "y"]).acquire_within(SLOW / 2)).await;
        assert!(error.message().contains("has not answered yet"), "{error}");
        world.sleep(SLOW * 4).await;
        let _guard = quick.lock("x").acquire().await.expect("it is free");
        let (_, error) = world.fails(slow.lock("x").acquire_within(SLOW * 2)).await;
        assert_eq!(error.code(), Code::Timeout, "{error}");
        assert!(error.message().contains("held by somebody else"), "{error}");
        let (_, error) = world.fails(slow.all(["x", "y"]).acquire_within(SLOW * 4)).await;
        assert!(error.message().contains("held by somebody else"), "{error}");
    });
}
