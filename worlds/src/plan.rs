//! The plan of a world, written down before it begins, so that it can be printed, repeated and cut down.

use std::time::Duration;

use fencelock::port::{Kind, LockKey, Mode};

use super::cancel::Cancel;
use super::network::Conditions;
use super::server::job_lock;

/// Everything a seed decides, but for the order of what happens at one instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The seed of the world's order and dice.
    pub seed: u64,
    /// What its clients ask for.
    pub subject: Subject,
    /// What goes wrong in it.
    pub family: Family,
    /// The network until it heals.
    pub conditions: Conditions,
    /// The drift of the store's clock in parts per million; above 0 it runs fast.
    pub server_drift: i32,
    /// The nodes of a quorum; none where there is one store.
    pub nodes: Vec<Node>,
    /// The longest lease on a quorum, and how long a node that was started does not vote.
    pub max_ttl: Duration,
    /// The clients, each on a machine of its own.
    pub clients: Vec<Machine>,
    /// The tasks that the clients run.
    pub tasks: Vec<Task>,
    /// The faults that hit the clients and the store, in order.
    pub faults: Vec<(Duration, Fault)>,
    /// When everything heals.
    pub heals: Duration,
    /// How jobs are run.
    pub job: JobPlan,
}

/// What the clients of a world ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// Locks.
    Locks,
    /// Locks over a store that keeps entries; these live with sessions, which last as long as the longest lease.
    Sessions,
    /// Values with versions.
    Versions,
    /// Runs of scheduled jobs.
    Jobs,
    /// Leaderships.
    Elections,
}

/// How the jobs of a world are run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobPlan {
    /// The period.
    pub period: Duration,
    /// Whether the schedulers name the instants themselves.
    pub named: bool,
    /// The shortest time between two starts.
    pub at_least: Option<Duration>,
    /// Whether dead runs are run again.
    pub retry_dead: bool,
}

/// What goes wrong in a world, or makes it special.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// Nothing fails: whatever is lost is a defect.
    Calm,
    /// Only pushes are lost, late or doubled.
    Deaf,
    /// Messages take about as long as a lease.
    Slow,
    /// Messages are lost, late and torn.
    Lossy,
    /// Single requests are lost, far from each other.
    Hiccup,
    /// Requests arrive twice.
    Doubled,
    /// Everything arrives twice, much of it long after, and machines stand still meanwhile.
    Replay,
    /// Pauses, crashes, partitions, restarts with data.
    Faults,
    /// All of that at once.
    Storm,
    /// Clients are closed while they hold and wait.
    Closing,
    /// A long queue: waits beyond the life of a ticket.
    Queue,
    /// Many tasks in one client.
    Local,
    /// The same, with leases so short that they end while the lock goes round inside.
    Tiny,
    /// The store loses its data.
    Wiped,
    /// The store falls back to older data.
    Restored,
    /// The store's clock jumps.
    Jumped,
    /// The key is deleted by a stranger.
    Deleted,
    /// A quorum; nothing fails.
    Quorum,
    /// A quorum of which a minority fails.
    Minority,
    /// A quorum whose nodes lose their data.
    Amnesia,
    /// A quorum on a network that loses and delays messages.
    Votes,
    /// The store's clock jumps far and comes back.
    Blip,
    /// Many more want to share one lock than one step grants to.
    Shared,
}

impl Family {
    /// All of them.
    pub const ALL: [Self; 23] = [
        Self::Calm,
        Self::Deaf,
        Self::Slow,
        Self::Lossy,
        Self::Hiccup,
        Self::Doubled,
        Self::Replay,
        Self::Faults,
        Self::Storm,
        Self::Closing,
        Self::Queue,
        Self::Local,
        Self::Tiny,
        Self::Wiped,
        Self::Restored,
        Self::Jumped,
        Self::Deleted,
        Self::Quorum,
        Self::Minority,
        Self::Amnesia,
        Self::Votes,
        Self::Blip,
        Self::Shared,
    ];

    /// Whether its store is a quorum.
    pub fn votes(self) -> bool {
        matches!(self, Self::Quorum | Self::Minority | Self::Amnesia | Self::Votes)
    }

    /// Whether nothing fails in it, so that no lock may be lost.
    pub fn calm(self) -> bool {
        matches!(self, Self::Calm | Self::Deaf | Self::Local | Self::Quorum)
    }
}

