//! A shop with one till, sold in by actors of any language under one lock, while holder after holder is killed.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use fencelock::port::Mode;
use fencelock::runtime::TokioRuntime;
use fencelock_peers::Program;
use rusqlite::Connection;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::clerk::{Clerk, Post};
use crate::conformance::player::{ActorKind, Player};
use crate::protocol::{Call, End, Grant, Options};

/// The lock.
pub const LOCK: &str = "till";
/// The lease of those who sell.
pub const TTL: Duration = Duration::from_millis(500);
/// The promised time after a holder's death: its lease, and a second for a waiter that missed the end.
pub const NEXT_GRANT: Duration = Duration::from_millis(1500);
/// The time that a loaded machine may add to that, for one in twenty.
pub const MACHINE: Duration = Duration::from_secs(2);
/// Tickets of the dead live for 5 s, the grants they may get for a lease each.
const AFTER_DEATH: Duration = Duration::from_secs(15);

/// The object that the lock guards: a number in a file. Each read and write carries the token, and older tokens are refused.
struct Till(Mutex<Connection>);

impl Till {
    fn new() -> Self {
        let file = Connection::open_in_memory().unwrap();
        file.execute_batch(
            "CREATE TABLE till (amount INTEGER, token INTEGER); INSERT INTO till VALUES (0, 0)",
        )
        .unwrap();
        Self(Mutex::new(file))
    }

    fn read(&self, token: u64) -> Option<i64> {
        let statement = "UPDATE till SET token = ?1 WHERE token <= ?1 RETURNING amount";
        self.0.lock().unwrap().query_row(statement, [token.cast_signed()], |row| row.get(0)).ok()
    }

    fn write(&self, token: u64, amount: i64) -> bool {
        let statement = "UPDATE till SET amount = ?2, token = ?1 WHERE token <= ?1";
        self.0.lock().unwrap().execute(statement, (token.cast_signed(), amount)).unwrap() == 1
    }
}

/// The answer to a call; `None` if the actor is gone.
pub async fn ask(actor: &Player, call: Call) -> Option<Value> {
    match actor.ask(call).end.await?.end {
        End::Ok(value) => Some(value),
        End::Error(refusal) => panic!("an actor was refused: {refusal:?}"),
    }
}

/// An actor that is connected.
pub async fn start(program: &Program, url: &str) -> Arc<Player> {
    let clock = Arc::new(TokioRuntime::current().unwrap());
    let actor = Player::launch(&ActorKind::Program(program), clock);
    let connect = Call::Connect { url: url.to_owned(), options: Options::new() };
    ask(&actor, connect).await.expect("it connects");
    Arc::new(actor)
}

/// A grant of the shop's lock; `None` if the actor is gone.
pub async fn acquire(actor: &Player, ttl: Duration) -> Option<Grant> {
    let options = Options::from_iter([("ttl".to_owned(), json!(ttl.as_millis() as u64))]);
    let (lock, mode) = (LOCK.to_owned(), Mode::default());
    let call = Call::Acquire { lock, mode, permits: None, scope: None, options };
    Some(Grant::deserialize(ask(actor, call).await?).expect("an acquire answers a grant"))
}

/// The state shared by the workers and the task that kills them.
struct Shop {
    till: Till,
    open: AtomicBool,
    /// The workers in the section now, the newest last.
    inside: Mutex<Vec<Visit>>,
    /// How often each seat had the lock.
    granted: Vec<AtomicU64>,
    sold: AtomicU64,
    refused: AtomicU64,
}

/// One clerk's time in the section.
struct Visit {
    seat: usize,
    token: u64,
    /// Somebody came in before this one left.
    overtaken: bool,
}

impl Shop {
    fn grants(&self) -> u64 {
        self.granted.iter().map(|seat| seat.load(Ordering::Acquire)).sum()
    }

    fn enter(&self, seat: usize, token: u64) {
        let mut inside = self.inside.lock().unwrap();
        inside.iter_mut().for_each(|visit| visit.overtaken = true);
        inside.push(Visit { seat, token, overtaken: false });
    }

