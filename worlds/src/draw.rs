//! Plans drawn from seeds: one family of worlds after the other, everything else by the dice.

mod crowd;
mod nodes;
mod scopes;
mod sessions;

use std::time::Duration;

use fencelock::port::{Kind, Mode};
use fencelock_sim::Dice;

use super::plan::{Act, Cancel, Doing, End, Family, Fault, How, Loss, Machine, Node, Plan, Task};
use super::weather::Weather;

const MILLISECOND: Duration = Duration::from_millis(1);

/// The scale of a world, and what its family allows.
struct Scale {
    family: Family,
    /// The lease most acts ask for.
    unit: Duration,
    /// The longest one-way delay.
    delay: Duration,
    locks: u64,
    /// Whether some acts leave the lock open.
    unfair: bool,
}

impl Plan {
    /// The plan of a seed.
    pub fn draw(seed: u64) -> Self {
        // A crowd takes as long as many other worlds.
        let [others @ .., Family::Crowd] = &Family::ALL else { unreachable!("it is the last") };
        let others = others[(seed % others.len() as u64) as usize];
        Self::of_family(seed, if seed % 128 == 127 { Family::Crowd } else { others })
    }

    /// The plan of a seed within a family.
    pub fn of_family(seed: u64, family: Family) -> Self {
        let mut dice = Dice::new(seed).fork();
        let dice = &mut dice;
        let scale = Scale::draw(dice, family);
        let (server_drift, client_drift) = dice.pick(&[(0, 0), (5_000, 4_900), (0, 9_900)]);
        let crowd = match family {
            Family::Local | Family::Tiny => dice.between(1, 2),
            Family::Queue => dice.between(3, 4),
            _ => dice.between(2, 4),
        };
        let clients: Vec<Machine> = (0..crowd).map(|_| scale.machine(dice, client_drift)).collect();
        let tasks = match family {
            Family::Local | Family::Tiny => dice.between(4, 8),
            Family::Queue => dice.between(5, 9),
            Family::Crowd => dice.pick(&[30, 60, 120]),
            _ => dice.between(crowd, crowd + 3),
        };
        let mut tasks: Vec<Task> = (0..tasks)
            .map(|number| Task {
                client: (number % crowd) as usize,
                acts: (0..scale.acts(dice)).map(|_| scale.act(dice)).collect(),
            })
            .collect();
        if family == Family::Crowd {
            crowd::draw(&mut tasks, seed);
        } else {
            shapes(&mut tasks, family, scale.locks, seed);
            scopes::draw(&mut tasks, seed);
        }
        let heals = scale.unit * dice.between(3, 12) as u32 + MILLISECOND * 20;
        let leases = tasks.iter().flat_map(|task| &task.acts).map(Act::longest_lease);
        let max_ttl = leases.max().unwrap_or(scale.unit);
        let nodes = if family.votes() {
            let skew = (max_ttl.as_micros() as u64 / 4).min(2_000_000);
            (0..dice.pick(&[3, 3, 5])).map(|_| Node::draw(dice, server_drift, skew)).collect()
        } else {
            Vec::new()
        };
        let mut faults = scale.faults(dice, clients.len(), heals);
        let (more, heals) = scale.node_faults(dice, &nodes, clients.len(), max_ttl, heals);
        faults.extend(more);
        faults.sort_by_key(|(at, _)| *at);
        let server_drift = if dice.chance(500) { server_drift } else { -server_drift };
        let weather = scale.weather(dice);
        let sessions = false;
        Self {
            seed,
            family,
            weather,
            server_drift,
            nodes,
            sessions,
            max_ttl,
            clients,
            tasks,
            faults,
            heals,
        }
    }
}

