//! The plan of such a world, drawn from its seed.

use std::time::Duration;

use fencelock_sim::Dice;

use crate::plan::{Cancel, Fault, Loss, Machine};
use crate::weather::Weather;

const MILLISECOND: Duration = Duration::from_millis(1);

/// Everything a seed decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The seed of the world's order and dice.
    pub seed: u64,
    /// The subject of the world: versions, jobs or elections.
    pub family: Family,
    /// How it goes.
    pub mood: Mood,
    /// The network until it heals.
    pub weather: Weather,
    /// The drift of the store's clock in parts per million; above 0 it runs fast.
    pub server_drift: i32,
    /// The clients, each on a machine of its own.
    pub clients: Vec<Machine>,
    /// How far each client's wall clock is off, in microseconds.
    pub off: Vec<i64>,
    /// The tasks that the clients run.
    pub tasks: Vec<Task>,
    /// The faults that hit the clients and the store, in order.
    pub faults: Vec<(Duration, Fault)>,
    /// When everything heals.
    pub heals: Duration,
    /// The lease of runs and leaders.
    pub ttl: Duration,
    /// How jobs are run.
    pub job: JobPlan,
}

/// The subject of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// Values with versions.
    Versions,
    /// Scheduled jobs.
    Jobs,
    /// Elections.
    Elections,
}

/// How a world goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mood {
    /// Nothing fails.
    Calm,
    /// Messages take about as long as a lease.
    Slow,
    /// Messages are lost, late, refused and torn.
    Lossy,
    /// Requests arrive twice, the second time long after.
    Doubled,
    /// Pauses, crashes, partitions, restarts with data.
    Faults,
    /// The store loses its data.
    Wiped,
    /// The store falls back to older data.
    Restored,
    /// The store's clock jumps.
    Jumped,
}

/// How a world's jobs are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobPlan {
    /// The period.
    pub period: Duration,
    /// Whether the schedulers name the instants themselves.
    pub named: bool,
    /// The shortest time between two starts.
    pub at_least: Option<Duration>,
    /// The longest a run may take.
    pub at_most: Option<Duration>,
    /// Whether dead runs are run again.
    pub retry_dead: bool,
}

/// One task: acts, one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// The client it belongs to.
    pub client: usize,
    /// Its acts, in order.
    pub acts: Vec<Act>,
}

/// One thing that is asked for, and what follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Act {
    /// The time before.
    pub rest: Duration,
    /// Of which cell, job or election.
    pub of: usize,
    /// The operation that is asked for.
    pub what: What,
    /// When the asker loses patience.
    pub cancel: Cancel,
    /// How long it works, runs or leads.
    pub work: Duration,
    /// How it ends: well, badly, or by being dropped.
    pub end: End,
}

/// The operations that an act can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Versions: add one, trying again so often.
    Add(u32),
    /// Versions: read, and delete that.
    Delete,
    /// Jobs: start the run that is due. Elections: lead.
    Start,
}

/// How a run or a leadership ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Well.
    Well,
    /// Badly.
    Badly,
    /// By being dropped.
    Dropped,
}

impl Family {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Versions, Self::Jobs, Self::Elections];
}

impl Mood {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Calm,
        Self::Slow,
        Self::Lossy,
        Self::Doubled,
        Self::Faults,
        Self::Wiped,
        Self::Restored,
        Self::Jumped,
    ];
}

impl JobPlan {
    /// So much before its instant a run may start.
    pub fn early(&self) -> Duration {
        (self.period / 10).min(Duration::from_secs(30))
    }
}

impl Plan {
    /// The plan of a seed.
    pub fn draw(seed: u64) -> Self {
        Self::of_family(seed, Family::ALL[(seed % 3) as usize])
    }

    /// The plan of a seed within a family.
    pub fn of_family(seed: u64, family: Family) -> Self {
        let mut dice = Dice::new(seed).fork();
        let dice = &mut dice;
        let mood = Mood::ALL[(seed / 3 % Mood::ALL.len() as u64) as usize];
        let ttl = MILLISECOND * dice.pick(&[50, 100, 300, 1000, 3000]);
        let delay = match mood {
            Mood::Slow => ttl * dice.between(10, 45) as u32 / 100,
            Mood::Lossy => ttl / dice.pick(&[5, 20, 100]),
            _ => ttl / dice.pick(&[30, 100, 1000]),
        };
        let job = JobPlan {
            period: ttl * dice.pick(&[60, 200, 500]) / 100,
            named: dice.chance(300),
            at_least: dice.chance(200).then(|| ttl * dice.between(50, 300) as u32 / 100),
            at_most: dice.chance(150).then(|| ttl * dice.between(30, 400) as u32 / 100),
            retry_dead: dice.chance(300),
        };
        let (server_drift, client_drift) = dice.pick(&[(0, 0), (5_000, 4_900), (0, 9_900)]);
        let server_drift = if dice.chance(500) { server_drift } else { -server_drift };
        let crowd = dice.between(2, 4);
        let clients: Vec<Machine> = (0..crowd)
            .map(|_| Machine {
                drift: dice.below(2 * client_drift + 1) as i32 - client_drift as i32,
                timeout: (ttl * dice.pick(&[1, 2, 6]) / 3).max(delay * 3).max(MILLISECOND * 10),
                closes: dice.chance(500),
            })
            .collect();
        let skew = if dice.chance(400) { job.period.as_micros() as u64 * 3 } else { 0 };
        let off = (0..crowd).map(|_| dice.below(2 * skew + 1).cast_signed() - skew.cast_signed());
        let off = off.collect();
        let tasks = (0..dice.between(crowd, crowd + 2))
            .map(|number| Task {
                client: (number % crowd) as usize,
                acts: (0..dice.between(2, 6)).map(|_| act(dice, family, mood, ttl, &job)).collect(),
            })
            .collect();
        let heals = ttl * dice.between(4, 12) as u32 + MILLISECOND * 20;
        let mut faults = faults(dice, mood, crowd, heals, ttl);
        faults.sort_by_key(|(at, _)| *at);
        let weather = weather(dice, mood, delay, ttl);
        Self {
            seed,
            family,
            mood,
            weather,
            server_drift,
            clients,
            off,
            tasks,
            faults,
            heals,
            ttl,
            job,
        }
    }

