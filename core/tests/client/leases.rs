//! How leases begin, are renewed and end: each story shows what random worlds meet too rarely.

use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fencelock::port::{Notice, Outcome, Runtime};
use fencelock::{Code, Released, Token};
use fencelock_sim::Fault;
use futures_util::future::join;

use crate::world::wire::{Distorts, Loses};
use crate::world::{MS, S, World, look, play, play_once};

const HOUR: i64 = 3_600_000_000;
/// How long it takes until another server has taken over: sentinels wait for up to 30 s, clusters for 15.
const FAILOVER: Duration = Duration::from_secs(15);

/// A store that says an hour is left, since its clock has stepped back, is believed what was asked for.
async fn lavish(world: &World) {
    let (client, wire) = world.wired().await;
    wire.distort(Distorts::Leases);
    let guard = client.lock("x").ttl(3 * S).acquire().await.expect("it is free");
    let first = guard.remaining();
    world.sleep(2 * S).await;
    let renewed = guard.remaining();
    assert!(first <= 3 * S && renewed <= 3 * S, "believes in {first:?}, then {renewed:?}");
    assert!(renewed > S, "it was not renewed: {renewed:?} left");
}

/// A holder that died before the store's clock stepped back is in the way for a lease, not for an hour.
async fn far_end(world: &World) {
    let (dead, other) = (world.bare().await, world.client().await);
    assert!(matches!(dead.take(false).await.1, Outcome::Granted { .. }));
    world.node.set_wall(-HOUR);
    let asked = world.node.now();
    let _guard = other.lock("x").acquire().await.expect("it is granted");
    let took = world.node.now().since(asked);
    assert!(took < 21 * S, "the next one got it after {took:?}");
}

/// A grant below a token that was seen is none: a try says so, a wait goes on until the store draws higher ones.
async fn aged(world: &World) {
    let (client, wire) = world.wired().await;
    let guard = client.lock("x").acquire().await.expect("it is free");
    let seen = guard.token();
    guard.release().await.check().expect("it was held");
    wire.distort(Distorts::Tokens);
    let tried = client.lock("x").try_acquire().await;
    let code = tried.as_ref().err().map(fencelock::Error::code);
    assert!(code == Some(Code::Unavailable), "a try ended with {tried:?} after {seen}");
    let before = wire.batches().len();
    let waited = client.lock("x").acquire_within(10 * S).await;
    let text = waited.as_ref().err().map(ToString::to_string).unwrap_or_default();
    assert!(text.contains("its clock has stepped back"), "a wait ended with {waited:?}");
    let all = client.all(["x", "y"]).acquire_within(10 * S).await;
    assert!(all.is_err(), "several ended with {all:?}");
    let asked = wire.batches().len() - before;
    assert!(asked < 200, "{asked} requests in 20 s");
    let waiting = world.start(client.lock("x").acquire());
    world.sleep(S).await;
    wire.distort(Distorts::Nothing);
    let token = waiting.await.expect("the task ends").token();
    assert!(token > seen, "{token} after {seen}");
}

/// However many tokens a grant may draw, the counter stays close to the clock: a store that loses it is soon ahead again.
async fn outrun(world: &World) {
    let client = world.client().await;
    let lock = client.lock("x").local(10_000);
    let mut last = Token::default();
    for _ in 0..100 {
        let guard = lock.acquire().await.expect("it is free");
        last = guard.token();
        guard.release().await.check().expect("it was held");
    }
    let wall = world.node.wall();
    let ahead = Duration::from_micros(last.get().saturating_sub(wall));
    assert!(ahead < Duration::from_millis(11), "the counter is {ahead:?} ahead");
}

/// A fixed lease begins whole, also after a push.
async fn fixed(world: &World) {
    let (one, two) = (world.client().await, world.client().await);
    let guard = one.lock("x").acquire().await.expect("it is free");
    let won = world.start(two.lock("x").renew(false).ttl(2 * S).acquire());
    world.sleep(300 * MS).await;
    guard.release().await.check().expect("it was held");
    let left = won.await.expect("the task ends").remaining();
    assert!(left > 1950 * MS, "it begins with {left:?} of 2 s");
}

/// A fixed lease ends, also if the hold before it in this client was renewed.
async fn fixed_after_renewed(world: &World) {
    let client = world.client().await;
    let guard = client.lock("x").acquire().await.expect("it is free");
    let won = world.start(client.lock("x").renew(false).ttl(2 * S).acquire());
    world.sleep(MS).await;
    guard.release().await.check().expect("it was held");
    let fixed = won.await.expect("the task ends");
    world.sleep(3 * S).await;
    assert!(!fixed.is_held(), "it is renewed");
}

