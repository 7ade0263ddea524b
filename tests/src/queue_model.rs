//! Random calls to the model of the entry queue and to a store: outcome by outcome, notice by notice.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use fencelock::port::{
    Applied, Entry, Failure, LockKey, Mode, OwnerId, QueueNotice, QueueSink, QueueStore, Rank,
    RuntimeHandle, SessionId, Standing,
};
use fencelock::runtime::TokioRuntime;
use fencelock_sim::{Dice, MemoryQueue, MemoryQueueStore};

const STEPS: usize = 120;
const CLIENTS: usize = 3;
/// Long enough that no session ends by itself.
const TTL: Duration = Duration::from_secs(60);
const PATIENCE: Duration = Duration::from_secs(10);

/// Which entries one lock has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Modes {
    /// All kinds beside each other, in one order.
    Any,
    /// Of one kind only: the store has no order between kinds.
    OneKind,
}

const ALL: &[Mode] = &[Mode::Exclusive, Mode::Read, Mode::Write, Mode::Permit];

type Heard = Arc<Mutex<Vec<QueueNotice>>>;

/// A client of both stores.
struct Pair<S> {
    model: MemoryQueueStore,
    store: S,
    sessions: (SessionId, SessionId),
    heard: (Heard, Heard),
}

/// An entry that was made in both.
struct Made {
    lock: LockKey,
    owner: OwnerId,
    mode: Mode,
    ranks: (Rank, Rank),
    /// The fence in the store under test.
    fence: u64,
}

struct Run<S> {
    pairs: Vec<Pair<S>>,
    modes: Modes,
    made: Vec<Made>,
    /// Owner ids that left without an entry, by client.
    left: Vec<Vec<(LockKey, OwnerId)>>,
    newest: BTreeMap<LockKey, u64>,
    dice: Dice,
    runtime: RuntimeHandle,
}

fn sink(heard: &Heard) -> QueueSink {
    let heard = heard.clone();
    Arc::new(move |notice| heard.lock().unwrap().push(notice))
}

/// The parts of a failure that are compared.
fn code<T>(answer: Result<T, Failure>) -> Result<T, (fencelock::Code, Applied)> {
    answer.map_err(|failure| (failure.error.code(), failure.applied))
}

fn same<T: PartialEq + Debug>(what: &str, model: &T, store: &T) {
    assert_eq!(model, store, "{what}: the model, then the store");
}

impl<S: QueueStore> Run<S> {
    async fn new(connect: &impl AsyncFn(RuntimeHandle) -> S, modes: Modes, seed: u64) -> Self {
        let runtime: RuntimeHandle =
            Arc::new(TokioRuntime::current().expect("the test runs on tokio"));
        let (memory, mut pairs) = (MemoryQueue::new(runtime.clone()), Vec::new());
        for _ in 0..CLIENTS {
            let (model, store, heard) =
                (memory.store(), connect(runtime.clone()).await, <(Heard, Heard)>::default());
            let sessions = (
                model.open(TTL, sink(&heard.0)).await.unwrap(),
                store.open(TTL, sink(&heard.1)).await.unwrap(),
            );
            pairs.push(Pair { model, store, sessions, heard });
        }
        let left = (0..CLIENTS).map(|_| Vec::new()).collect();
        let (made, newest, dice) = (Vec::new(), BTreeMap::new(), Dice::new(seed));
        Self { pairs, modes, made, left, newest, dice, runtime }
    }

    fn below(&mut self, most: usize) -> usize {
        self.dice.below(most as u64) as usize
    }

    /// Which entry has this rank.
    fn number(&self, lock: &LockKey, rank: &Rank) -> usize {
        let is =
            |made: &Made| made.lock == *lock && (made.ranks.0 == *rank || made.ranks.1 == *rank);
        self.made.iter().position(is).expect("an entry that was made")
    }

    fn standings(&self, lock: &LockKey, all: &[Standing]) -> Vec<(usize, Mode)> {
        let plain = |one: &Standing| (self.number(lock, &one.rank), one.mode);
        all.iter().map(plain).collect()
    }

    fn notices(&self, heard: &Heard) -> Vec<String> {
        let all = heard.lock().unwrap().clone();
        let plain = |notice| match notice {
            QueueNotice::Gone { lock, rank } => format!("{:?}", self.number(&lock, &rank)),
            other => format!("{other:?}"),
        };
        let mut all: Vec<_> = all.into_iter().map(plain).collect();
        all.sort();
        all
    }