impl Subject {
    /// The families that are drawn for it in turn.
    pub fn families(self) -> &'static [Family] {
        use Family::{
            Calm, Closing, Deaf, Doubled, Faults, Hiccup, Jumped, Local, Lossy, Queue, Restored,
            Slow, Storm, Tiny, Wiped,
        };
        match self {
            Self::Locks => &Family::ALL,
            // A store with sessions has no other data than these, and no request arrives twice there.
            Self::Sessions => {
                &[Calm, Deaf, Slow, Lossy, Hiccup, Faults, Storm, Closing, Queue, Local, Tiny]
            }
            Self::Versions | Self::Jobs | Self::Elections => {
                &[Calm, Slow, Lossy, Doubled, Faults, Closing, Wiped, Restored, Jumped]
            }
        }
    }

    /// Whether its clients ask for what lies in cells, or an election.
    pub fn has_cells(self) -> bool {
        matches!(self, Self::Versions | Self::Jobs | Self::Elections)
    }
}

impl JobPlan {
    /// So much before its instant a run may start.
    pub fn early(&self) -> Duration {
        (self.period / 10).min(Duration::from_secs(30))
    }
}

/// One node of a quorum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// The drift of its clock in parts per million; above 0 it runs fast.
    pub drift: i32,
    /// How far its clock is from the others', in microseconds.
    pub skew: i64,
}

/// One client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// The drift of its clock in parts per million; above 0 it runs fast.
    pub drift: i32,
    /// How far its wall clock is from the store's at first, in microseconds; anything where that does not matter.
    pub skew: Option<i64>,
    /// How long it waits for an answer.
    pub timeout: Duration,
    /// Whether it is closed in the end, or just dropped.
    pub closes: bool,
}

/// One task: acts, one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// The client it belongs to.
    pub client: usize,
    /// Its acts, in order.
    pub acts: Vec<Act>,
}

/// One acquire and what follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Act {
    /// The time before.
    pub rest: Duration,
    /// The lock's number.
    pub lock: usize,
    /// How it is held.
    pub mode: Mode,
    /// Of how many permits it has some.
    pub limit: u32,
    /// How many.
    pub permits: u32,
    /// Another mutex that is taken with it, as one.
    pub also: Option<usize>,
    /// Whether it is asked for in the scope of its client, and the longest lease that anybody asks for there.
    pub scope: Option<Duration>,
    /// How it is asked for.
    pub how: How,
    /// When the asker loses patience.
    pub cancel: Cancel,
    /// The lease.
    pub ttl: Duration,
    /// Whether it is renewed.
    pub renew: bool,
    /// Whether it is handed over in order.
    pub fair: bool,
    /// Passes inside the client.
    pub local: u32,
    /// The longest it may be held.
    pub max_hold: Option<Duration>,
    /// The steps of the holder under the lock, in order.
    pub section: Vec<Doing>,
    /// How it is given back.
    pub end: End,
}

/// How a lock is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// For as long as it takes.
    Acquire,
    /// For so long.
    Within(Duration),
    /// Once.
    Try,
    /// With the section as the body of `with`.
    With,
    /// One is added to the value of this name, with so many retries.
    Add(u32),
    /// The value of this name is read, and deleted as it was.
    Delete,
    /// The run of this job that is due is started.
    Start,
    /// As a candidate of this election.
    Lead,
}

/// A step of a holder under its lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// Time passes; the loss of the lock ends it.
    Work(Duration),
    /// The resource is read; the holder looks at the guard, dawdles, and writes.
    Write(Duration),
    /// The same, and the whole machine stands still before it writes.
    Freeze(Duration),
    /// The lease is extended.
    Extend(Duration),
    /// The scope's mutex is entered once more, for so long a lease, and left again, unless patience is lost.
    Enter(Duration, Cancel),
}

/// How a lock is given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// By a release that is waited for, unless cancelled.
    Release(Cancel),
    /// By dropping the guard.
    Drop,
    /// A run that has failed.
    Fail,
}

/// A fault that hits a world. Clients are named by their number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A machine stands still for a while.
    Pause(usize, Duration),
    /// A machine is no more.
    Crash(usize),
    /// A client is closed.
    Close(usize),
    /// A machine is cut off for a while.
    Cut(usize, Duration),
    /// The next request of a client is lost.
    Lose(usize),
    /// The store restarts and is away for a while.
    Restart(Duration, Loss),
    /// The store stands still for a while.
    Stall(Duration),
    /// The data of this moment is what [`Loss::SinceSnapshot`] falls back to.
    Snapshot,
    /// The store's clock jumps by so many microseconds.
    Jump(i64),
    /// A stranger deletes the key of this lock.
    Delete(usize),
    /// A node of the quorum restarts and is away for a while.
    NodeRestart(usize, Duration, Loss),
    /// A node stands still for a while.
    NodeStall(usize, Duration),
    /// A node and a client are cut off from each other for a while.
    NodeCut(usize, usize, Duration),
}