    /// Whether nobody else was there.
    fn leave(&self, seat: usize, token: u64) -> bool {
        let mut inside = self.inside.lock().unwrap();
        let place = inside.iter().position(|visit| (visit.seat, visit.token) == (seat, token));
        !inside.remove(place.expect("who leaves had come in")).overtaken
    }
}

/// Sells one thing after the other, until the shop closes or the clerk is killed.
async fn sell(shop: Arc<Shop>, seat: usize, clerk: Clerk) {
    while shop.open.load(Ordering::Acquire) {
        let Some(held) = clerk.acquire().await else { return };
        let token = held.token;
        shop.granted[seat].fetch_add(1, Ordering::AcqRel);
        shop.enter(seat, token);
        let amount = shop.till.read(token);
        tokio::time::sleep(Duration::from_millis(3)).await;
        let written = amount.is_some_and(|amount| shop.till.write(token, amount + 1));
        if written {
            shop.sold.fetch_add(1, Ordering::AcqRel);
        } else {
            shop.refused.fetch_add(1, Ordering::AcqRel);
        }
        let alone = shop.leave(seat, token);
        let Some(held) = clerk.release(held).await else { return };
        // If somebody newer was there, it must know that its time is over. The till alone would not tell of one who came
        // between the write and the end.
        assert!(written && alone || !held, "two holders at once");
    }
}

/// Fails with what went wrong for a clerk, other than the dead one, who has stopped selling while the shop is open.
async fn at_work(staff: &mut [(Clerk, JoinHandle<()>)], dead: Option<usize>) {
    for (seat, (_, work)) in staff.iter_mut().enumerate() {
        if dead != Some(seat) && work.is_finished() {
            work.await.expect("nobody fails");
            unreachable!("nobody stops before the shop closes");
        }
    }
}

