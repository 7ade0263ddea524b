//! How a lock goes from one to the next, in the queue of the store and inside a client: each story shows what random worlds meet too
//! rarely.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};
use std::time::Duration;

use fencelock::driver::record::{Record, StepContext};
use fencelock::port::{Action, Kind, LockKey, Mode, Notice, Outcome, OwnerId, Runtime, Step, Take};
use fencelock::{Client, Released, Stats, Token};
use fencelock_sim::{Dice, Fault};
use futures_util::FutureExt;
use futures_util::future::{Either, select};

use crate::world::{MS, S, World, look};

/// After a gap in the notices every ticket is refreshed at once, not at its ordinary time.
async fn gap(world: &World) {
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
    assert!(took < 10 * MS, "the grant was found after {took:?}");
}

/// A holder that is not ours tells nobody: the head looks again soon.
async fn foreign(world: &World) {
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
    assert!(took < 200 * MS, "the free lock was seen after {took:?}");
}

/// A foreign holder is looked at soon at first, and once a second in the end.
async fn foreign_for_long(world: &World) {
    let (one, (two, wire)) = (world.client().await, world.wired().await);
    let _guard = one.lock("x").acquire().await.expect("it is free");
    wire.estrange(true);
    let _head = world.start(two.lock("x").acquire());
    world.sleep(S / 2).await;
    let (soon, before) = (wire.batches().len(), wire.batches().len());
    world.sleep(20 * S).await;
    let later = wire.batches().len() - before;
    assert!(
        (5..=8).contains(&soon) && later <= 22,
        "it asked {soon} times in half a second, then {later} in 20 s"
    );
}

/// A waiter that is not the head has no reason to look for a foreign holder's end.
async fn behind_the_head(world: &World) {
    let (one, two) = (world.client().await, world.client().await);
    let (three, wire) = world.wired().await;
    let _guard = one.lock("x").acquire().await.expect("it is free");
    let _head = world.start(two.lock("x").acquire());
    world.sleep(10 * MS).await;
    wire.estrange(true);
    let _second = world.start(three.lock("x").acquire());
    world.sleep(3 * S).await;
    let asked = wire.batches().len();
    assert!(asked <= 5, "it asked {asked} times in 3 s");
}

/// A waiter that is silent and unreachable is passed over, though its ticket has not ended.
async fn unreachable(world: &World) {
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
    assert!(took < 100 * MS, "the next one alive got it after {took:?}");
}

/// A lock that was left open is for whoever comes first, but for a second only.
async fn open_for_a_second(world: &World) {
    let bare = world.bare().await;
    let (holder, _) = bare.take(false).await;
    assert!(matches!(bare.take(true).await.1, Outcome::Queued { .. }));
    bare.open(holder).await;
    world.sleep(1100 * MS).await;
    let (_, late) = bare.take(false).await;
    assert!(matches!(late, Outcome::Held { .. }), "past the head: {late:?}");
}

/// A waiter that nobody polls is served, and its hold renewed to the full lease; or renewed by a Refresh whose answer is
/// lost. Dropped while the store is out of reach, it is taken back as soon as that is there again.
async fn served_unseen(world: &World) {
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
        assert!(state.holders.is_empty(), "renewed: {renew}, held by nobody: {state:?}");
    }
}

/// A client that died before it was served keeps the lock for 5 s, however long a lease it wanted.
async fn served_dead(world: &World) {
    let (one, two) = (world.client().await, world.client().await);
    let guard = one.lock("x").acquire().await.expect("it is free");
    let dead = world.bare().await;
    assert!(matches!(dead.take(true).await.1, Outcome::Queued { .. }));
    guard.release().await.check().expect("it was held");
    let asked = world.node.now();
    let _next = two.lock("x").acquire().await.expect("it is granted");
    let took = world.node.now().since(asked);
    assert!(took < 5100 * MS, "the next one got it after {took:?}");
}

/// A waiter behind one that gave up takes its place.
async fn inherited(world: &World) {
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
    assert!(won.is_some(), "somebody was served before it");
}

