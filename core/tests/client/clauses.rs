//! Clauses that random worlds meet too rarely, each with a world of its own in virtual time.
#![cfg(feature = "test-hooks")]
#![allow(missing_docs)]

use crate::world;

use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fencelock::Token;
use fencelock::port::{Action, Notice, Outcome, Runtime};
use fencelock_sim::Fault;
use futures_util::future::{Either, LocalBoxFuture, join, select};

use self::world::{
    World, check, clock, closing, ended, given_held, healing, job, line, look, many, queue, renewal,
};

const MS: Duration = Duration::from_millis(1);
const S: Duration = Duration::from_secs(1);
/// The longest time that a world may take, in its own time.
const LONGEST: Duration = Duration::from_secs(100_000);

/// After a gap in the notices every ticket is refreshed at once, not at its ordinary time.
async fn gap(world: &World) -> Result<(), String> {
    let (one, (two, wire)) = (world.client().await, world.wired().await);
    let guard = one.lock("x").acquire().await.expect("it is free");
    let won = world.start(two.lock("x").acquire());
    world.sleep(100 * MS).await;
    wire.deafen(true);
    guard.release().await.check().expect("it was held");
    wire.deafen(false);
    wire.tell(Notice::Gap);
    let asked = world.node.now();
    drop(won.await.expect("the task ends"));
    let took = world.node.now().since(asked);
    check(took < 10 * MS, || format!("the grant was found after {took:?}"))
}

/// A holder whose time is over makes room at once.
async fn capped(world: &World) -> Result<(), String> {
    let (one, two) = (world.client().await, world.client().await);
    let _guard = one.lock("x").max_hold(2 * S).acquire().await.expect("it is free");
    let asked = world.node.now();
    let _next = two.lock("x").acquire().await.expect("it is granted");
    let took = world.node.now().since(asked);
    check(took < 2100 * MS, || format!("the next one got it after {took:?}"))
}

/// A holder that is not ours tells nobody: the head looks again soon.
async fn foreign(world: &World) -> Result<(), String> {
    let (one, (two, wire)) = (world.client().await, world.wired().await);
    wire.deafen(true);
    wire.estrange(true);
    let guard = one.lock("x").acquire().await.expect("it is free");
    let won = world.start(two.lock("x").acquire());
    world.sleep(100 * MS).await;
    guard.release().await.check().expect("it was held");
    let asked = world.node.now();
    drop(won.await.expect("the task ends"));
    let took = world.node.now().since(asked);
    check(took < 200 * MS, || format!("the free lock was seen after {took:?}"))
}

/// A waiter that is silent and unreachable is passed over, though its ticket has not ended.
async fn unreachable(world: &World) -> Result<(), String> {
    let client = world.client().await;
    let guard = client.lock("x").acquire().await.expect("it is free");
    let dead = world.bare().await;
    assert!(matches!(dead.take(true).await.1, Outcome::Queued { .. }));
    drop(dead);
    let other = world.client().await;
    let won = world.start(other.lock("x").acquire());
    world.sleep(2500 * MS).await;
    let asked = world.node.now();
    guard.release().await.check().expect("it was held");
    drop(won.await.expect("the task ends"));
    let took = world.node.now().since(asked);
    check(took < 100 * MS, || format!("the next one alive got it after {took:?}"))
}

/// A lock that was left open is for whoever comes first, but for a second only.
async fn open_for_a_second(world: &World) -> Result<(), String> {
    let bare = world.bare().await;
    let (holder, _) = bare.take(false).await;
    assert!(matches!(bare.take(true).await.1, Outcome::Queued { .. }));
    bare.open(holder).await;
    world.sleep(1100 * MS).await;
    let (_, late) = bare.take(false).await;
    check(matches!(late, Outcome::Held { .. }), || format!("past the head: {late:?}"))
}

/// Nobody is passed over more than twice.
async fn passed_twice(world: &World) -> Result<(), String> {
    let bare = world.bare().await;
    let (mut holder, _) = bare.take(false).await;
    assert!(matches!(bare.take(true).await.1, Outcome::Queued { .. }));
    for _ in 0..2 {
        bare.open(holder).await;
        let (next, answer) = bare.take(false).await;
        assert!(matches!(answer, Outcome::Granted { .. }), "{answer:?}");
        holder = next;
    }
    let freed = bare.ask(holder, Action::Free { open: true }).await;
    assert_eq!(freed, Outcome::Freed);
    let (_, third) = bare.take(false).await;
    check(matches!(third, Outcome::Held { .. }), || format!("past the head again: {third:?}"))
}