/// A hold that was pushed for 5 s and goes round inside is renewed in time, whatever its holders ask for.
async fn pushed_then_passed(world: &World) {
    let (one, two) = (world.client().await, world.client().await);
    let guard = one.lock("x").acquire().await.expect("it is free");
    let (first, second) = (two.lock("x").acquire(), two.lock("x").max_hold(60 * S).acquire());
    let first = world.start(first);
    world.sleep(MS).await;
    let second = world.start(second);
    world.sleep(MS).await;
    guard.release().await.check().expect("it was held");
    first.await.expect("the task ends").release().await.check().expect("it was held");
    let guard = second.await.expect("the task ends");
    world.sleep(20 * S).await;
    assert!(guard.is_held(), "it was lost though the store answered");
}

/// A push that comes when two fifths of its lease are over is renewed as if it were half as long.
async fn pushed_halfway(world: &World) {
    let (one, (two, wire)) = (world.client().await, world.wired().await);
    let guard = one.lock("x").acquire().await.expect("it is free");
    let won = world.start(two.lock("x").ttl(2 * S).acquire());
    world.sleep(MS).await;
    wire.lose(Loses::Refreshes);
    world.sleep(800 * MS).await;
    guard.release().await.check().expect("it was held");
    wire.lose(Loses::Nothing);
    let guard = won.await.expect("the task ends");
    let left = guard.remaining();
    assert!(left > S && left < 1300 * MS, "it was pushed with {left:?} of 2 s");
    wire.forget();
    world.sleep(400 * MS).await;
    assert!(wire.batches().len() == 1, "renewals in time: {:?}", wire.batches());
}

/// A hold that `max_hold` ends after two leases is renewed as often as any other.
async fn capped_after_two_leases(world: &World) {
    let (client, wire) = world.wired().await;
    let guard = client.lock("x").ttl(30 * S).max_hold(60 * S).acquire().await.expect("it is free");
    wire.forget();
    world.sleep(59 * S).await;
    assert!(guard.is_held(), "it was lost");
    let renewals = wire.batches().len();
    assert!(renewals <= 8, "{renewals} renewals in two leases");
}

/// Those that are due at once go out in parts, one after the other, and each of them once.
async fn renews_each_once(world: &World) {
    let (client, wire) = world.wired().await;
    let mut guards = Vec::new();
    for number in 0..7000 {
        guards.push(
            client.lock(&number.to_string()).ttl(30 * S).acquire().await.expect("it is free"),
        );
    }
    wire.forget();
    world.sleep(30 * S / 3 + Duration::from_millis(100)).await;
    let batches = wire.batches();
    assert!(batches.iter().all(|steps| *steps <= 1200), "batches of {batches:?}");
    assert!(batches.iter().sum::<usize>() == 7000, "7000 in batches of {batches:?}");
    assert!(guards.iter().all(|guard| guard.is_held()), "one was lost");
}

/// An answer that another one overtook leaves the deadline where it is.
async fn overtaken(world: &World) {
    let fault = Arc::new(Mutex::new(Fault::None));
    let client = world.struck(&fault).await;
    let guard = client.lock("x").renew(false).ttl(30 * S).acquire().await.expect("it is free");
    *fault.lock().unwrap() = Fault::Late(5 * S);
    let later = async {
        world.sleep(S).await;
        *fault.lock().unwrap() = Fault::None;
        guard.extend(60 * S).await
    };
    let (first, second) = join(guard.extend(30 * S), later).await;
    assert!(first.is_ok() && second.is_ok());
    let left = guard.remaining();
    assert!(left > 54 * S, "{left:?} are left of 56 s");
}

/// A guard whose machine stood still beyond its lease is lost at the first look, before anything else has run.
async fn stood_still(world: &World) {
    let (node, client) = world.machine().await;
    let guard = client.lock("x").ttl(400 * MS).acquire().await.expect("it is free");
    node.pause();
    world.sleep(S).await;
    let held = guard.is_held();
    node.resume();
    assert!(!held, "it says that it is held");
}

/// A hold that was given back just before another server took over is given back there too.
async fn hold_comes_back(world: &World) {
    let ((one, wire), two) = (world.wired().await, world.client().await);
    let guard = one.lock("x").acquire().await.expect("it is free");
    wire.lose(Loses::Ends);
    guard.release().await.check().expect("it is confirmed");
    wire.lose(Loses::Nothing);
    world.sleep(FAILOVER).await;
    wire.tell(Notice::Gap);
    let asked = world.node.now();
    drop(two.lock("x").acquire().await.expect("it is granted"));
    let took = world.node.now().since(asked);
    assert!(took < S, "it was granted after {took:?}");
}

/// A store tells that a hold is gone: the guard knows at once, and another can have the lock. It tells that a ticket is gone: a new
/// one is made.
async fn told_that_it_is_gone(world: &World) {
    let (one, first) = world.wired().await;
    let (two, second) = world.wired().await;
    let guard = one.lock("x").acquire().await.expect("it is free");
    let won = world.start(two.lock("x").acquire());
    world.sleep(100 * MS).await;
    let (hold, ticket) = (first.newest(), second.newest());
    second.tell(Notice::Gone { owner: ticket });
    world.sleep(100 * MS).await;
    assert!(second.newest() != ticket, "the ticket is believed in");
    first.tell(Notice::Gone { owner: hold });
    assert!(!guard.is_held(), "the guard says held");
    let outcome = guard.release().await;
    assert!(outcome == Released::AlreadyLost, "released: {outcome:?}");
    drop(won);
}

