//! Every await point of acquire and release, of several as one and of a scope's second entry, one
//! after the other: the future is dropped there, and nothing of it stays.
//!
//! Virtual time over the memory store behind a network in which every request and every answer takes a millisecond. Where
//! more faults meet, the simulator's random worlds take over.

use std::sync::Arc;
use std::time::Duration;

use fencelock::driver::memory::Memory;
use fencelock::port::Runtime;
use fencelock::{Client, Guard, Lock, Stats};
use fencelock_sim::{Chaos, Fault};
use fencelock_sim::{Sim, SimNode};
use fencelock_worlds::cancel::{Cancel, Cancelled};

const MS: Duration = Duration::from_millis(1);
/// More polls than any of these futures takes.
const MOST: u32 = 40;
/// By when whatever was dropped is undone: a round trip, and the next one's.
const UNDONE: Duration = Duration::from_millis(20);

/// A world with two clients of one store.
struct World {
    node: Arc<SimNode>,
    memory: Memory,
    one: Client,
    two: Client,
}

impl World {
    async fn new(sim: &Sim, fault: Fault) -> Self {
        let (node, memory) = (sim.node(0), Memory::new());
        let one = client(&node, &memory, fault).await;
        let two = client(&node, &memory, Fault::None).await;
        Self { node, memory, one, two }
    }

    async fn sleep(&self, time: Duration) {
        self.node.sleep_until(self.node.now() + time).await;
    }

    /// A task that acquires, and gives back after a while.
    fn visit(&self, lock: &Lock, stays: Duration) {
        let (node, pending) = (self.node.clone(), lock.acquire());
        self.node.spawn(Box::pin(async move {
            let guard = pending.await.expect("it is granted");
            node.sleep_until(node.now() + stays).await;
            guard.release().await.check().expect("it was held");
        }));
    }

    /// Runs a future up to the moment it is dropped at, unless it ends before.
    async fn cut<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
        cancel: Cancel,
    ) -> Option<T> {
        let (sender, ended) = futures_channel::oneshot::channel();
        let cut = Cancelled::new(&self.node, cancel, work);
        self.node.spawn(Box::pin(async move { drop(sender.send(cut.await)) }));
        ended.await.expect("the task ends")
    }

    /// Nothing is held, nobody waits, no client carries anything, and whoever comes gets the lock.
    async fn is_clean(&self, what: &str) {
        for name in ["x", "y"] {
            let state = self.two.lock(name).inspect().await.expect("memory answers");
            assert!(state.holders.is_empty() && state.waiters.is_empty(), "{what}: {state:?}");
        }
        assert_eq!([self.one.stats(), self.two.stats()], [Stats::default(); 2], "{what}");
        let fresh = client(&self.node, &self.memory, Fault::None).await;
        let guard = fresh.all(["x", "y"]).try_acquire().await.expect("memory answers");
        guard.expect("they are free").release().await.check().expect("they were held");
    }
}

async fn client(node: &Arc<SimNode>, memory: &Memory, fault: Fault) -> Client {
    let store = Chaos::new(memory.store(node.clone()), node.clone(), move || fault);
    Client::builder().runtime(node.clone()).store(store).await.expect("memory connects")
}

/// The others that use the lock at the same time.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Company {
    Nobody,
    /// Another client, which held before and waits again.
    Abroad,
    /// Another task of this client, and a hold that passes on inside.
    Inside,
    /// The same, but nothing passes on inside.
    InTurn,
    Both,
}

const COMPANIES: [Company; 5] =
    [Company::Nobody, Company::Abroad, Company::Inside, Company::InTurn, Company::Both];
const NETWORKS: [Fault; 3] = [Fault::None, Fault::Late(MS), Fault::Late(Duration::from_micros(3))];

fn lock(client: &Client, company: Company) -> Lock {
    client.lock("x").local(if company == Company::InTurn { 0 } else { 16 })
}

async fn join(world: &World, company: Company, stays: Duration) {
    if matches!(company, Company::Abroad | Company::Both) {
        world.visit(&world.two.lock("x"), stays);
    }
    if matches!(company, Company::Inside | Company::InTurn | Company::Both) {
        world.visit(&lock(&world.one, company), stays);
    }
    world.sleep(5 * MS).await;
}

/// Drops an acquire; whether it had not ended by then.
async fn acquire(world: &World, company: Company, cancel: Cancel) -> bool {
    join(world, company, 10 * MS).await;
    let won: Option<Guard> = world
        .cut(lock(&world.one, company).acquire(), cancel)
        .await
        .map(|won| won.expect("granted"));
    let ended = won.is_some();
    if let Some(guard) = won {
        guard.release().await.check().expect("it was held");
    }
    world.sleep(UNDONE + 30 * MS).await;
    !ended
}

