//! How holds and waits end where the store is in trouble, and what is told of it.

use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};

use fencelock::{Client, Code, Event, EventKind, Released};
use fencelock_sim::{Chaos, Fault};
use futures_util::FutureExt;
use futures_util::future::join;

use crate::world::{MS, World};

/// A client whose store fails as it is told to, and what it tells.
struct Rig {
    client: Client,
    fault: Arc<Mutex<Fault>>,
    told: Arc<Mutex<Vec<Event>>>,
}

impl Rig {
    async fn of(world: &World) -> Self {
        let runtime = world.node.clone();
        let fault = Arc::new(Mutex::new(Fault::None));
        let (chosen, told) = (fault.clone(), Arc::new(Mutex::new(Vec::new())));
        let choose = move || *chosen.lock().unwrap();
        let store = Chaos::new(world.memory.store(runtime.clone()), runtime.clone(), choose);
        let events = told.clone();
        let observer = move |event: &Event| events.lock().unwrap().push(event.clone());
        let builder = Client::builder().runtime(runtime).on_event(observer);
        Self { client: builder.store(store).await.expect("memory connects"), fault, told }
    }

    fn meets(&self, fault: Fault) {
        *self.fault.lock().unwrap() = fault;
    }

    fn kinds(&self) -> Vec<EventKind> {
        self.told.lock().unwrap().iter().map(|event| event.kind).collect()
    }
}

async fn waiters(client: &Client) -> usize {
    client.lock("x").inspect().await.unwrap().waiters.len()
}

/// A Free is repeated until the longest lease that was ever asked for has ended, not the last one.
async fn an_unconfirmed_free_outlasts_a_shorter_extension(world: &World) {
    let (one, two) = (Rig::of(world).await, Rig::of(world).await);
    let guard = one.client.lock("x").ttl(20_000 * MS).acquire().await.unwrap();
    guard.extend(50 * MS).await.unwrap();
    one.meets(Fault::Refused);
    assert_eq!(guard.release().await, Released::Unconfirmed);
    world.sleep(300 * MS).await;
    one.meets(Fault::None);
    let next = two.client.lock("x").acquire_within(3000 * MS).await;
    next.expect("the Free came through").release().await.check().unwrap();
}

async fn an_extension_that_failed_changes_nothing(world: &World) {
    let rig = Rig::of(world).await;
    let guard = rig.client.lock("x").ttl(600 * MS).acquire().await.unwrap();
    rig.meets(Fault::Refused);
    assert_eq!(guard.extend(20_000 * MS).await.unwrap_err().code(), Code::Unavailable);
    rig.meets(Fault::None);
    let renewed = async {
        while !rig.kinds().contains(&EventKind::Renewed) {
            world.sleep(5 * MS).await;
        }
    };
    world.within(2000 * MS, renewed).await.expect("the renewer goes on");
    let state = rig.client.lock("x").inspect().await.unwrap();
    assert!(state.holders[0].left.unwrap() <= 600 * MS, "{state:?}");
}

/// A grant nobody looked at before its end: it is taken back, and no guard was lost.
async fn a_grant_that_was_never_claimed_is_taken_back(world: &World) {
    let (one, two) = (Rig::of(world).await, Rig::of(world).await);
    let guard = one.client.lock("x").acquire().await.unwrap();
    let mut waiter = two.client.lock("x").ttl(2500 * MS).acquire();
    assert!(waiter.poll_unpin(&mut Context::from_waker(Waker::noop())).is_pending());
    assert_eq!(waiters(&one.client).await, 1);
    guard.release().await.check().unwrap();
    // The store goes on renewing what the client cannot know of.
    two.meets(Fault::ReplyLost);
    let over = async {
        while two.client.stats().entries > 0 {
            world.sleep(5 * MS).await;
        }
    };
    world.within(4000 * MS, over).await.expect("the claim ends by the clock");
    two.meets(Fault::None);
    let guard =
        world.within(700 * MS, waiter).await.expect("nothing of the old grant is left").unwrap();
    assert!(guard.is_held());
    assert_eq!(two.kinds(), [EventKind::Waiting, EventKind::Granted]);
}

/// A holder whose time is over does not keep the others waiting for the rest of its lease.
async fn a_hold_that_max_hold_ends_is_freed(world: &World) {
    let (one, two) = (Rig::of(world).await, Rig::of(world).await);
    let guard = one.client.lock("x").max_hold(200 * MS).acquire().await.unwrap();
    let next = two.client.lock("x").acquire_within(2000 * MS).await.expect("it is free by then");
    assert!(!guard.is_held());
    assert_eq!(guard.release().await, Released::AlreadyLost);
    assert!(next.is_held());
}