/// A try ends with the first answer, also with one that comes too late.
async fn late_try(world: &World) -> Result<(), String> {
    let slow = world.struck(&Arc::new(Mutex::new(Fault::Late(60 * MS)))).await;
    let tried = slow.lock("x").ttl(50 * MS).try_acquire();
    let patience = world.node.sleep_until(world.node.now() + S);
    match select(Box::pin(tried), patience).await {
        Either::Left((tried, _)) => check(tried.is_err(), || "it holds what has ended".to_owned()),
        Either::Right(_) => Err("it asks again and again".to_owned()),
    }
}

/// A waiter that nobody polls is served, and its hold renewed to the full lease; or renewed by a Refresh whose answer is
/// lost. Dropped while the store is out of reach, it is taken back as soon as that is there again.
async fn served_unseen(world: &World) -> Result<(), String> {
    for renew in [true, false] {
        let fault = Arc::new(Mutex::new(Fault::None));
        let (one, two) = (world.client().await, world.struck(&fault).await);
        let guard = one.lock("x").acquire().await.expect("it is free");
        let mut waiting = Box::pin(two.lock("x").ttl(60 * S).renew(renew).acquire());
        for _ in 0..8 {
            assert!(look(&mut waiting).await.is_pending(), "it is held");
            world.sleep(MS).await;
        }
        if !renew {
            *fault.lock().unwrap() = Fault::ReplyLost;
        }
        guard.release().await.check().expect("it was held");
        world.sleep(4 * S).await;
        *fault.lock().unwrap() = Fault::RequestLost;
        drop(waiting);
        world.sleep(13 * S).await;
        *fault.lock().unwrap() = Fault::None;
        world.sleep(3 * S).await;
        let state = one.lock("x").inspect().await.expect("memory answers");
        check(state.holders.is_empty(), || format!("renewed: {renew}, held by nobody: {state:?}"))?;
    }
    Ok(())
}

/// An answer that another one overtook leaves the deadline where it is.
async fn overtaken(world: &World) -> Result<(), String> {
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
    check(left > 54 * S, || format!("{left:?} are left of 56 s"))
}

/// A guard whose machine stood still beyond its lease is lost at the first look, before anything else has run.
async fn stood_still(world: &World) -> Result<(), String> {
    let (node, client) = world.machine().await;
    let guard = client.lock("x").ttl(400 * MS).acquire().await.expect("it is free");
    node.pause();
    world.sleep(S).await;
    let held = guard.is_held();
    node.resume();
    check(!held, || "it says that it is held".to_owned())
}

/// A machine that stood still between the push and the look has no grant.
async fn looked_too_late(world: &World) -> Result<(), String> {
    let (one, (node, two)) = (world.client().await, world.machine().await);
    let guard = one.lock("x").acquire().await.expect("it is free");
    let mut waiting = Box::pin(two.lock("x").ttl(400 * MS).acquire());
    for _ in 0..8 {
        assert!(look(&mut waiting).await.is_pending(), "it is held");
        world.sleep(MS).await;
    }
    node.pause();
    guard.release().await.check().expect("it was held");
    world.sleep(S).await;
    let held = given_held(&mut waiting).await;
    node.resume();
    check(held, || "a guard was given out that is not held".to_owned())
}

/// A waiter behind one that gave up takes its place.
async fn inherited(world: &World) -> Result<(), String> {
    let (one, two, three) = (world.client().await, world.client().await, world.client().await);
    let guard = one.lock("x").acquire().await.expect("it is free");
    let mut first = Box::pin(two.lock("x").acquire());
    for _ in 0..8 {
        assert!(look(&mut first).await.is_pending(), "it is held");
        world.sleep(MS).await;
    }
    let mut behind = world.start(two.lock("x").acquire());
    world.sleep(MS).await;
    let _last = world.start(three.lock("x").acquire());
    world.sleep(MS).await;
    drop(first);
    world.sleep(10 * MS).await;
    guard.release().await.check().expect("it was held");
    world.sleep(10 * MS).await;
    let won = behind.try_recv().expect("the task goes on");
    check(won.is_some(), || "somebody was served before it".to_owned())
}

/// A fixed lease ends, also if the hold before it in this client was renewed.
async fn fixed_after_renewed(world: &World) -> Result<(), String> {
    let client = world.client().await;
    let guard = client.lock("x").acquire().await.expect("it is free");
    let won = world.start(client.lock("x").renew(false).ttl(2 * S).acquire());
    world.sleep(MS).await;
    guard.release().await.check().expect("it was held");
    let fixed = won.await.expect("the task ends");
    world.sleep(3 * S).await;
    check(!fixed.is_held(), || "it is renewed".to_owned())
}

/// A client that died before it was served keeps the lock for 5 s, however long a lease it wanted.
async fn served_dead(world: &World) -> Result<(), String> {
    let (one, two) = (world.client().await, world.client().await);
    let guard = one.lock("x").acquire().await.expect("it is free");
    let dead = world.bare().await;
    assert!(matches!(dead.take(true).await.1, Outcome::Queued { .. }));
    guard.release().await.check().expect("it was held");
    let asked = world.node.now();
    let _next = two.lock("x").acquire().await.expect("it is granted");
    let took = world.node.now().since(asked);
    check(took < 5100 * MS, || format!("the next one got it after {took:?}"))
}