    async fn step(&mut self) {
        let client = self.below(CLIENTS);
        let lock = LockKey::new(self.dice.pick(&["x", "x/y"]));
        let entry = (!self.made.is_empty()).then(|| self.below(self.made.len()));
        match (self.dice.below(14), entry) {
            (0..5, _) | (_, None) => self.join(client, lock).await,
            (5..8, Some(entry)) => self.leave(client, entry).await,
            (8, _) => self.refuse(client, lock).await,
            (9..12, _) => self.watch(client, lock).await,
            (12, _) if self.dice.chance(300) => self.renew(client).await,
            _ => self.list(client, lock).await,
        }
        self.compare_notices().await;
    }

    async fn join(&mut self, client: usize, lock: LockKey) {
        let mode = match (self.modes, lock.as_str()) {
            (Modes::OneKind, "x") => Mode::Permit,
            (Modes::OneKind, _) => self.dice.pick(&ALL[..3]),
            (Modes::Any, _) => self.dice.pick(ALL),
        };
        let refused =
            self.left[client].iter().rfind(|(of, _)| *of == lock).map(|(_, owner)| *owner);
        let owner = refused.filter(|_| self.dice.chance(400));
        let owner = owner.unwrap_or_else(|| OwnerId::draw(&*self.runtime));
        let (limit, info) = (self.dice.below(9) as u32, r#"{"info":"a\nb"}"#.into());
        let entry = Entry { owner, mode, limit, info };
        let Pair { model, store, sessions, .. } = &self.pairs[client];
        let one = code(model.join(sessions.0, &lock, &entry).await);
        let other = code(store.join(sessions.1, &lock, &entry).await);
        let (Ok(Some(one)), Ok(Some(other))) = (&one, &other) else {
            let plain = |joined: Result<Option<_>, _>| joined.map(|joined| joined.is_some());
            return same("join", &plain(one), &plain(other));
        };
        let ranks = (one.rank.clone(), other.rank.clone());
        self.drawn(&lock, other.fence);
        let (before, also) = (one.before.clone(), other.before.clone());
        self.made.push(Made { lock: lock.clone(), owner, mode, ranks, fence: other.fence });
        same("join", &self.standings(&lock, &before), &self.standings(&lock, &also));
    }

    /// Fences rise.
    fn drawn(&mut self, lock: &LockKey, fence: u64) {
        let before = self.newest.insert(lock.clone(), fence);
        assert!(before < Some(fence), "{fence} after {before:?}");
    }

    async fn leave(&mut self, client: usize, entry: usize) {
        let (with_rank, made) = (self.dice.chance(600), &self.made[entry]);
        let Pair { model, store, sessions, .. } = &self.pairs[client];
        let (one, other) = (Some(&made.ranks.0), Some(&made.ranks.1));
        let (one, other) = (one.filter(|_| with_rank), other.filter(|_| with_rank));
        let one = model.leave(sessions.0, &made.lock, made.owner, one).await;
        let other = store.leave(sessions.1, &made.lock, made.owner, other).await;
        same("leave", &code(one), &code(other));
    }

    /// Leaves before it joins.
    async fn refuse(&mut self, client: usize, lock: LockKey) {
        let owner = OwnerId::draw(&*self.runtime);
        let Pair { model, store, sessions, .. } = &self.pairs[client];
        let one = model.leave(sessions.0, &lock, owner, None).await;
        let other = store.leave(sessions.1, &lock, owner, None).await;
        same("leave without an entry", &code(one), &code(other));
        self.left[client].push((lock, owner));
    }

    /// Watches some entries, of which some are gone.
    async fn watch(&mut self, client: usize, lock: LockKey) {
        let mut known = (Vec::new(), Vec::new());
        for number in 0..self.made.len() {
            if self.made[number].lock != lock || self.dice.chance(600) {
                continue;
            }
            let Made { mode, ref ranks, .. } = self.made[number];
            known.0.push(Standing { rank: ranks.0.clone(), mode });
            known.1.push(Standing { rank: ranks.1.clone(), mode });
        }
        let Pair { model, store, sessions, .. } = &self.pairs[client];
        let one = code(model.watch(sessions.0, &lock, &known.0).await);
        let other = code(store.watch(sessions.1, &lock, &known.1).await);
        let plain = |gone: Result<Vec<Rank>, _>| {
            gone.map(|all| all.iter().map(|rank| self.number(&lock, rank)).collect::<Vec<_>>())
        };
        same("watch", &plain(one), &plain(other));
    }

    /// Ends a session, calls it once more, and opens another one.
    async fn renew(&mut self, client: usize) {
        let Pair { model, store, sessions, .. } = &self.pairs[client];
        model.end(sessions.0).await.expect("it answers");
        store.end(sessions.1).await.expect("it answers");
        for lock in ["x", "x/y"] {
            self.list(client, LockKey::new(lock)).await;
            self.join(client, LockKey::new(lock)).await;
            self.refuse(client, LockKey::new(lock)).await;
            self.watch(client, LockKey::new(lock)).await;
        }
        let Pair { model, store, sessions, .. } = &self.pairs[client];
        let beats = (model.beat(sessions.0).await, store.beat(sessions.1).await);
        // How much of the session a heartbeat is worth is the store's own.
        same("beat", &code(beats.0).map(drop), &code(beats.1).map(drop));
        let Pair { model, store, sessions, heard } = &mut self.pairs[client];
        sessions.0 = model.open(TTL, sink(&heard.0)).await.unwrap();
        sessions.1 = store.open(TTL, sink(&heard.1)).await.unwrap();
        let beats = (model.beat(sessions.0).await, store.beat(sessions.1).await);
        // How much of the session a heartbeat is worth is the store's own.
        same("beat", &code(beats.0).map(drop), &code(beats.1).map(drop));
        self.left[client].clear();
    }

    async fn list(&self, client: usize, lock: LockKey) {
        let Pair { model, store, .. } = &self.pairs[client];
        let (one, other) = (model.list(&lock).await.unwrap(), store.list(&lock).await.unwrap());
        for view in &other {
            let made = &self.made[self.number(&lock, &view.standing.rank)];
            assert_eq!(view.fence, Some(made.fence), "the fence of {:?}", made.ranks);
        }
        let plain = |all: &[fencelock::port::EntryView]| -> Vec<_> {
            let one = |view: &fencelock::port::EntryView| {
                let standing = self.standings(&lock, std::slice::from_ref(&view.standing));
                (standing, view.limit, view.info.clone())
            };
            all.iter().map(one).collect()
        };
        same("list", &plain(&one), &plain(&other));
        for prefix in ["", "x", "x/", "y"] {
            let names = (model.names(prefix).await.unwrap(), store.names(prefix).await.unwrap());
            same("names", &names.0, &names.1);
        }
    }

    /// Checks that the model and the store sent the same notices, as soon as these have arrived.
    async fn compare_notices(&self) {
        for Pair { heard, .. } in &self.pairs {
            let began = Instant::now();
            while heard.0.lock().unwrap().len() > heard.1.lock().unwrap().len() {
                assert!(began.elapsed() < PATIENCE, "{:?} is not told", self.notices(&heard.0));
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            same("notices", &self.notices(&heard.0), &self.notices(&heard.1));
        }
    }

    /// One more notice for each: what comes behind all others shows that no other is on its way.
    async fn last_notices(&mut self) {
        let lock = LockKey::new("last");
        for client in 0..CLIENTS {
            self.join(client, lock.clone()).await;
            let made = self.made.len() - 1;
            let Made { mode, owner, ref ranks, .. } = self.made[made];
            let standing = |rank: &Rank| [Standing { rank: rank.clone(), mode }];
            let Pair { model, store, sessions, .. } = &self.pairs[client];
            model.watch(sessions.0, &lock, &standing(&ranks.0)).await.unwrap();
            store.watch(sessions.1, &lock, &standing(&ranks.1)).await.unwrap();
            model.leave(sessions.0, &lock, owner, Some(&ranks.0)).await.unwrap();
            store.leave(sessions.1, &lock, owner, Some(&ranks.1)).await.unwrap();
        }
        self.compare_notices().await;
    }
}

/// Plays so many random runs against a store, which `connect` makes anew for each client. Its first argument names where the
/// locks of a run lie.
pub async fn random_calls_end_alike<S: QueueStore>(
    modes: Modes,
    seeds: u64,
    connect: impl AsyncFn(String, RuntimeHandle) -> S,
) {
    for seed in 0..seeds {
        println!("seed {seed}");
        let connect = async |runtime| connect(format!("model{seed}"), runtime).await;
        let mut run = Run::new(&connect, modes, seed).await;
        for _ in 0..STEPS {
            run.step().await;
        }
        run.last_notices().await;
    }
}