/// A grant counts from the newest request that was answered "still waiting", whichever answer comes last.
async fn older_answer(world: &World) {
    let fault = Arc::new(Mutex::new(Fault::None));
    let (one, two) = (world.client().await, world.struck(&fault).await);
    let guard = one.lock("x").acquire().await.expect("it is free");
    let won = world.start(two.lock("x").acquire());
    world.sleep(500 * MS).await;
    // The answer of the first Refresh comes after that of the second, which is sent three seconds later.
    *fault.lock().unwrap() = Fault::Late(3700 * MS);
    world.sleep(S).await;
    *fault.lock().unwrap() = Fault::None;
    world.sleep(3300 * MS).await;
    guard.release().await.check().expect("it was held");
    let left = won.await.expect("the task ends").remaining();
    assert!(left > 3200 * MS, "it begins with {left:?} of 4.2 s");
}

/// Two readers of one client hold at once: neither stands in the line of the other.
async fn readers_of_one_client(world: &World) {
    let client = world.client().await;
    let _first = client.read_lock("x").acquire().await.expect("it is free");
    let second = client.read_lock("x").acquire_within(S).await;
    assert!(second.is_ok(), "the second reader waits for the first");
}

/// A hold of which little is left is not passed on inside: whoever is next begins with a lease of its own.
async fn little_left(world: &World) {
    let fault = Arc::new(Mutex::new(Fault::None));
    let client = world.struck(&fault).await;
    let lock = || client.lock("x").ttl(12 * MS);
    let guard = lock().acquire().await.expect("it is free");
    let next = world.start(lock().acquire());
    *fault.lock().unwrap() = Fault::RequestLost;
    world.sleep(15 * MS / 2).await;
    *fault.lock().unwrap() = Fault::None;
    guard.release().await.check().expect("it was held");
    let left = next.await.expect("the task ends").remaining();
    assert!(left > 8 * MS, "it begins with {left:?} of 12 ms");
}

/// It is still its turn then, before that of others who asked before it looked.
async fn passed_unseen_in_turn(world: &World) {
    let (node, client) = world.machine().await;
    let lock = || client.lock("x").ttl(400 * MS);
    let guard = lock().acquire().await.expect("it is free");
    let mut waiting = Box::pin(lock().acquire());
    assert!(look(&mut waiting).await.is_pending(), "it is held");
    guard.release().await.check().expect("it was held");
    node.pause();
    world.sleep(S).await;
    node.resume();
    let mut later = Box::pin(lock().acquire());
    assert!(look(&mut later).await.is_pending(), "somebody waits for it");
    match select(world.start(waiting), world.start(later)).await {
        Either::Left((served, _)) => {
            let served = served.expect("the task ends");
            assert!(served.is_held(), "the first was served, and does not hold");
        }
        Either::Right(_) => panic!("who asked later was served first"),
    }
}

/// A scope that holds a lock enters it once more at once, whoever of its client waits for it.
async fn once_more_past_the_line(world: &World) {
    let client = world.client().await;
    let scope = client.scope();
    let _outer = scope.lock("x").acquire().await.expect("it is free");
    let _waiting = world.start(client.lock("x").acquire());
    world.sleep(MS).await;
    let inner = scope.lock("x").acquire_within(S).await;
    assert!(inner.is_ok(), "it waits for those who wait for it");
}

/// However many wait inside, another client gets its turn.
async fn budget(world: &World) {
    let (one, two) = (world.client().await, world.client().await);
    let over = Arc::new(AtomicBool::new(false));
    for _ in 0..3 {
        let (lock, over, node) = (one.lock("x"), over.clone(), world.node.clone());
        world.node.spawn(Box::pin(async move {
            while !over.load(Ordering::Relaxed) {
                let guard = lock.acquire().await.expect("it is granted");
                node.sleep_until(node.now() + MS).await;
                guard.release().await.check().expect("it was held");
            }
        }));
    }
    world.sleep(5 * MS).await;
    let asked = world.node.now();
    let won = two.lock("x").acquire_within(S).await;
    let took = world.node.now().since(asked);
    over.store(true, Ordering::Relaxed);
    drop(won);
    assert!(took < 20 * MS, "the other client waited for {took:?}");
}