/// Draws the kinds of a world's locks and how every act holds its own. It uses dice of its own: a world of mutexes is
/// the one its seed has always been.
fn shapes(tasks: &mut [Task], family: Family, locks: u64, seed: u64) {
    let dice = &mut Dice::new(seed ^ 0x6b69_6e64).fork();
    if dice.chance(400) {
        return;
    }
    let kinds = [Kind::Mutex, Kind::ReadWrite, Kind::ReadWrite, Kind::Semaphore];
    // A quorum has no permits.
    let kinds = if family.votes() { &kinds[..3] } else { &kinds[..] };
    let shape = |dice: &mut Dice| (dice.pick(kinds), dice.between(1, 3) as u32);
    let shapes: Vec<_> = (0..locks).map(|_| shape(dice)).collect();
    for act in tasks.iter_mut().flat_map(|task| &mut task.acts) {
        let (kind, limit) = shapes[act.lock];
        // Somebody takes the name for something else.
        let kind = if dice.chance(20) { dice.pick(kinds) } else { kind };
        act.limit = limit;
        act.mode = match kind {
            Kind::Mutex => Mode::Exclusive,
            Kind::ReadWrite => dice.pick(&[Mode::Read, Mode::Read, Mode::Write]),
            Kind::Semaphore => Mode::Permit,
        };
        if kind == Kind::Semaphore {
            act.permits = dice.between(1, u64::from(limit)) as u32;
        }
        let other = dice.below(locks) as usize;
        if kind == Kind::Mutex && act.how != How::With && dice.chance(300) && other != act.lock {
            (act.also, act.max_hold) = (Some(other), None);
        }
    }
}

impl Scale {
    fn draw(dice: &mut Dice, family: Family) -> Self {
        let unit = match family {
            Family::Queue | Family::Crowd => dice.pick(&[1000, 3000, 10_000]),
            Family::Doubled => dice.pick(&[40, 100, 300, 7000]),
            Family::Replay => dice.pick(&[100, 300, 1000]),
            Family::Tiny => dice.pick(&[10, 12, 20]),
            Family::Hiccup => dice.pick(&[300, 1000, 3000, 9000]),
            Family::Deaf => dice.pick(&[100, 1000, 3000, 8000]),
            _ if family.votes() => dice.pick(&[50, 100, 300, 1000]),
            _ => dice.pick(&[50, 50, 100, 300, 1000, 3000, 10_000]),
        };
        let unit = MILLISECOND * unit;
        let delay = match family {
            Family::Slow => unit * dice.between(10, 60) as u32 / 100,
            Family::Lossy | Family::Storm | Family::Votes => unit / dice.pick(&[5, 20, 100]),
            Family::Calm | Family::Quorum => unit / dice.pick(&[50, 200, 1000]),
            Family::Local => unit / dice.pick(&[50, 1000, 100_000]),
            _ => unit / dice.pick(&[30, 100, 1000]),
        };
        let locks = if matches!(family, Family::Queue | Family::Replay | Family::Crowd) {
            1
        } else {
            dice.pick(&[1, 1, 2, 3])
        };
        Self { family, unit, delay, locks, unfair: dice.chance(300) }
    }

    fn machine(&self, dice: &mut Dice, drift: u64) -> Machine {
        let drift = dice.below(2 * drift + 1) as i32 - drift as i32;
        let timeout = match self.family {
            Family::Hiccup => self.unit / 12,
            Family::Calm | Family::Deaf | Family::Local | Family::Quorum => Duration::from_secs(5),
            _ => self.unit * dice.pick(&[1, 2, 6, 20]) / 6,
        };
        let timeout = timeout.max(self.delay * 3).max(MILLISECOND * 10).min(Duration::from_secs(6));
        Machine { drift, timeout, closes: dice.chance(500) }
    }

