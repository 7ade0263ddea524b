//! Clients that work without a pause while the servers behind them come and go, and what may never be seen meanwhile.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use fencelock::{Client, Code, Gate};
use tokio::task::JoinHandle;

use crate::in_full;

/// The promised time after a failover within which every lock is granted again.
const PROMISED: Duration = Duration::from_secs(1);

/// The same on a machine that has other work: three seconds more, outside of a full run.
pub fn back() -> Duration {
    if in_full() { PROMISED } else { PROMISED + Duration::from_secs(3) }
}

/// The lease of these clients.
const TTL: &str = "2s";
/// How long work lasts under a lock.
const WORK: Duration = Duration::from_millis(1);
/// How long a worker waits for a lock: longer than any failover.
const WAIT: Duration = Duration::from_secs(20);

/// The state that the workers share.
struct Board {
    open: AtomicBool,
    /// Refuses the writes of those who are late.
    gate: Gate,
    locks: Vec<Shelf>,
    /// Acquires that ended with `unavailable` or `timeout`.
    refused: AtomicU64,
}

/// One lock, and what was seen of it.
struct Shelf {
    name: String,
    newest: AtomicU64,
    grants: AtomicU64,
    /// The number written under the lock: one more than the number read under it.
    amount: AtomicU64,
    /// How often it was.
    written: AtomicU64,
    /// The last grants, as long as somebody may ask for them.
    times: Mutex<Vec<Instant>>,
}

/// Workers under way.
struct Load {
    board: Arc<Board>,
    workers: Vec<JoinHandle<()>>,
    /// Open until all was looked at: what a client forgets stays for as long as its session.
    clients: Vec<Client>,
    /// Looks at locks, and holds none.
    witness: Client,
}

impl Load {
    /// Four clients for these locks, each with a worker for every lock.
    async fn start(url: &str, names: &[&str]) -> Self {
        let shelf = |name: &&str| Shelf {
            name: (*name).to_owned(),
            newest: AtomicU64::new(0),
            grants: AtomicU64::new(0),
            amount: AtomicU64::new(0),
            written: AtomicU64::new(0),
            times: Mutex::default(),
        };
        let board = Arc::new(Board {
            open: AtomicBool::new(true),
            gate: Gate::new(),
            locks: names.iter().map(shelf).collect(),
            refused: AtomicU64::new(0),
        });
        let connect = async || {
            let client = Client::builder()
                .option("ttl", TTL)
                .option("timeout", "1s")
                .option("connect_timeout", "1s");
            client.connect(url).await.expect("the servers are there")
        };
        let (mut workers, mut clients) = (Vec::new(), Vec::new());
        for _ in 0..4 {
            let client = connect().await;
            clients.push(client.clone());
            for at in 0..names.len() {
                workers.push(tokio::spawn(work(board.clone(), client.clone(), at)));
            }
        }
        Self { board, workers, clients, witness: connect().await }
    }