/// A floor from a client whose clock is far ahead lifts the counter by a minute at most.
async fn floor_ahead(world: &World) -> Result<(), String> {
    let bare = world.bare().await;
    let (owner, first) = bare.take(false).await;
    let Outcome::Granted { token: first, .. } = first else { panic!("{first:?}") };
    bare.open(owner).await;
    let hour = 3_600_000_000;
    let (_, second) = bare.take_above(Token::new(first.get() + hour), false).await;
    let Outcome::Granted { token: second, .. } = second else { panic!("{second:?}") };
    check(second.get() < first.get() + hour / 30, || format!("{second} after {first}"))
}

/// A world keeps its promise in so many orders.
const SEEDS: u64 = 16;

type Ended = Result<(), String>;

/// Runs a world.
fn run(seed: u64, work: impl for<'a> FnOnce(&'a World) -> LocalBoxFuture<'a, Ended>) -> Ended {
    let world = World::new(seed);
    let ends = async {
        match select(pin!(work(&world)), pin!(world.sleep(LONGEST))).await {
            Either::Left((ended, _)) => ended,
            Either::Right(_) => Err("it does not end".to_owned()),
        }
    };
    world.sim.block_on(ends).unwrap_or_else(|stuck| Err(stuck.to_string()))
}

fn holds(work: impl for<'a> Fn(&'a World) -> LocalBoxFuture<'a, Ended>) {
    for seed in 0..SEEDS {
        assert_eq!(run(seed, &work), Ok(()), "seed {seed}");
    }
}

mod world_of {
    use super::{clock, closing, ended, healing, holds, job, line, many, queue, renewal};

    holds! { world:
        many_leases: many::many_leases(world),
        told_that_it_is_gone: ended::told_that_it_is_gone(world),
        gap: super::gap(world),
        hold_comes_back: ended::hold_comes_back(world),
        store_that_comes_and_goes: ended::store_that_comes_and_goes(world),
        ticket_comes_back: ended::ticket_comes_back(world, false),
        ticket_comes_back_in_its_turn: ended::ticket_comes_back(world, true),
        late_push: renewal::late_push(world),
        fixed: renewal::fixed(world),
        pushed_halfway: renewal::pushed_halfway(world),
        pushed_then_passed: renewal::pushed_then_passed(world),
        capped_after_two_leases: renewal::capped(world),
        capped: super::capped(world),
        foreign: super::foreign(world),
        foreign_for_long: queue::foreign_for_long(world),
        freed_and_taken_at_once: line::freed_and_taken_at_once(world),
        lost_after_a_pass: line::lost_after_a_pass(world),
        once_more_past_the_line: line::once_more_past_the_line(world),
        budget: line::budget(world),
        passed_after_data_loss: line::passed_after_data_loss(world),
        unreachable: super::unreachable(world),
        open_for_a_second: super::open_for_a_second(world),
        late_try: super::late_try(world),
        served_unseen: super::served_unseen(world),
        stood_still: super::stood_still(world),
        overtaken: super::overtaken(world),
        looked_too_late: super::looked_too_late(world),
        inherited: super::inherited(world),
        fixed_after_renewed: super::fixed_after_renewed(world),
        deaf_but_asking: async { queue::deaf_but_asking(world) },
        deaf_but_heard_of: async { queue::deaf_but_heard_of(world) },
        head_leaves: async { queue::head_leaves(world) },
        two_permits_open: async { queue::two_permits_open(world) },
        vanished_beside: async { queue::vanished_beside(world) },
        lost_push: queue::lost_push(world),
        older_answer: queue::older_answer(world),
        behind_the_head: queue::behind_the_head(world),
        readers_of_one_client: line::readers_of_one_client(world),
        longer_inside: line::longer_inside(world),
        little_left: line::little_left(world),
        passed_unseen: line::passed_unseen(world),
        passed_unseen_in_turn: line::passed_unseen_in_turn(world),
        served_dead: super::served_dead(world),
        twice: healing::twice(world),
        overtakes_a_release: closing::overtakes_a_release(world),
        floor_ahead: super::floor_ahead(world),
        lavish: clock::lavish(world),
        far_end: clock::far_end(world),
        aged: clock::aged(world),
        outrun: clock::outrun(world),
        ahead: job::ahead(world),
        marked_first: job::marked_first(world),
        far_instant: job::far_instant(world),
        taken_for_long: job::taken_for_long(world),
        taken_in_vain: job::taken_in_vain(world),
        passed_twice: super::passed_twice(world),
    }
}