    fn weather(&self, dice: &mut Dice) -> Weather {
        let mut weather = Weather::calm(self.delay / 10, self.delay);
        weather.reorders = dice.chance(600);
        let deaf = |weather: &mut Weather, dice: &mut Dice| {
            weather.notices_lost = dice.pick(&[0, 100, 500, 1000]);
            weather.notices_doubled = dice.pick(&[0, 200]);
        };
        match self.family {
            Family::Deaf => deaf(&mut weather, dice),
            Family::Lossy | Family::Storm | Family::Votes => {
                deaf(&mut weather, dice);
                weather.lost = dice.pick(&[10, 50, 200]);
                weather.late = (dice.pick(&[0, 50, 150]), self.unit * dice.between(1, 4) as u32);
                weather.torn = dice.pick(&[0, 30]);
                weather.refused = dice.pick(&[0, 30]);
            }
            Family::Doubled => {
                weather.doubled = dice.pick(&[200, 600]);
                weather.late = (dice.pick(&[50, 300]), self.unit * dice.between(1, 3) as u32);
                weather.notices_doubled = dice.pick(&[0, 500]);
                weather.reorders = true;
            }
            Family::Replay => {
                (weather.doubled, weather.notices_doubled) = (1000, 1000);
                weather.late = (dice.pick(&[300, 500]), self.unit * dice.between(2, 5) as u32);
                weather.reorders = true;
            }
            Family::Faults | Family::Queue | Family::Crowd if dice.chance(300) => {
                deaf(&mut weather, dice);
            }
            _ => {}
        }
        weather
    }

    /// So many hundredths of the world's lease.
    fn part(&self, hundredths: u64) -> Duration {
        self.unit * hundredths as u32 / 100
    }

    /// How many acts a task has.
    fn acts(&self, dice: &mut Dice) -> u64 {
        if self.family == Family::Crowd { 1 } else { dice.between(1, 4) }
    }

    fn act(&self, dice: &mut Dice) -> Act {
        let calm =
            matches!(self.family, Family::Calm | Family::Deaf | Family::Local | Family::Quorum);
        let renew = dice.chance(800);
        let ttl = if dice.chance(800) { self.unit } else { self.part(dice.between(50, 300)) };
        let ttl = ttl.max(MILLISECOND * 10);
        let how = match dice.below(10) {
            0 => How::Try,
            1 | 2 => How::Within(self.part(dice.below(300))),
            3 => How::With,
            _ => How::Acquire,
        };
        let capped = if self.family == Family::Tiny { 300 } else { 50 };
        let max_hold = (!calm && dice.chance(capped)).then(|| self.part(dice.between(20, 300)));
        // In a calm world whatever is lost is a defect, so nothing may end by itself.
        let section = self.section(dice, calm && !renew, ttl);
        Act {
            rest: if dice.chance(500) { Duration::ZERO } else { self.part(dice.below(100)) },
            lock: dice.below(self.locks) as usize,
            mode: Mode::Exclusive,
            limit: 1,
            permits: 1,
            also: None,
            scope: None,
            how,
            cancel: Cancel::draw(dice, 250, self.unit),
            ttl,
            renew,
            fair: !(self.unfair && dice.chance(500)),
            local: dice.pick(&[0, 1, 16, 16]),
            max_hold,
            section,
            end: match dice.below(10) {
                0..=6 => End::Release(Cancel::draw(dice, 200, self.unit)),
                _ => End::Drop,
            },
        }
    }

    fn section(&self, dice: &mut Dice, short: bool, ttl: Duration) -> Vec<Doing> {
        if short {
            return vec![Doing::Write(ttl * dice.below(30) as u32 / 100)];
        }
        let doings = dice.pick(&[1, 1, 1, 2, 3]);
        let calm =
            matches!(self.family, Family::Calm | Family::Deaf | Family::Local | Family::Quorum);
        let doing = |dice: &mut Dice| match dice.below(12) {
            0 if !calm => Doing::Freeze(self.part(dice.below(200))),
            1 => Doing::Extend(self.part(dice.between(30, 400)).max(MILLISECOND * 10)),
            2..5 => Doing::Write(self.part(dice.below(150))),
            _ if matches!(self.family, Family::Local | Family::Tiny) => {
                Doing::Work(MILLISECOND * dice.below(if calm { 4 } else { 12 }) as u32)
            }
            _ if self.family == Family::Queue => {
                Doing::Work(Duration::from_secs(dice.below(6)).min(self.unit * 3))
            }
            _ => Doing::Work(self.part(dice.pick(&[0, 5, 40, 150, 300]))),
        };
        (0..doings).map(|_| doing(dice)).collect()
    }