/// The data that a store loses in a restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// No data.
    Nothing,
    /// All data.
    Everything,
    /// All data written since the snapshot.
    SinceSnapshot,
}

impl Plan {
    /// Whether the store keeps its word in this world, so that holders never overlap.
    pub fn faithful(&self) -> bool {
        self.faults.iter().all(|(_, fault)| !fault.breaks_faith())
    }

    /// Whether the store's clock jumps.
    pub fn jumps(&self) -> bool {
        self.faults.iter().any(|(_, fault)| matches!(fault, Fault::Jump(_)))
    }

    /// Whether nothing at all fails, so that no lock may be lost.
    pub fn calm(&self) -> bool {
        self.family.calm()
    }

    /// Whether even tokens may fall: the store's clock steps back after it lost data, or after a leap ahead has ended the
    /// life of a counter.
    pub fn forgets_tokens(&self) -> bool {
        let back = |fault: &Fault| matches!(fault, Fault::Jump(by) if *by < 0);
        let loses = |fault: &Fault| match fault {
            Fault::Restart(_, loss) => *loss != Loss::Nothing,
            Fault::Jump(by) => *by > 0,
            _ => false,
        };
        let mut faults = self.faults.iter().map(|(_, fault)| fault);
        faults.clone().any(back) && faults.any(loses)
    }

    /// The longest lease of the world.
    pub fn longest_lease(&self) -> Duration {
        let acts = self.tasks.iter().flat_map(|task| &task.acts);
        acts.map(Act::longest_lease).max().unwrap_or_default()
    }

    /// The longest a client's try may take: it is one request, but on a quorum, which votes, writes back and gives back, and with
    /// sessions: one is opened, an entry made, and removed. One that fails within 500 ms is made once more after a short pause.
    pub fn longest_try(&self, client: usize) -> Duration {
        let request = self.clients[client].timeout.max(self.conditions.round_trip());
        let requests =
            if self.nodes.is_empty() && self.subject != Subject::Sessions { 1 } else { 4 };
        request * requests + Duration::from_millis(511)
    }

    /// The key of the lock with this number, or of that of the job with this number.
    pub fn key(&self, number: usize) -> LockKey {
        if self.subject == Subject::Jobs {
            job_lock(&name(number))
        } else {
            LockKey::new(name(number))
        }
    }

    /// How often an observer of an election looks.
    pub fn observes(&self) -> Duration {
        (self.longest_lease() / 2).max(Duration::from_millis(10))
    }

    /// How many locks there are.
    pub fn locks(&self) -> usize {
        let acts = self.tasks.iter().flat_map(|task| &task.acts);
        acts.map(|act| act.lock.max(act.also.unwrap_or(0)) + 1).max().unwrap_or_default()
    }
}

impl Act {
    /// The kind of lock it asks for.
    pub fn kind(&self) -> Kind {
        self.mode.kind()
    }

    /// The longest lease it asks for.
    pub fn longest_lease(&self) -> Duration {
        let longer = self.section.iter().filter_map(|doing| match doing {
            Doing::Extend(ttl) => Some(*ttl),
            _ => None,
        });
        longer.max().unwrap_or_default().max(self.ttl).max(self.scope.unwrap_or_default())
    }

    /// The longest it may take once it has the lock.
    pub fn longest(&self) -> Duration {
        let each = self.section.iter().map(|doing| match doing {
            Doing::Work(time) | Doing::Write(time) | Doing::Freeze(time) => *time,
            Doing::Extend(_) | Doing::Enter(..) => Duration::ZERO,
        });
        each.sum::<Duration>() + self.rest
    }

    /// Whether it asks for another lease under way.
    pub fn extends(&self) -> bool {
        self.section.iter().any(|doing| matches!(doing, Doing::Extend(_)))
    }
}

impl Fault {
    /// Whether a store to which this happens does not keep its word.
    pub fn breaks_faith(self) -> bool {
        match self {
            Self::Restart(_, loss) => loss != Loss::Nothing,
            Self::Jump(_) | Self::Delete(_) => true,
            _ => false,
        }
    }
}

/// The name of the lock, value, job or election with this number.
pub fn name(number: usize) -> String {
    format!("lock-{number}")
}