/// Has a clerk at each post sell, and kills so many while they hold the lock, and a fourth as many more wherever they are:
/// what is in the till stays exact, the next grant comes in time, and nothing is left.
pub async fn kill_clerks(url: &str, posts: &[Post], kills: usize) {
    let shop = Arc::new(Shop {
        till: Till::new(),
        open: AtomicBool::new(true),
        inside: Mutex::default(),
        granted: posts.iter().map(|_| AtomicU64::new(0)).collect(),
        sold: AtomicU64::new(0),
        refused: AtomicU64::new(0),
    });
    let mut staff = Vec::new();
    for (seat, post) in posts.iter().enumerate() {
        let clerk = Clerk::start(post, url).await;
        staff.push((clerk.clone(), tokio::spawn(sell(shop.clone(), seat, clerk))));
    }
    let (mut waits, anybody) = (Vec::new(), |round| round % 5 == 4);
    // A short run meets some of the seats, each time others; a whole one meets every one.
    let first = RandomState::new().build_hasher().finish() as usize % posts.len();
    let mut deaths = vec![0; posts.len()];
    for round in 0..kills * 5 / 4 {
        // Let everybody sell, a little longer each time, and wait for one to be in the section. Each fifth death meets
        // whoever's turn it is, be it waiting or between two sales.
        tokio::time::sleep(Duration::from_millis(20 + round as u64 % 17)).await;
        let seat = loop {
            if let Some(visit) = shop.inside.lock().unwrap().last() {
                break if anybody(round) { (first + round / 5) % posts.len() } else { visit.seat };
            }
            at_work(&mut staff, None).await;
            // They stay in for 3 ms.
            tokio::time::sleep(Duration::from_millis(1)).await;
        };
        deaths[seat] += 1;
        let (victim, work) = &mut staff[seat];
        tokio::task::block_in_place(|| victim.kill());
        let (dead, before) = (Instant::now(), shop.grants());
        work.await.expect("a killed clerk ends its work in peace");
        while shop.grants() == before {
            assert!(
                dead.elapsed() < NEXT_GRANT + MACHINE,
                "no grant after the death of {:?}",
                posts[seat]
            );
            at_work(&mut staff, Some(seat)).await;
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        if !anybody(round) {
            waits.push(dead.elapsed());
        }
        let clerk = Clerk::start(&posts[seat], url).await;
        staff[seat] = (clerk.clone(), tokio::spawn(sell(shop.clone(), seat, clerk)));
    }
    shop.open.store(false, Ordering::Release);
    for (clerk, work) in staff {
        work.await.expect("work ends in peace");
        clerk.leave().await;
    }
    for (post, granted) in posts.iter().zip(&shop.granted) {
        assert!(granted.load(Ordering::Acquire) > 0, "{post:?} never had the lock");
    }
    let sold = shop.sold.load(Ordering::Acquire);
    assert_eq!(
        shop.till.read(u64::MAX >> 1),
        Some(sold.cast_signed()),
        "what was sold is in the till"
    );
    waits.sort();
    let (most, longest) = (waits[waits.len() * 19 / 20 - 1], waits[waits.len() - 1]);
    println!(
        "{kills} holders killed, next grant after {most:?} for 19 of 20, {longest:?} at most (promised {NEXT_GRANT:?}); {sold} sold, {} refused",
        shop.refused.load(Ordering::Acquire)
    );
    // A small run may meet a moment in which the machine does something else; a whole one has to keep the promise.
    let whole = crate::in_full();
    println!("deaths by seat, {first} the first of those at any moment: {deaths:?}");
    assert!(!whole || deaths.iter().all(|deaths| *deaths > 0), "somebody never died: {deaths:?}");
    let promised = if whole { longest } else { most };
    assert!(promised <= NEXT_GRANT, "{waits:?}");
    nothing_left(url).await;
}

/// Waits until nobody holds the shop's lock or waits for it, and takes it once.
pub async fn nothing_left(url: &str) {
    let client = fencelock::connect(url).await.unwrap();
    let end = Instant::now() + AFTER_DEATH;
    loop {
        let state = client.lock(LOCK).inspect().await.unwrap();
        if state.holders.is_empty() && state.waiters.is_empty() {
            break;
        }
        assert!(Instant::now() < end, "left of the dead: {state:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    client
        .lock(LOCK)
        .try_acquire()
        .await
        .unwrap()
        .expect("it is free")
        .release()
        .await
        .check()
        .unwrap();
}

/// How many holders of locks that live with a session are frozen: 5, or 200 with `FENCELOCK_FULL=1`.
pub fn frozen_rounds() -> usize {
    if crate::in_full() { 200 } else { 5 }
}

/// Freezes so many holders, one after the other, until the next one has the lock: the first thing asked of it then is answered honestly.
/// `leases` are those of the one that is frozen and of the next one.
pub async fn freeze_holders(
    program: &Program,
    url: &str,
    rounds: usize,
    leases: [Duration; 2],
    within: Duration,
) {
    let [short, long] = leases;
    for _ in 0..rounds {
        let (frozen, next) = (start(program, url).await, start(program, url).await);
        let old = acquire(&frozen, short).await.unwrap();
        let waiting = tokio::spawn({
            let next = next.clone();
            async move { acquire(&next, long).await.unwrap() }
        });
        tokio::task::block_in_place(|| frozen.freeze(true));
        let stopped = Instant::now();
        let new = waiting.await.unwrap();
        assert!(stopped.elapsed() < within + MACHINE);
        assert!(new.token > old.token);
        frozen.freeze(false);
        let held = ask(&frozen, Call::IsHeld { guard: old.guard }).await.unwrap();
        assert_eq!(held, json!(false), "at the first look after the freeze");
        let release = ask(&frozen, Call::Release { guard: old.guard }).await.unwrap();
        assert_eq!(release, json!("already_lost"));
        assert_eq!(ask(&next, Call::IsHeld { guard: new.guard }).await.unwrap(), json!(true));
        assert_eq!(
            ask(&next, Call::Release { guard: new.guard }).await.unwrap(),
            json!("released")
        );
    }
    nothing_left(url).await;
}