    /// Waits until every lock was granted after this moment; when the last of them was, and how those looked that were
    /// late.
    async fn all_granted_after(&self, moment: Instant, within: Duration) -> (Instant, String) {
        let (give_up, mut late) = (Instant::now() + WAIT, String::new());
        loop {
            let first = |shelf: &Shelf| {
                let times = shelf.times.lock().unwrap();
                times.iter().find(|time| **time > moment).copied()
            };
            let firsts: Vec<_> = self.board.locks.iter().map(first).collect();
            if let Some(last) = firsts.iter().copied().collect::<Option<Vec<_>>>() {
                return (last.into_iter().max().expect("there are locks"), late);
            }
            assert!(Instant::now() < give_up, "a lock is granted no more: {late}");
            if moment.elapsed() > within && late.is_empty() {
                for (shelf, _) in self.board.locks.iter().zip(firsts).filter(|at| at.1.is_none()) {
                    let state = self.witness.lock(&shelf.name).inspect().await;
                    late = format!("{late}{}: {state:?} ", shelf.name);
                }
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// Ends the work; how often a lock was granted, and how often refused.
    async fn end(self) -> (u64, u64) {
        self.board.open.store(false, Ordering::Release);
        for worker in self.workers {
            worker.await.expect("a worker saw what may not be");
        }
        for Shelf { name, amount, written, .. } in &self.board.locks {
            let began = Instant::now();
            loop {
                // The last server to come back may have brought another failover about.
                let state = self.witness.lock(name).inspect().await;
                if state.as_ref().is_ok_and(|at| at.holders.is_empty() && at.waiters.is_empty()) {
                    break;
                }
                assert!(began.elapsed() < WAIT, "nobody has {name}, and nobody waits: {state:?}");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            let (amount, written) =
                (amount.load(Ordering::Acquire), written.load(Ordering::Acquire));
            assert_eq!(amount, written, "a write behind the fence of {name} was lost");
        }
        drop(self.clients);
        let grants =
            self.board.locks.iter().map(|shelf| shelf.grants.load(Ordering::Acquire)).sum();
        (grants, self.board.refused.load(Ordering::Acquire))
    }
}

/// The demands on a set of servers.
pub struct Course<'a> {
    /// Where the locks are.
    pub url: &'a str,
    /// The locks.
    pub names: &'a [&'a str],
    /// How soon after a failover every lock is granted again.
    pub within: Duration,
    /// How often the servers fail over.
    pub rounds: usize,
}

/// The usual number of failovers: 3, or 30 with `FENCELOCK_FULL=1`.
pub fn usual_rounds() -> usize {
    if in_full() { 30 } else { 3 }
}

/// How often the leader of an ensemble is killed, or a session ended there: 5 times, or 50 with `FENCELOCK_FULL=1`.
pub fn ensemble_rounds() -> usize {
    if in_full() { 50 } else { 5 }
}

/// Has the servers of a set fail over again and again under load: no token falls, no write behind the fence is lost, and every lock is
/// granted again in time. `fail_over` tells which server went, and when another had taken over.
pub async fn under_load<S>(
    mut set: S,
    course: &Course<'_>,
    mut fail_over: impl FnMut(&mut S, usize) -> (usize, Instant),
    mut rejoin: impl FnMut(&mut S, usize),
) -> S {
    let &Course { url, names, within, rounds } = course;
    let load = Load::start(url, names).await;
    let (mut longest, mut slowest) = (Duration::ZERO, Duration::ZERO);
    for round in 0..rounds {
        load.all_granted_after(Instant::now(), within).await;
        let killed = Instant::now();
        let (old, over) = tokio::task::block_in_place(|| fail_over(&mut set, round));
        let (last, late) = load.all_granted_after(over, within).await;
        let back = last.duration_since(over);
        assert!(
            back <= within,
            "round {round}: a lock was granted {back:?} after the failover: {late}"
        );
        longest = longest.max(back);
        slowest = slowest.max(over - killed);
        tokio::task::block_in_place(|| rejoin(&mut set, old));
    }
    let (grants, refused) = load.end().await;
    println!(
        "{rounds} failovers of at most {slowest:?}; locks granted again within {longest:?}; {grants} grants, {refused} refused"
    );
    set
}

async fn work(board: Arc<Board>, client: Client, at: usize) {
    let shelf = &board.locks[at];
    while board.open.load(Ordering::Acquire) {
        // Tokens rise from a grant to one that was asked for after it.
        let before = shelf.newest.load(Ordering::Acquire);
        match client.lock(&shelf.name).acquire_within(WAIT).await {
            Ok(guard) => {
                let token = guard.token().get();
                assert!(token > before, "token {token} of {} after {before}", shelf.name);
                shelf.newest.fetch_max(token, Ordering::AcqRel);
                shelf.grants.fetch_add(1, Ordering::AcqRel);
                {
                    let mut times = shelf.times.lock().unwrap();
                    if times.len() == 4096 {
                        times.drain(..2048);
                    }
                    times.push(Instant::now());
                }
                let gate =
                    |write: &dyn Fn() -> u64| board.gate.write(&shelf.name, guard.token(), write);
                let read = gate(&|| shelf.amount.load(Ordering::Acquire));
                tokio::time::sleep(WORK).await;
                let write = |read| gate(&|| shelf.amount.swap(read + 1, Ordering::AcqRel));
                if read.and_then(write).is_ok() {
                    shelf.written.fetch_add(1, Ordering::AcqRel);
                }
                // What it answers is not the matter here: the server may be gone.
                let _ = guard.release().await;
            }
            Err(error) if matches!(error.code(), Code::Unavailable | Code::Timeout) => {
                board.refused.fetch_add(1, Ordering::AcqRel);
            }
            Err(error) => panic!("{error}"),
        }
    }
}