/// A waiter that stands in the line of its client and is not polled any more.
fn unpolled(client: &Client) -> impl Future<Output = fencelock::Result<fencelock::Guard>> {
    let mut waiter = client.lock("x").local(0).acquire();
    assert!(waiter.poll_unpin(&mut Context::from_waker(Waker::noop())).is_pending());
    waiter
}

async fn a_release_waits_for_nobody_elses_poll(world: &World) {
    let client = world.client().await;
    let guard = client.lock("x").local(0).acquire().await.unwrap();
    let waiter = unpolled(&client);
    let released =
        world.within(500 * MS, guard.release()).await.expect("the store answered long ago");
    assert_eq!(released, Released::Released);
    assert_eq!(waiter.await.unwrap().release().await, Released::Released);
    assert_eq!(client.stats(), Stats::default());
}

/// A guard that is dropped, and a release that is, free the lock for another client though the next one here sleeps.
async fn a_drop_waits_for_nobody_elses_poll(world: &World) {
    for cancelled in [false, true] {
        let (one, two) = (world.client().await, world.client().await);
        let guard = one.lock("x").local(0).acquire().await.unwrap();
        let waiter = unpolled(&one);
        let before = two.lock("x").inspect().await.unwrap().last;
        if cancelled {
            drop(guard.release());
        } else {
            drop(guard);
        }
        let freed = async {
            while two.lock("x").inspect().await.unwrap().last == before {
                world.sleep(MS).await;
            }
        };
        world.within(500 * MS, freed).await.expect("the waiter's Take went out with the Free");
        drop(waiter);
        let next = two.lock("x").acquire_within(500 * MS).await.expect("nothing stays behind");
        assert_eq!(next.release().await, Released::Released);
    }
}

/// One lock's record, asked by hand.
struct Model {
    dice: Dice,
    record: Record,
    kind: Kind,
    reachable: bool,
    notices: Vec<Notice>,
}

impl Model {
    fn new(kind: Kind, reachable: bool) -> Self {
        Self { dice: Dice::new(7), record: Record::default(), kind, reachable, notices: Vec::new() }
    }

    /// A mutex that is held and waited for by those who cannot be told.
    fn deaf() -> (Self, OwnerId, OwnerId) {
        let (kind, reachable) = (Kind::Mutex, false);
        let mut model = Self::new(kind, reachable);
        let (holder, granted) = model.take(MS, Mode::Exclusive, 3 * S, false);
        assert!(matches!(granted, Outcome::Granted { .. }), "{granted:?}");
        let (waiter, queued) = model.take(MS, Mode::Exclusive, 3 * S, true);
        assert!(matches!(queued, Outcome::Queued { .. }), "{queued:?}");
        (model, holder, waiter)
    }

    fn ask(&mut self, after: Duration, owner: OwnerId, action: Action) -> Outcome {
        let now = u64::try_from((60 * S + after).as_micros()).expect("a short time");
        let (lock, channel, reachable) = (LockKey::new("x"), "deaf".into(), self.reachable);
        let reachable = move |_: &str| reachable;
        let mut context = StepContext::new(now, &channel, &reachable);
        let outcome =
            self.record.apply(&Step { lock, owner, kind: self.kind, action }, &mut context);
        self.notices = context.notices.into_iter().map(|(_, notice)| notice).collect();
        outcome
    }

    fn take(
        &mut self,
        after: Duration,
        mode: Mode,
        ttl: Duration,
        wait: bool,
    ) -> (OwnerId, Outcome) {
        let owner = OwnerId::parse(&format!("{:032x}", self.dice.draw())).expect("32 digits");
        let (limit, permits, block, floor) = (2, 1, 1, Token::default());
        let take =
            Take { mode, limit, permits, ttl, wait, block, floor, info: "{}".into(), vote: None };
        (owner, self.ask(after, owner, Action::Take(take)))
    }
}