    fn faults(&self, dice: &mut Dice, clients: usize, heals: Duration) -> Vec<(Duration, Fault)> {
        let moment = |dice: &mut Dice| heals * dice.below(90) as u32 / 100;
        let some = |dice: &mut Dice| self.part(dice.between(5, 250));
        let someone = |dice: &mut Dice| dice.below(clients as u64) as usize;
        let mishap = |dice: &mut Dice| match dice.below(8) {
            0 | 1 => Fault::Pause(someone(dice), some(dice)),
            2 | 3 => Fault::Crash(someone(dice)),
            4 | 5 => Fault::Cut(someone(dice), some(dice)),
            6 => Fault::Restart(some(dice) / 4, Loss::Nothing),
            _ => Fault::Stall(some(dice) / 2),
        };
        let mut faults = Vec::new();
        let many = dice.between(1, 4);
        match self.family {
            Family::Faults | Family::Storm => {
                faults.extend((0..many).map(|_| (moment(dice), mishap(dice))));
            }
            Family::Closing => {
                faults.extend((0..many).map(|_| (moment(dice), Fault::Close(someone(dice)))));
                faults.extend((0..many / 2).map(|_| (moment(dice), mishap(dice))));
            }
            Family::Queue | Family::Crowd => {
                faults.extend((0..many / 2).map(|_| (moment(dice), mishap(dice))));
            }
            Family::Replay => {
                let pause = |dice: &mut Dice| Fault::Pause(someone(dice), some(dice));
                faults.extend((0..many * 2).map(|_| (moment(dice), pause(dice))));
            }
            Family::Hiccup => {
                let period = self.unit * 2;
                let times = 1..(heals.as_nanos() / period.as_nanos()).max(2) as u32;
                faults.extend(times.map(|time| {
                    (period * time + self.part(dice.below(90)), Fault::Lose(someone(dice)))
                }));
            }
            Family::Wiped => {
                let wipe = Fault::Restart(some(dice) / 8, Loss::Everything);
                faults.push((moment(dice), wipe));
                if dice.chance(400) {
                    let back = -dice.between(1, 20_000_000).cast_signed();
                    faults.push((moment(dice), Fault::Jump(back)));
                }
            }
            Family::Restored => {
                let (one, other) = (moment(dice), moment(dice));
                let restore = Fault::Restart(some(dice) / 8, Loss::SinceSnapshot);
                faults.extend([(one.min(other), Fault::Snapshot), (one.max(other), restore)]);
            }
            Family::Jumped => {
                let far = (self.unit.as_micros() as u64 * 3).max(1_000_000);
                for _ in 0..dice.between(1, 2) {
                    let by = dice.between(1, 2 * far).cast_signed() - far.cast_signed();
                    faults.push((moment(dice), Fault::Jump(by)));
                }
            }
            Family::Blip => {
                // Back and forth by up to an hour; or forth and back, by less than a floor may lie ahead of the clock: a leap ahead
                // ends the counter's life, and beyond that everybody would wait until the clock has passed the tokens they saw.
                for _ in 0..dice.between(1, 2) {
                    let begin = moment(dice);
                    let by = if dice.chance(300) {
                        dice.between(1, 50_000_000).cast_signed()
                    } else {
                        -dice.between(1, 3_600_000_000).cast_signed()
                    };
                    let end = begin + some(dice);
                    faults.extend([(begin, Fault::Jump(by)), (end, Fault::Jump(-by))]);
                }
            }
            Family::Deleted => {
                for _ in 0..many {
                    faults.push((moment(dice), Fault::Delete(dice.below(self.locks) as usize)));
                }
            }
            _ => {}
        }
        faults
    }
}
