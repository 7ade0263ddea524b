//! Places in the queue, and what is told and looked at there.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use fencelock::Token;
use fencelock::driver::record::{Record, Scene};
use fencelock::port::{Action, Kind, LockKey, Mode, Notice, Outcome, OwnerId, Runtime, Step, Take};
use fencelock_sim::Fault;

use super::{World, check};

const MS: Duration = Duration::from_millis(1);
const S: Duration = Duration::from_secs(1);

/// A push that is lost, without a gap that would tell of it, costs at most a second.
pub(crate) async fn lost_push(world: &World) -> Result<(), String> {
    let (one, (two, wire)) = (world.client().await, world.wired().await);
    let guard = one.lock("x").acquire().await.expect("it is free");
    let won = world.start(two.lock("x").acquire());
    world.sleep(100 * MS).await;
    wire.deafen(true);
    guard.release().await.check().expect("it was held");
    let asked = world.node.now();
    drop(won.await.expect("the task ends"));
    let took = world.node.now().since(asked);
    check(took <= S, || format!("the grant was found after {took:?}"))
}

/// A grant counts from the newest request that was answered "still waiting", whichever answer comes last.
pub(crate) async fn older_answer(world: &World) -> Result<(), String> {
    let fault = Arc::new(Mutex::new(Fault::None));
    let (one, two) = (world.client().await, world.struck(&fault).await);
    let guard = one.lock("x").acquire().await.expect("it is free");
    let won = world.start(two.lock("x").acquire());
    world.sleep(500 * MS).await;
    *fault.lock().unwrap() = Fault::Late(1700 * MS);
    world.sleep(S).await;
    *fault.lock().unwrap() = Fault::None;
    world.sleep(1300 * MS).await;
    guard.release().await.check().expect("it was held");
    let left = won.await.expect("the task ends").remaining();
    check(left > 3700 * MS, || format!("it begins with {left:?} of 4.2 s"))
}

/// A waiter that is not the head has no reason to look for a foreign holder's end.
pub(crate) async fn behind_the_head(world: &World) -> Result<(), String> {
    let (one, two) = (world.client().await, world.client().await);
    let (three, wire) = world.wired().await;
    let _guard = one.lock("x").acquire().await.expect("it is free");
    let _head = world.start(two.lock("x").acquire());
    world.sleep(10 * MS).await;
    wire.estrange(true);
    let _second = world.start(three.lock("x").acquire());
    world.sleep(3 * S).await;
    let asked = wire.batches().len();
    check(asked <= 5, || format!("it asked {asked} times in 3 s"))
}

/// A foreign holder is looked at soon at first, and once a second in the end.
pub(crate) async fn foreign_for_long(world: &World) -> Result<(), String> {
    let (one, (two, wire)) = (world.client().await, world.wired().await);
    let _guard = one.lock("x").acquire().await.expect("it is free");
    wire.estrange(true);
    let _head = world.start(two.lock("x").acquire());
    world.sleep(S / 2).await;
    let (soon, before) = (wire.batches().len(), wire.batches().len());
    world.sleep(20 * S).await;
    let later = wire.batches().len() - before;
    check((5..=8).contains(&soon) && later <= 22, || {
        format!("it asked {soon} times in half a second, then {later} in 20 s")
    })
}

/// One lock's record, asked by hand.
struct Shelf<'a> {
    world: &'a World,
    record: Record,
    kind: Kind,
    reachable: bool,
    notices: Vec<Notice>,
}

impl<'a> Shelf<'a> {
    fn new(world: &'a World, kind: Kind, reachable: bool) -> Self {
        Self { world, record: Record::default(), kind, reachable, notices: Vec::new() }
    }

    /// A mutex that is held and waited for by those who cannot be told.
    fn deaf(world: &'a World) -> (Self, OwnerId, OwnerId) {
        let (kind, reachable) = (Kind::Mutex, false);
        let mut shelf = Self::new(world, kind, reachable);
        let (holder, granted) = shelf.take(MS, Mode::Exclusive, 3 * S, false);
        assert!(matches!(granted, Outcome::Granted { .. }), "{granted:?}");
        let (waiter, queued) = shelf.take(MS, Mode::Exclusive, 3 * S, true);
        assert!(matches!(queued, Outcome::Queued { .. }), "{queued:?}");
        (shelf, holder, waiter)
    }