/// A lock that is passed on inside its client is given out like any other.
async fn every_grant_is_told_however_it_came(world: &World) {
    use EventKind::{Granted, Released, Waiting};
    let rig = Rig::of(world).await;
    let guard = rig.client.lock("x").acquire().await.unwrap();
    let next = world.begin(rig.client.lock("x").acquire());
    while !rig.kinds().contains(&Waiting) {
        world.sleep(MS).await;
    }
    guard.release().await.check().unwrap();
    next.await.unwrap().unwrap().release().await.check().unwrap();
    assert_eq!(rig.kinds(), [Granted, Waiting, Released, Granted, Released]);
}

async fn whoever_waits_is_told_once_and_a_renewal_each_time(world: &World) {
    let (one, two) = (Rig::of(world).await, Rig::of(world).await);
    let guard = one.client.lock("x").ttl(300 * MS).acquire().await.unwrap();
    let error = two.client.lock("x").ttl(100 * MS).acquire_within(400 * MS).await.unwrap_err();
    assert_eq!((error.code(), two.kinds()), (Code::Timeout, vec![EventKind::Waiting]));
    guard.release().await.check().unwrap();
    let kinds = one.kinds();
    assert!(kinds.len() >= 4, "{kinds:?}");
    assert_eq!((kinds[0], kinds[kinds.len() - 1]), (EventKind::Granted, EventKind::Released));
    assert!(kinds[1..kinds.len() - 1].iter().all(|kind| *kind == EventKind::Renewed), "{kinds:?}");
}

/// An acquire that waits goes on asking a store that refuses, but says so, once; also to those behind it in line.
async fn a_store_that_refuses_is_told_to_all_who_wait(world: &World) {
    let rig = Rig::of(world).await;
    rig.meets(Fault::Refused);
    let lock = rig.client.lock("x");
    let leader = world.begin(lock.acquire_within(1500 * MS));
    world.sleep(100 * MS).await;
    let behind = lock.acquire_within(400 * MS).await.unwrap_err();
    assert_eq!(behind.code(), Code::Unavailable, "{behind}");
    assert_eq!(rig.kinds(), [EventKind::Trouble, EventKind::Waiting]);
    let trouble = rig.told.lock().unwrap()[0].reason.clone().unwrap();
    assert!(trouble.contains("failed on purpose"), "{trouble}");
    rig.meets(Fault::None);
    let guard = leader.await.unwrap().expect("the store is back");
    assert_eq!(guard.release().await, Released::Released);
    // What was wrong then is nobody's reason any more.
    let other = lock.clone().ttl(5000 * MS).acquire().await.unwrap();
    let late = lock.acquire_within(50 * MS).await.unwrap_err();
    assert_eq!(late.code(), Code::Timeout, "{late}");
    drop(other);
}

/// An acquire that waits for half a minute names the holder; a hold that is lost says for how long it was held, and why it ended.
async fn a_long_wait_and_a_loss_say_what_an_operator_asks(world: &World) {
    let (one, two) = (Rig::of(world).await, Rig::of(world).await);
    let guard = one.client.lock("x").max_hold(40_000 * MS).acquire().await.unwrap();
    let waiting = world.begin(two.client.lock("x").acquire());
    world.sleep(25_000 * MS).await;
    assert_eq!(two.kinds(), [EventKind::Waiting]);
    let next = waiting.await.unwrap().expect("`max_hold` ends the first");
    assert_eq!(two.kinds(), [EventKind::Waiting, EventKind::LongWait, EventKind::Granted]);
    let told = two.told.lock().unwrap().clone();
    assert!(told.iter().all(|event| event.attempt == Some(1)), "{told:?}");
    let holder = told[1].holder.as_deref().unwrap();
    assert!(holder.contains(&format!("pid {}", std::process::id())), "{holder}");
    assert!((30_000 * MS..32_000 * MS).contains(&told[1].waited.unwrap()), "{told:?}");
    assert!(told[2].waited.unwrap() > 39_000 * MS && told[2].at > told[1].at, "{told:?}");
    assert!(!guard.is_held());
    let lost = one.told.lock().unwrap().iter().find(|e| e.kind == EventKind::Lost).cloned();
    let lost = lost.expect("it was lost");
    assert_eq!(lost.reason.as_deref(), Some("`max_hold` is over"));
    assert!(lost.held.unwrap() >= 39_000 * MS, "{lost:?}");
    drop(next);
}

/// A loss that only the release finds is told as well: not everybody reads its answer.
async fn a_loss_that_the_release_finds_is_told(world: &World) {
    let (one, two) = (Rig::of(world).await, Rig::of(world).await);
    let guard = one.client.lock("x").acquire().await.unwrap();
    two.client.break_lock("x", "a test").await.unwrap();
    assert_eq!(guard.release().await, Released::AlreadyLost);
    assert_eq!(one.kinds(), [EventKind::Granted, EventKind::Released, EventKind::Lost]);
}

