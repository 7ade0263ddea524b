//! A store whose answers come later than the lease they grant lasts, in virtual time: said as what it is, at once to who
//! only tries, and at the end of the wait to who waits.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use fencelock::{Client, Code, Error, EventKind, Stats};
use fencelock_sim::{Chaos, Fault};

use crate::world::{MS, World};

/// Every request takes longer than the lease it asks for.
const SLOW: Duration = Duration::from_millis(60);
const TTL: Duration = Duration::from_millis(50);

/// What the clients of a story tell of trouble.
type Troubles = Arc<Mutex<Vec<String>>>;

/// A client whose every request meets this fault.
async fn client(world: &World, fault: Fault) -> Client {
    telling(world, fault, &Troubles::default()).await
}

async fn telling(world: &World, fault: Fault, troubles: &Troubles) -> Client {
    let (node, troubles) = (world.node.clone(), troubles.clone());
    let store = Chaos::new(world.memory.store(node.clone()), node.clone(), move || fault);
    let note = move |event: &fencelock::Event| {
        if event.kind == EventKind::Trouble {
            let reason = event.reason.as_deref().unwrap_or_default();
            troubles.lock().unwrap().push(reason.to_owned());
        }
    };
    let builder = Client::builder().runtime(node).on_event(note);
    builder.store(store).await.expect("memory connects")
}

/// How long it took, and the error.
async fn fails<T>(
    world: &World,
    work: impl Future<Output = fencelock::Result<T>>,
) -> (Duration, Error) {
    let began = world.now();
    let error = work.await.err().expect("nothing can be held");
    (world.since(began), error)
}

fn assert_says_late(error: &Error) {
    assert_eq!(error.code(), Code::Unavailable, "{error}");
    assert!(error.retryable() && error.message().contains("after the lease had ended"), "{error}");
    assert!(error.message().contains("raise `ttl`"), "{error}");
}

async fn a_try_ends_with_the_first_late_answer(world: &World) {
    let slow = client(world, Fault::Late(SLOW)).await;
    let lock = slow.lock("x").ttl(TTL);
    let (took, error) = fails(world, lock.try_acquire()).await;
    assert_says_late(&error);
    assert_eq!(error.fields()["name"], "x");
    assert!(took <= SLOW + MS, "{took:?}");
    let (took, error) = fails(world, slow.all(["y", "x"]).ttl(TTL).try_acquire()).await;
    assert_says_late(&error);
    assert!(took <= SLOW + MS, "{took:?}");
    let (_, error) = fails(world, slow.read_lock("r").ttl(TTL).try_acquire()).await;
    assert_says_late(&error);
    world.sleep(SLOW * 4).await;
    assert_eq!(slow.stats(), Stats::default());
    let quick = client(world, Fault::None).await;
    let taken = quick.all(["x", "y"]).try_acquire().await.expect("memory answers");
    assert!(taken.is_some(), "what came too late was kept");
}

async fn a_wait_goes_on_and_says_so_at_its_end(world: &World) {
    let troubles = Troubles::default();
    let slow = telling(world, Fault::Late(SLOW), &troubles).await;
    let wait = Duration::from_secs(2);
    let lock = slow.lock("x").ttl(TTL);
    let behind = lock.clone();
    // Whoever stands behind it in the line of the client is told the same.
    let both = futures_util::future::join(
        fails(world, lock.acquire_within(wait)),
        fails(world, behind.acquire_within(wait)),
    );
    let ((took, first), (_, second)) = both.await;
    assert_says_late(&first);
    assert_says_late(&second);
    assert!(took >= wait && took <= wait + MS, "{took:?}");
    assert_eq!(troubles.lock().unwrap().len(), 1, "{troubles:?}");
    let (_, error) = fails(world, slow.all(["y", "x"]).ttl(TTL).acquire_within(wait)).await;
    assert_says_late(&error);
    let (_, error) = fails(world, slow.semaphore("p", 2).ttl(TTL).acquire_within(wait)).await;
    assert_says_late(&error);
}