    fn ask(&mut self, after: Duration, owner: OwnerId, action: Action) -> Outcome {
        let now = u64::try_from((60 * S + after).as_micros()).expect("a short time");
        let (lock, channel, reachable) = (LockKey::new("x"), "deaf".into(), self.reachable);
        let reachable = move |_: &str| reachable;
        let mut scene = Scene::new(now, &channel, &reachable);
        let outcome = self.record.apply(&Step { lock, owner, kind: self.kind, action }, &mut scene);
        self.notices = scene.notices.into_iter().map(|(_, notice)| notice).collect();
        outcome
    }

    fn take(
        &mut self,
        after: Duration,
        mode: Mode,
        ttl: Duration,
        wait: bool,
    ) -> (OwnerId, Outcome) {
        let owner = OwnerId::draw(&*self.world.node);
        let (limit, permits, block, floor) = (2, 1, 1, Token::default());
        let take =
            Take { mode, limit, permits, ttl, wait, block, floor, info: "{}".into(), vote: None };
        (owner, self.ask(after, owner, Action::Take(take)))
    }
}

/// A waiter that cannot be sent a notice is served when it asks.
pub(crate) fn deaf_but_asking(world: &World) -> Result<(), String> {
    let (mut shelf, _, waiter) = Shelf::deaf(world);
    let served = shelf.ask(4 * S, waiter, Action::Refresh { ttl: S });
    check(matches!(served, Outcome::Granted { .. }), || format!("{served:?}"))
}

/// A waiter that asked lately is served, whether it can be sent a notice or not: it will ask.
pub(crate) fn deaf_but_heard_of(world: &World) -> Result<(), String> {
    let (mut shelf, first, waiter) = Shelf::deaf(world);
    assert_eq!(shelf.ask(S, first, Action::Free { open: false }), Outcome::Freed);
    let served = shelf.ask(S + MS, waiter, Action::Refresh { ttl: S });
    check(matches!(served, Outcome::Granted { .. }), || format!("{served:?}"))
}

/// A permit was left open for whoever comes first; when another one vanishes, its queue is served in order again.
pub(crate) fn vanished_beside(world: &World) -> Result<(), String> {
    let (kind, reachable) = (Kind::Semaphore, true);
    let mut shelf = Shelf::new(world, kind, reachable);
    let (first, granted) = shelf.take(MS, Mode::Permit, 20 * S, false);
    assert!(matches!(granted, Outcome::Granted { .. }), "{granted:?}");
    let (_, granted) = shelf.take(MS, Mode::Permit, S / 2, false);
    assert!(matches!(granted, Outcome::Granted { .. }), "{granted:?}");
    for _ in 0..2 {
        let (_, queued) = shelf.take(MS, Mode::Permit, 20 * S, true);
        assert!(matches!(queued, Outcome::Queued { .. }), "{queued:?}");
    }
    let freed = shelf.ask(100 * MS, first, Action::Free { open: true });
    assert_eq!(freed, Outcome::Freed);
    let (_, late) = shelf.take(700 * MS, Mode::Permit, 20 * S, false);
    check(matches!(late, Outcome::Held { .. }), || format!("past those who wait: {late:?}"))
}

/// The head of the queue gives up while the lock is open for it: the next is told.
pub(crate) fn head_leaves(world: &World) -> Result<(), String> {
    let (mut shelf, first, head) = Shelf::deaf(world);
    let (next, queued) = shelf.take(2 * MS, Mode::Exclusive, 3 * S, true);
    assert!(matches!(queued, Outcome::Queued { .. }), "{queued:?}");
    assert_eq!(shelf.ask(S, first, Action::Free { open: true }), Outcome::Freed);
    assert_eq!(shelf.notices, [Notice::Open { owner: head }]);
    shelf.ask(S + MS, head, Action::Leave { tombstone: None });
    let told = &shelf.notices;
    check(*told == [Notice::Open { owner: next }], || format!("told: {told:?}"))
}

/// Two permits are open and one is taken: the next in the queue has the other.
pub(crate) fn two_permits_open(world: &World) -> Result<(), String> {
    let mut shelf = Shelf::new(world, Kind::Semaphore, true);
    let holders = [(); 2].map(|()| shelf.take(MS, Mode::Permit, 20 * S, false).0);
    let waiters = [(); 2].map(|()| shelf.take(MS, Mode::Permit, 20 * S, true).0);
    for holder in holders {
        assert_eq!(shelf.ask(S, holder, Action::Free { open: true }), Outcome::Freed);
    }
    let entered = shelf.ask(S + MS, waiters[0], Action::Refresh { ttl: S });
    assert!(matches!(entered, Outcome::Granted { .. }), "{entered:?}");
    let told = &shelf.notices;
    let next = matches!(told[..], [Notice::Granted { owner, .. }] if owner == waiters[1]);
    check(next, || format!("told: {told:?}"))
}