/// A renewal that comes through when its lease has nearly ended is a warning; the next one is an ordinary one.
async fn a_renewal_that_comes_late_is_told(world: &World) {
    let rig = Rig::of(world).await;
    let guard = rig.client.lock("x").ttl(9000 * MS).acquire().await.unwrap();
    rig.meets(Fault::Refused);
    world.sleep(8000 * MS).await;
    rig.meets(Fault::None);
    world.sleep(4000 * MS).await;
    let told = rig.told.lock().unwrap().clone();
    let [_, late, next, ..] = &told[..] else { panic!("{told:?}") };
    assert_eq!((late.kind, next.kind), (EventKind::LateRenewal, EventKind::Renewed));
    assert!(late.reason.as_deref().unwrap().ends_with("ms of the lease were left"));
    assert!(guard.is_held());
}

/// U26: a store that answers slowly is asked once in its answer's time, not once more each second.
async fn u26_a_renewal_that_is_under_way_is_not_sent_again(world: &World) {
    let rig = Rig::of(world).await;
    let guard = rig.client.lock("x").ttl(9000 * MS).acquire().await.unwrap();
    rig.meets(Fault::Late(2000 * MS));
    world.sleep(21_000 * MS).await;
    assert!(guard.is_held());
    // One takes two seconds, and the next one is due up to three seconds later.
    let renewals = rig.told.lock().unwrap().len() - 1;
    assert!((4..=6).contains(&renewals), "{renewals} renewals");
}

async fn a_look_leaves_nothing_behind(world: &World) {
    let rig = Rig::of(world).await;
    rig.client.lock("x").inspect().await.unwrap();
    assert_eq!(rig.client.names("").await.unwrap(), Vec::<String>::new());
}

/// U21: a try whose request met a connection that had ended is made once more, and finds what the first one took given back.
async fn u21_a_try_over_a_connection_that_ended_is_repeated_once(world: &World) {
    for fault in [Fault::RequestLost, Fault::ReplyLost] {
        let runtime = world.node.clone();
        let met = Arc::new(Mutex::new(Vec::new()));
        let faults = met.clone();
        let choose = move || faults.lock().unwrap().pop().unwrap_or(Fault::None);
        let store = Chaos::new(world.memory.store(runtime.clone()), runtime.clone(), choose);
        let client = Client::builder().runtime(runtime).store(store).await.unwrap();
        met.lock().unwrap().push(fault);
        let guard = client.lock("x").try_acquire().await.unwrap().expect("it is free");
        guard.release().await.check().unwrap();
        met.lock().unwrap().extend([fault; 20]);
        let twice = client.lock("x").try_acquire().await.unwrap_err();
        assert_eq!(twice.code(), Code::Unavailable);
        met.lock().unwrap().clear();
        client.close().await;
        let state = Rig::of(world).await.client.lock("x").inspect().await.unwrap();
        assert!(state.holders.is_empty(), "nothing is left: {state:?}");
    }
}

/// A text is worth a hold once, within its lease.
async fn a_hold_that_is_handed_on_is_adopted_by_one(world: &World) {
    let one = world.client().await;
    let (two, three) = (world.client().await, world.client().await);
    let guard = one.lock("x").acquire().await.unwrap();
    let (token, claim) = (guard.token(), guard.claim());
    let text = guard.transfer().await.unwrap();
    assert_eq!(claim.check().unwrap_err().code(), Code::NotHeld);
    let (mut won, mut refused) = (Vec::new(), Vec::new());
    for adopted in <[_; 2]>::from(join(two.adopt(&text), three.adopt(&text)).await) {
        match adopted {
            Ok(guard) => won.push(guard),
            Err(error) => refused.push(error.code()),
        }
    }
    assert_eq!(refused, [Code::NotHeld]);
    let guard = won.pop().expect("one has it");
    assert_eq!(guard.token(), token);
    // Nothing of it is left to the first, which frees what it knows.
    one.close().await;
    world.sleep(40_000 * MS).await;
    assert!(guard.is_held() && two.lock("x").is_locked().await.unwrap());
    let late = guard.transfer().await.unwrap();
    world.sleep(40_000 * MS).await;
    assert_eq!(two.adopt(&late).await.unwrap_err().code(), Code::NotHeld);
    assert!(two.lock("x").try_acquire().await.unwrap().is_some());
    let foreign = two.adopt(r#"{"fencelock":2}"#).await.unwrap_err();
    assert_eq!(foreign.code(), Code::Invalid);
}

plays! {
    a_hold_that_is_handed_on_is_adopted_by_one,
    an_unconfirmed_free_outlasts_a_shorter_extension,
    an_extension_that_failed_changes_nothing,
    a_grant_that_was_never_claimed_is_taken_back,
    a_hold_that_max_hold_ends_is_freed,
    every_grant_is_told_however_it_came,
    whoever_waits_is_told_once_and_a_renewal_each_time,
    a_store_that_refuses_is_told_to_all_who_wait,
    a_long_wait_and_a_loss_say_what_an_operator_asks,
    a_loss_that_the_release_finds_is_told,
    a_renewal_that_comes_late_is_told,
    u26_a_renewal_that_is_under_way_is_not_sent_again,
    a_look_leaves_nothing_behind,
    u21_a_try_over_a_connection_that_ended_is_repeated_once,
}