async fn a_waiter_that_is_served_too_late_says_so(world: &World) {
    let (quick, slow) = (client(world, Fault::None).await, client(world, Fault::Late(SLOW)).await);
    let guard = quick.lock("x").acquire().await.expect("it is free");
    let waiting = slow.lock("x").ttl(TTL).acquire_within(Duration::from_secs(2));
    let frees = async {
        world.sleep(SLOW * 5).await;
        guard.release().await.check().expect("it was held");
    };
    let ((_, error), ()) = futures_util::future::join(fails(world, waiting), frees).await;
    assert_says_late(&error);
}

/// The answer to a request for several never comes, and the store is out of reach for longer than a minute.
async fn several_that_were_not_answered_are_given_back_however_long_it_takes(world: &World) {
    let fault = Arc::new(Mutex::new(Fault::ReplyLost));
    let struck = world.struck(&fault).await;
    let minute = Duration::from_secs(60);
    let (_, error) = fails(world, struck.all(["x", "y"]).ttl(60 * minute).try_acquire()).await;
    assert_eq!(error.code(), Code::Unavailable, "{error}");
    *fault.lock().unwrap() = Fault::RequestLost;
    world.sleep(5 * minute).await;
    *fault.lock().unwrap() = Fault::None;
    world.sleep(Duration::from_secs(3)).await;
    let other = client(world, Fault::None).await;
    let guard = other.all(["x", "y"]).try_acquire().await.expect("memory answers");
    assert!(guard.is_some(), "they are held by nobody");
}

/// A store has a quarter of the wait to say who holds, and no more than a second.
async fn who_holds_is_said_where_the_store_answers_before_the_wait_ends(world: &World) {
    let quick = client(world, Fault::None).await;
    let _guard = quick.lock("x").acquire().await.expect("it is free");
    for (late, wait, is_told) in
        [(200, 1000, true), (300, 1000, false), (900, 4000, true), (1100, 8000, false)]
    {
        let slow = client(world, Fault::Late(late * MS)).await;
        let (took, error) = fails(world, slow.lock("x").acquire_within(wait * MS)).await;
        assert!(error.message().contains("held by somebody else"), "{error}");
        assert_eq!(error.fields().contains_key("holder"), is_told, "{late} ms late: {error}");
        assert!(took >= wait * MS && took <= (wait + 1) * MS, "{took:?}");
    }
}

async fn held_by_somebody_is_said_only_when_the_store_said_so(world: &World) {
    let (quick, slow) = (client(world, Fault::None).await, client(world, Fault::Late(SLOW)).await);
    let (_, error) = fails(world, slow.lock("x").acquire_within(SLOW / 2)).await;
    assert_eq!(error.code(), Code::Timeout, "{error}");
    assert!(error.message().contains("has not answered yet"), "{error}");
    let (_, error) = fails(world, slow.all(["x", "y"]).acquire_within(SLOW / 2)).await;
    assert!(error.message().contains("has not answered yet"), "{error}");
    world.sleep(SLOW * 4).await;
    let _guard = quick.lock("x").acquire().await.expect("it is free");
    let (_, error) = fails(world, slow.lock("x").acquire_within(SLOW * 2)).await;
    assert_eq!(error.code(), Code::Timeout, "{error}");
    assert!(error.message().contains("held by somebody else"), "{error}");
    let (_, error) = fails(world, slow.all(["x", "y"]).acquire_within(SLOW * 4)).await;
    assert!(error.message().contains("held by somebody else"), "{error}");
}

plays! {
    a_try_ends_with_the_first_late_answer,
    a_wait_goes_on_and_says_so_at_its_end,
    a_waiter_that_is_served_too_late_says_so,
    several_that_were_not_answered_are_given_back_however_long_it_takes,
    who_holds_is_said_where_the_store_answers_before_the_wait_ends,
    held_by_somebody_is_said_only_when_the_store_said_so,
}
