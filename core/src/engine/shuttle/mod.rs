//! The table under shuttle: the order of threads is searched at every lock. Time stands still here, so nothing but
//! wake-ups moves a waiter: one that is lost shows as a deadlock.

mod closing;
mod loss;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use ::shuttle::sync::atomic::{AtomicU64, Ordering};
use ::shuttle::{future, thread};

use super::hold::TicketEnd;
use super::table::Table;
use super::tick::rest;
use super::{Engine, GivenUp, LockId, Request, Wait};
use crate::driver::memory::Memory;
use crate::event::Events;
use crate::fence::Token;
use crate::port::{
    Action, BoxFuture, Instant, Kind, LeaseHandle, LockKey, Notice, Outcome, OwnerId, Runtime,
    RuntimeHandle,
};
use crate::runtime::sync::Mutex;

/// Tasks run as shuttle's; the clock stands still; the dice count.
#[derive(Default)]
struct Still(Mutex<u64>);

thread_local! {
    /// The tasks of the present order. All threads of a search are run by one.
    static TASKS: RefCell<Vec<future::JoinHandle<()>>> = const { RefCell::new(Vec::new()) };
}

/// Ends the tasks that go on behind a world, each in its turn: what is left at the end of an order is dropped where it cannot wait for a
/// mutex that another one has.
fn end_tasks() {
    while let Some(task) = TASKS.with_borrow_mut(Vec::pop) {
        task.abort();
        let _ = future::block_on(task);
    }
}

/// So many orders in the full length, a tenth of them in the first.
fn length(orders: usize) -> usize {
    let full = std::env::var("FENCELOCK_FULL").is_ok_and(|full| full == "1");
    if full { orders } else { orders / 10 }
}

/// Tries `world` in so many orders of its threads, by chance.
fn check_random(world: impl Fn() + Send + Sync + 'static, orders: usize) {
    ::shuttle::check_random(searched(world), length(orders));
}

/// By priorities that change so many times.
fn check_pct(world: impl Fn() + Send + Sync + 'static, orders: usize, changes: usize) {
    ::shuttle::check_pct(searched(world), length(orders), changes);
}

/// A world whose mutexes are points of the search.
fn searched(world: impl Fn() + Send + Sync + 'static) -> impl Fn() + Send + Sync + 'static {
    move || {
        crate::runtime::sync::searched::begin();
        world();
        end_tasks();
    }
}

const NOW: Instant = Instant::from_nanos(1_000_000_000);

impl Runtime for Still {
    fn now(&self) -> Instant {
        NOW
    }
    fn wall(&self) -> u64 {
        1_000_000
    }
    fn sleep_until(&self, at: Instant) -> BoxFuture<'static, ()> {
        if at <= NOW { Box::pin(std::future::ready(())) } else { Box::pin(std::future::pending()) }
    }
    fn spawn(&self, task: BoxFuture<'static, ()>) {
        let task = future::spawn(task);
        TASKS.with_borrow_mut(|tasks| tasks.push(task));
    }
    fn random(&self, bytes: &mut [u8]) {
        let mut count = self.0.lock();
        *count += 1;
        bytes.fill(0);
        let digits = count.to_le_bytes();
        let length = bytes.len().min(digits.len());
        bytes[..length].copy_from_slice(&digits[..length]);
    }
}

fn lock_id() -> LockId {
    LockId { key: LockKey::new("x"), kind: Kind::Mutex }
}

async fn engine(memory: &Memory, runtime: &RuntimeHandle) -> Arc<Engine> {
    let store = LeaseHandle::new(memory.store(runtime.clone()));
    let events = Events::new(None, runtime.clone());
    Engine::start(store, runtime.clone(), events).await.expect("memory connects")
}

async fn release(engine: &Arc<Engine>, local: &super::Local) {
    match engine.give_up(local) {
        GivenUp::Free(hold) => {
            let _ = engine.free(hold).await;
        }
        GivenUp::HandedOver(hold, batch) => {
            let _ = engine.hand_over(hold, batch).await;
        }
        GivenUp::Passed | GivenUp::NotMine => {}
    }
}

/// Nothing is held, queued or waited for on the store.
async fn assert_free(engine: &Engine, lock: &LockId, runtime: &RuntimeHandle) {
    let owner = OwnerId::draw(&**runtime);
    let step = lock.step(owner, Action::Read);
    let Some(Ok(Outcome::State(state))) = engine.store.step(vec![step]).await.pop() else {
        panic!("no state")
    };
    assert_eq!((state.holders.len(), state.waiters.len()), (0, 0));
    assert_eq!(engine.load(), (0, 0));
}

/// Whether one of the threads gives up on the way, and which.
#[derive(Clone, Copy, PartialEq)]
enum GivesUp {
    Nobody,
    /// One that shares its client with another.
    Together,
    /// One that has a client of its own.
    Alone,
}