/// A store that comes and goes is told once what was given back, until it has confirmed it.
async fn store_that_comes_and_goes(world: &World) {
    let (one, wire) = world.wired().await;
    one.lock("x").acquire().await.expect("it is free").release().await.check().expect("it is held");
    wire.forget();
    for _ in 0..10 {
        wire.tell(Notice::Gap);
    }
    world.sleep(10 * MS).await;
    let first: usize = wire.batches().iter().sum();
    wire.tell(Notice::Gap);
    world.sleep(10 * MS).await;
    let both: usize = wire.batches().iter().sum();
    assert!([first, both] == [1, 2], "{first} steps, {both} after one gap more");
}

/// A ticket that was given back just before another server took over, and is served there, gives that back; `called`:
/// it is told to come and ask instead.
async fn comes_back_and_is_served(world: &World, called: bool) {
    let ((one, wire), two) = (world.wired().await, world.client().await);
    wire.call(called);
    let guard = two.lock("x").acquire().await.expect("it is free");
    let mut waiting = Box::pin(one.lock("x").acquire());
    for _ in 0..8 {
        assert!(look(&mut waiting).await.is_pending(), "it is held");
        world.sleep(MS).await;
    }
    wire.lose(Loses::Ends);
    drop(waiting);
    world.sleep(10 * MS).await;
    wire.lose(Loses::Nothing);
    guard.release().await.check().expect("it was held");
    let asked = world.node.now();
    drop(two.lock("x").acquire().await.expect("it is granted"));
    let took = world.node.now().since(asked);
    assert!(took < S, "it was granted after {took:?}");
}

/// A release is overtaken by the close of its client: the lock was given back, not lost.
async fn overtakes_a_release(world: &World) {
    let fault = Arc::new(Mutex::new(Fault::None));
    let client = world.struck(&fault).await;
    let guard = client.lock("x").acquire().await.expect("it is free");
    let other = client.lock("y").acquire().await.expect("it is free");
    // For this the close has to wait.
    *fault.lock().unwrap() = Fault::Late(200 * MS);
    drop(other);
    world.sleep(MS).await;
    *fault.lock().unwrap() = Fault::Late(100 * MS);
    let mut release = pin!(guard.release());
    assert!(look(&mut release).await.is_pending(), "it is on its way");
    *fault.lock().unwrap() = Fault::None;
    let (released, ()) = join(release, client.close()).await;
    assert!(released != Released::AlreadyLost, "{released:?}");
}

/// A floor from a client whose clock is far ahead lifts the counter by a minute at most.
async fn floor_ahead(world: &World) {
    let bare = world.bare().await;
    let (owner, first) = bare.take(false).await;
    let Outcome::Granted { token: first, .. } = first else { panic!("{first:?}") };
    bare.open(owner).await;
    let hour = 3_600_000_000;
    let (_, second) = bare.take_above(Token::new(first.get() + hour), false).await;
    let Outcome::Granted { token: second, .. } = second else { panic!("{second:?}") };
    assert!(second.get() < first.get() + hour / 30, "{second} after {first}");
}

/// One order is enough: it takes a while.
#[test]
fn many_leases_are_renewed_in_parts() {
    play_once(7, &renews_each_once);
}

/// However the one that was served in a failover is told of it.
#[test]
fn a_ticket_comes_back() {
    play(async |world: &World| comes_back_and_is_served(world, false).await);
    play(async |world: &World| comes_back_and_is_served(world, true).await);
}

async fn a_claim_ends_with_its_guard(world: &World) {
    let guard = world.client().await.lock("x").ttl(50 * MS).acquire().await.expect("it is free");
    let claim = guard.claim();
    assert!(claim.is_held());
    guard.release().await.check().expect("it was held");
    assert!(!claim.is_held());
    assert_eq!(claim.remaining(), Duration::ZERO);
    assert_eq!(claim.check().unwrap_err().code(), Code::NotHeld);
    let told = world.within(100 * MS, claim.lost()).await;
    assert!(told.is_none(), "what was given back cannot be lost");
}

plays! {
    lavish,
    far_end,
    aged,
    outrun,
    fixed,
    fixed_after_renewed,
    pushed_then_passed,
    pushed_halfway,
    overtaken,
    stood_still,
    hold_comes_back,
    told_that_it_is_gone,
    store_that_comes_and_goes,
    overtakes_a_release,
    floor_ahead,
    capped_after_two_leases,
    a_claim_ends_with_its_guard,
}