    /// Whether the store keeps its word.
    pub fn faithful(&self) -> bool {
        self.faults.iter().all(|(_, fault)| !fault.breaks_faith())
    }

    /// Whether nothing at all fails.
    pub fn calm(&self) -> bool {
        self.mood == Mood::Calm
    }

    /// Whether even versions may fall: the store loses data and its clock steps back.
    pub fn forgets(&self) -> bool {
        let back = |fault: &Fault| matches!(fault, Fault::Jump(by) if *by < 0);
        let loses =
            |fault: &Fault| matches!(fault, Fault::Restart(_, loss) if *loss != Loss::Nothing);
        let faults = || self.faults.iter().map(|(_, fault)| fault);
        faults().any(back) && faults().any(loses)
    }
}

fn act(dice: &mut Dice, family: Family, mood: Mood, ttl: Duration, job: &JobPlan) -> Act {
    let part = |hundredths: u64| ttl * hundredths as u32 / 100;
    let what = match family {
        Family::Versions if dice.chance(250) => What::Delete,
        Family::Versions => What::Add(dice.pick(&[0, 2, 16, 16])),
        Family::Jobs | Family::Elections => What::Start,
    };
    let rest = match family {
        Family::Jobs => job.period * dice.between(0, 120) as u32 / 100,
        Family::Versions => part(dice.pick(&[0, 0, 10, 100])),
        Family::Elections => part(dice.below(100)),
    };
    Act {
        rest,
        of: dice.pick(&[0, 0, 0, 1]),
        what,
        cancel: Cancel::draw(dice, 200, ttl),
        work: part(dice.pick(&[0, 5, 40, 150, 400])),
        end: match dice.below(10) {
            0..6 => End::Well,
            6 | 7 => End::Badly,
            _ if mood == Mood::Calm => End::Well,
            _ => End::Dropped,
        },
    }
}

fn weather(dice: &mut Dice, mood: Mood, delay: Duration, ttl: Duration) -> Weather {
    let mut weather = Weather::calm(delay / 10, delay);
    weather.reorders = dice.chance(600);
    match mood {
        Mood::Lossy => {
            weather.lost = dice.pick(&[10, 50, 200]);
            weather.late = (dice.pick(&[0, 50, 150]), ttl * dice.between(1, 4) as u32);
            weather.torn = dice.pick(&[0, 30, 100]);
            weather.refused = dice.pick(&[0, 30, 100]);
            weather.notices_lost = dice.pick(&[0, 100, 500]);
        }
        Mood::Doubled => {
            weather.doubled = dice.pick(&[300, 1000]);
            weather.late = (dice.pick(&[100, 400]), ttl * dice.between(1, 4) as u32);
            weather.reorders = true;
        }
        Mood::Wiped | Mood::Restored if dice.chance(300) => weather.lost = 50,
        _ => {}
    }
    weather
}

fn faults(
    dice: &mut Dice,
    mood: Mood,
    clients: u64,
    heals: Duration,
    ttl: Duration,
) -> Vec<(Duration, Fault)> {
    let moment = |dice: &mut Dice| heals * dice.below(90) as u32 / 100;
    let some = |dice: &mut Dice| ttl * dice.between(5, 250) as u32 / 100;
    let someone = |dice: &mut Dice| dice.below(clients) as usize;
    let mut faults = Vec::new();
    for _ in 0..dice.between(1, 5) {
        let fault = match mood {
            Mood::Faults => match dice.below(9) {
                0 | 1 => Fault::Pause(someone(dice), some(dice)),
                2 | 3 => Fault::Crash(someone(dice)),
                4 | 5 => Fault::Cut(someone(dice), some(dice)),
                6 => Fault::Restart(some(dice) / 4, Loss::Nothing),
                7 => Fault::Close(someone(dice)),
                _ => Fault::Stall(some(dice) / 2),
            },
            Mood::Wiped => Fault::Restart(some(dice) / 8, Loss::Everything),
            Mood::Restored if dice.chance(500) => Fault::Snapshot,
            Mood::Restored => Fault::Restart(some(dice) / 8, Loss::SinceSnapshot),
            Mood::Jumped => {
                let far = (ttl.as_micros() as u64 * 3).max(1_000_000);
                Fault::Jump(dice.between(1, 2 * far).cast_signed() - far.cast_signed())
            }
            Mood::Calm | Mood::Slow | Mood::Lossy | Mood::Doubled => continue,
        };
        faults.push((moment(dice), fault));
    }
    faults
}