/// Threads of two clients take the lock in turn.
fn world(local: u32, gives_up: GivesUp) {
    future::block_on(async move {
        let runtime: RuntimeHandle = Arc::new(Still::default());
        let memory = Memory::new();
        let cores = [
            engine(&memory, &runtime).await,
            engine(&memory, &runtime).await,
            engine(&memory, &runtime).await,
        ];
        let key = lock_id();
        let inside = Arc::new(AtomicU64::new(0));
        let newest = Arc::new(AtomicU64::new(0));
        let threads: VecDeque<_> = (0..4)
            .map(|number: usize| {
                let alone = gives_up == GivesUp::Alone && number == 0;
                let (engine, key) =
                    (cores[if alone { 2 } else { number % 2 }].clone(), key.clone());
                let (inside, newest) = (inside.clone(), newest.clone());
                thread::spawn(move || {
                    future::block_on(async {
                        if gives_up != GivesUp::Nobody && number == 0 {
                            // Polled once, dropped: whatever it had begun is taken back or inherited.
                            let mut acquire = Box::pin(engine.acquire(
                                &key,
                                Request::of_a_mutex(local),
                                Wait::Forever,
                            ));
                            let won = std::future::poll_fn(|context| {
                                std::task::Poll::Ready(acquire.as_mut().poll(context))
                            })
                            .await;
                            if let std::task::Poll::Ready(Ok(Some(local))) = won {
                                engine.abandon(&local);
                            }
                            return;
                        }
                        let held = engine
                            .acquire(&key, Request::of_a_mutex(local), Wait::Forever)
                            .await
                            .unwrap()
                            .unwrap();
                        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two holders");
                        assert!(
                            newest.swap(held.token.get(), Ordering::SeqCst) < held.token.get(),
                            "tokens rise"
                        );
                        inside.fetch_sub(1, Ordering::SeqCst);
                        release(&engine, &held).await;
                    });
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        for engine in &cores {
            engine.close(Duration::from_secs(1)).await;
        }
        let last = engine(&memory, &runtime).await;
        assert_free(&last, &key, &runtime).await;
        assert!(cores.iter().all(|engine| engine.load() == (0, 0)));
        last.close(Duration::ZERO).await;
    });
}

#[test]
fn b08_threads_of_two_clients_take_turns() {
    check_random(|| world(0, GivesUp::Nobody), 400);
    check_pct(|| world(0, GivesUp::Nobody), 400, 3);
}

#[test]
fn b08_a_hold_passes_on_inside() {
    check_random(|| world(16, GivesUp::Nobody), 400);
    check_pct(|| world(16, GivesUp::Nobody), 400, 3);
}

#[test]
fn a_waiter_that_gives_up_strands_nobody() {
    for local in [0, 16] {
        check_random(move || world(local, GivesUp::Together), 400);
        check_random(move || world(local, GivesUp::Alone), 400);
        check_pct(move || world(local, GivesUp::Together), 400, 3);
    }
}

/// The client's task is woken by whatever becomes due while it goes to rest.
#[test]
fn the_wheel_sleeps_through_nothing() {
    check_random(
        || {
            let runtime: RuntimeHandle = Arc::new(Still::default());
            let table = Arc::new(Mutex::new(Table::new(runtime.clone())));
            let owners = [OwnerId::draw(&*runtime), OwnerId::draw(&*runtime)];
            for owner in owners {
                let mut table = table.lock();
                assert!(table.ask(owner, &lock_id(), &Request::of_a_mutex(0), NOW).is_some());
                let queued = Outcome::Queued {
                    last: Token::default(),
                    left: None,
                    ahead: 0,
                    foreign: false,
                };
                table.queued(owner, NOW, &queued, NOW);
            }
            let opener = table.clone();
            let told = thread::spawn(move || {
                assert!(opener.lock().notice(&Notice::Open { owner: owners[0] }, NOW));
            });
            let pusher = table.clone();
            let granted = Notice::Granted {
                owner: owners[1],
                token: Token::new(7),
                ttl: Duration::from_secs(5),
                drawn: 1,
            };
            let pushed = thread::spawn(move || assert!(pusher.lock().notice(&granted, NOW)));
            let waiting = table.clone();
            let waiter = thread::spawn(move || {
                future::block_on(async {
                    let turn = std::future::poll_fn(|context| {
                        waiting.lock().poll_turn(owners[1], context)
                    })
                    .await;
                    assert!(matches!(turn, TicketEnd::Won(hold) if hold.token == Token::new(7)));
                });
            });
            future::block_on(async {
                assert!(!rest(&table, &runtime).await);
                let work = table.lock().take_due(NOW);
                assert_eq!(work.steps.first().map(|step| step.owner), Some(owners[0]));
            });
            for thread in [told, pushed, waiter] {
                thread.join().unwrap();
            }
        },
        2000,
    );
}