/// A waiter that cannot be sent a notice is served when it asks.
#[test]
fn deaf_but_asking() {
    let (mut model, _, waiter) = Model::deaf();
    let served = model.ask(4 * S, waiter, Action::Refresh { ttl: S });
    assert!(matches!(served, Outcome::Granted { .. }), "{served:?}");
}

/// A waiter that asked lately is served, whether it can be sent a notice or not: it will ask.
#[test]
fn deaf_but_heard_of() {
    let (mut model, first, waiter) = Model::deaf();
    assert_eq!(model.ask(S, first, Action::Free { open: false }), Outcome::Freed);
    let served = model.ask(S + MS, waiter, Action::Refresh { ttl: S });
    assert!(matches!(served, Outcome::Granted { .. }), "{served:?}");
}

/// A permit was left open for whoever comes first; when another one vanishes, its queue is served in order again.
#[test]
fn vanished_beside() {
    let (kind, reachable) = (Kind::Semaphore, true);
    let mut model = Model::new(kind, reachable);
    let (first, granted) = model.take(MS, Mode::Permit, 20 * S, false);
    assert!(matches!(granted, Outcome::Granted { .. }), "{granted:?}");
    let (_, granted) = model.take(MS, Mode::Permit, S / 2, false);
    assert!(matches!(granted, Outcome::Granted { .. }), "{granted:?}");
    for _ in 0..2 {
        let (_, queued) = model.take(MS, Mode::Permit, 20 * S, true);
        assert!(matches!(queued, Outcome::Queued { .. }), "{queued:?}");
    }
    let freed = model.ask(100 * MS, first, Action::Free { open: true });
    assert_eq!(freed, Outcome::Freed);
    let (_, late) = model.take(700 * MS, Mode::Permit, 20 * S, false);
    assert!(matches!(late, Outcome::Held { .. }), "past those who wait: {late:?}");
}

/// The head of the queue gives up while the lock is open for it: the next is told.
#[test]
fn head_leaves() {
    let (mut model, first, head) = Model::deaf();
    let (next, queued) = model.take(2 * MS, Mode::Exclusive, 3 * S, true);
    assert!(matches!(queued, Outcome::Queued { .. }), "{queued:?}");
    assert_eq!(model.ask(S, first, Action::Free { open: true }), Outcome::Freed);
    assert_eq!(model.notices, [Notice::Open { owner: head }]);
    model.ask(S + MS, head, Action::Leave { tombstone: None });
    let told = &model.notices;
    assert!(*told == [Notice::Open { owner: next }], "told: {told:?}");
}

/// Two permits are open and one is taken: the next in the queue has the other.
#[test]
fn two_permits_open() {
    let mut model = Model::new(Kind::Semaphore, true);
    let holders = [(); 2].map(|()| model.take(MS, Mode::Permit, 20 * S, false).0);
    let waiters = [(); 2].map(|()| model.take(MS, Mode::Permit, 20 * S, true).0);
    for holder in holders {
        assert_eq!(model.ask(S, holder, Action::Free { open: true }), Outcome::Freed);
    }
    let entered = model.ask(S + MS, waiters[0], Action::Refresh { ttl: S });
    assert!(matches!(entered, Outcome::Granted { .. }), "{entered:?}");
    let told = &model.notices;
    let next = matches!(told[..], [Notice::Granted { owner, .. }] if owner == waiters[1]);
    assert!(next, "told: {told:?}");
}

plays! {
    gap,
    foreign,
    foreign_for_long,
    behind_the_head,
    unreachable,
    open_for_a_second,
    served_unseen,
    served_dead,
    inherited,
    older_answer,
    readers_of_one_client,
    little_left,
    passed_unseen_in_turn,
    once_more_past_the_line,
    budget,
    a_release_waits_for_nobody_elses_poll,
    a_drop_waits_for_nobody_elses_poll,
}