/// The same for a release; whoever waits for the lock gets it.
async fn release(world: &World, company: Company, cancel: Cancel) -> bool {
    let guard = lock(&world.one, company).acquire().await.expect("it is free");
    join(world, company, MS).await;
    let released = world.cut(guard.release(), cancel).await;
    world.sleep(UNDONE).await;
    released.is_none()
}

/// Drops an acquire of several; somebody else holds one of them, or the other, or both in turn.
async fn several(world: &World, company: Company, cancel: Cancel) -> bool {
    join(world, company, 10 * MS).await;
    if company == Company::Both {
        world.visit(&world.two.lock("y"), 20 * MS);
        world.sleep(5 * MS).await;
    }
    let won = world.cut(world.one.all(["y", "x"]).acquire(), cancel).await;
    let ended = won.is_some();
    if let Some(guard) = won {
        guard.expect("granted").release().await.check().expect("they were held");
    }
    world.sleep(UNDONE + 40 * MS).await;
    !ended
}

/// Drops a second entry that makes the lease longer; the first guard is given back after it, or while it is under way.
async fn enter_again(world: &World, company: Company, cancel: Cancel) -> bool {
    let scope = world.one.scope();
    let first = scope.lock("x").ttl(Duration::from_secs(1)).acquire().await.expect("it is free");
    let again = scope.lock("x").ttl(Duration::from_secs(10)).acquire();
    if company == Company::Inside {
        let node = world.node.clone();
        world.node.spawn(Box::pin(async move {
            node.sleep_until(node.now() + MS / 2).await;
            drop(first);
        }));
        let ended = world.cut(again, cancel).await.is_some();
        world.sleep(UNDONE).await;
        return !ended;
    }
    let ended = world.cut(again, cancel).await.is_some();
    first.release().await.check().expect("it was held");
    world.sleep(UNDONE).await;
    !ended
}

/// Goes through all await points in all company and on all networks; how many there were.
fn all(what: &str, seed: u64, dropped: &impl AsyncFn(&World, Company, Cancel) -> bool) -> u64 {
    let mut points = 0;
    for company in COMPANIES {
        for fault in NETWORKS {
            // Before the next poll, when something has woken it already; and at the end of a poll.
            let moments = |polls| [Cancel::Poll(polls), Cancel::Await(polls + 1)];
            for polls in 0.. {
                assert!(polls < MOST, "{what} does not end, {company:?}, {fault:?}");
                let mut cuts = 0;
                for cancel in moments(polls) {
                    let what = format!("{what}, {company:?}, {fault:?}, {cancel:?}, seed {seed}");
                    let sim = Sim::new(seed);
                    let cut = sim.block_on(async {
                        let world = World::new(&sim, fault).await;
                        let cut = dropped(&world, company, cancel).await;
                        world.is_clean(&what).await;
                        cut
                    });
                    cuts += u64::from(cut.expect("the world goes on"));
                }
                if cuts == 0 {
                    break;
                }
                points += cuts;
            }
        }
    }
    points
}

/// So many orders of what happens at one instant in the first length, four times as many in the full one.
fn orders(first: u64) -> u64 {
    let full = std::env::var("FENCELOCK_FULL").is_ok_and(|full| full == "1");
    if full { first * 4 } else { first }
}

#[test]
fn b06_b18_an_acquire_dropped_at_any_await_leaves_nothing() {
    let points: u64 = (0..orders(4)).map(|seed| all("acquire", seed, &acquire)).sum();
    println!("{points} await points");
    assert!(points > 4 * 15, "acquires without await points: {points}");
}

#[test]
fn b51_a_release_dropped_at_any_await_leaves_nothing() {
    let points: u64 = (0..orders(4)).map(|seed| all("release", seed, &release)).sum();
    println!("{points} await points");
    assert!(points > 4 * 15, "releases without await points: {points}");
}

#[test]
fn an_acquire_of_several_dropped_at_any_await_leaves_nothing() {
    let points: u64 = (0..4).map(|seed| all("several", seed, &several)).sum();
    println!("{points} await points");
    assert!(points > 4 * 20, "acquires without await points: {points}");
}

#[test]
fn a_second_entry_dropped_at_any_await_leaves_nothing() {
    let points: u64 = (0..4).map(|seed| all("entry", seed, &enter_again)).sum();
    println!("{points} await points");
    assert!(points > 4 * 10, "entries without await points: {points}");
}
