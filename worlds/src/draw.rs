//! Plans drawn from seeds: one family of worlds after the other, everything else by the dice.

mod acts;

use std::time::Duration;

use fencelock_sim::Dice;

use super::network::Conditions;
use super::plan::{Act, Family, Fault, JobPlan, Loss, Machine, Node, Plan, Subject, Task};

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
    /// The plan of a seed; of this family, or of each in turn.
    pub fn draw(seed: u64, subject: Subject, family: Option<Family>) -> Self {
        let families = subject.families();
        let in_turn =
            |families: &[Family], turn: u64| families[(turn % families.len() as u64) as usize];
        let family = family.unwrap_or_else(|| match (subject, families) {
            // Many who share take as long as many other worlds.
            (Subject::Locks, [others @ .., shared]) => {
                if seed % 128 == 127 {
                    *shared
                } else {
                    in_turn(others, seed)
                }
            }
            (Subject::Sessions, _) => in_turn(families, seed),
            // The subjects of cells take turns themselves.
            _ => in_turn(families, seed / 3),
        });
        let mut plan = Self::of_family(seed, family);
        plan.subject = subject;
        if subject == Subject::Sessions {
            // Such a store gives permits one by one.
            plan.tasks.iter_mut().flat_map(|task| &mut task.acts).for_each(|act| act.permits = 1);
        }
        if subject.has_cells() {
            plan.draw_cells();
        }
        plan
    }

    /// The plan of a world of locks.
    fn of_family(seed: u64, family: Family) -> Self {
        let mut dice = Dice::new(seed).fork();
        let dice = &mut dice;
        let scale = Scale::draw(dice, family);
        let (server_drift, client_drift) = dice.pick(&[(0, 0), (5_000, 4_900), (0, 9_900)]);
        let many = match family {
            Family::Local | Family::Tiny => dice.between(1, 2),
            Family::Queue => dice.between(3, 4),
            _ => dice.between(2, 4),
        };
        let clients: Vec<Machine> = (0..many).map(|_| scale.machine(dice, client_drift)).collect();
        let tasks = match family {
            Family::Local | Family::Tiny => dice.between(4, 8),
            Family::Queue => dice.between(5, 9),
            Family::Shared => dice.pick(&[30, 60, 120]),
            _ => dice.between(many, many + 3),
        };
        let mut tasks: Vec<Task> = (0..tasks)
            .map(|number| Task {
                client: (number % many) as usize,
                acts: (0..scale.acts(dice)).map(|_| scale.act(dice)).collect(),
            })
            .collect();
        if family == Family::Shared {
            acts::share(&mut tasks, seed);
        } else {
            acts::draw_kinds(&mut tasks, family, scale.locks, seed);
            acts::draw_scopes(&mut tasks, seed);
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
        let conditions = scale.conditions(dice);
        let (subject, job) = (Subject::Locks, JobPlan::default());
        Self {
            seed,
            subject,
            family,
            conditions,
            server_drift,
            nodes,
            max_ttl,
            clients,
            tasks,
            faults,
            heals,
            job,
        }
    }
}

impl Scale {
    fn draw(dice: &mut Dice, family: Family) -> Self {
        let unit = match family {
            Family::Queue | Family::Shared => dice.pick(&[1000, 3000, 10_000]),
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
        let locks = if matches!(family, Family::Queue | Family::Replay | Family::Shared) {
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
            family if family.calm() => Duration::from_secs(5),
            _ => self.unit * dice.pick(&[1, 2, 6, 20]) / 6,
        };
        let timeout = timeout.max(self.delay * 3).max(MILLISECOND * 10).min(Duration::from_secs(6));
        Machine { drift, skew: None, timeout, closes: dice.chance(500) }
    }

    fn conditions(&self, dice: &mut Dice) -> Conditions {
        let mut conditions = Conditions::calm(self.delay / 10, self.delay);
        conditions.reorders = dice.chance(600);
        let deaf = |conditions: &mut Conditions, dice: &mut Dice| {
            conditions.notices_lost = dice.pick(&[0, 100, 500, 1000]);
            conditions.notices_doubled = dice.pick(&[0, 200]);
        };
        match self.family {
            Family::Deaf => deaf(&mut conditions, dice),
            Family::Lossy | Family::Storm | Family::Votes => {
                deaf(&mut conditions, dice);
                conditions.lost = dice.pick(&[10, 50, 200]);
                conditions.late = (dice.pick(&[0, 50, 150]), self.unit * dice.between(1, 4) as u32);
                conditions.torn = dice.pick(&[0, 30]);
                conditions.refused = dice.pick(&[0, 30]);
            }
            Family::Doubled => {
                conditions.doubled = dice.pick(&[200, 600]);
                conditions.late = (dice.pick(&[50, 300]), self.unit * dice.between(1, 3) as u32);
                conditions.notices_doubled = dice.pick(&[0, 500]);
                conditions.reorders = true;
            }
            Family::Replay => {
                (conditions.doubled, conditions.notices_doubled) = (1000, 1000);
                conditions.late = (dice.pick(&[300, 500]), self.unit * dice.between(2, 5) as u32);
                conditions.reorders = true;
            }
            Family::Faults | Family::Queue | Family::Shared if dice.chance(300) => {
                deaf(&mut conditions, dice);
            }
            _ => {}
        }
        conditions
    }

    /// So many hundredths of the world's lease.
    fn part(&self, hundredths: u64) -> Duration {
        self.unit * hundredths as u32 / 100
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
            Family::Queue | Family::Shared => {
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

    /// Draws the faults that hit the nodes, and the time when everything heals.
    fn node_faults(
        &self,
        dice: &mut Dice,
        nodes: &[Node],
        clients: usize,
        max_ttl: Duration,
        heals: Duration,
    ) -> (Vec<(Duration, Fault)>, Duration) {
        let some = |dice: &mut Dice| self.part(dice.between(5, 250));
        let minority = nodes.len() / 2;
        // Which nodes the minority is.
        let first = dice.below(nodes.len().max(1) as u64) as usize;
        let one =
            |dice: &mut Dice| (first + dice.below(minority.max(1) as u64) as usize) % nodes.len();
        let lost =
            |dice: &mut Dice| dice.pick(&[Loss::Nothing, Loss::Everything, Loss::Everything]);
        let moment = |dice: &mut Dice| heals * dice.below(90) as u32 / 100;
        let mut faults = Vec::new();
        match self.family {
            Family::Minority | Family::Votes => {
                for _ in 0..dice.between(1, 4) {
                    let client = dice.below(clients as u64) as usize;
                    let fault = match dice.below(6) {
                        0 | 1 => Fault::NodeCut(one(dice), client, some(dice)),
                        2 => Fault::NodeStall(one(dice), some(dice)),
                        3 => Fault::NodeRestart(one(dice), some(dice) / 4, lost(dice)),
                        4 => Fault::Crash(client),
                        _ => Fault::Pause(client, some(dice)),
                    };
                    faults.push((moment(dice), fault));
                }
                (faults, heals)
            }
            // One after the other, each when the one before has all it needs.
            Family::Amnesia if dice.chance(300) => {
                let period = max_ttl * 2 + Duration::from_millis(2200);
                for (turn, node) in (0..nodes.len()).cycle().take(nodes.len() + 1).enumerate() {
                    let at = period * turn as u32 + MILLISECOND * 50;
                    faults.push((at, Fault::NodeRestart(node, self.part(10), Loss::Everything)));
                }
                (faults, period * nodes.len() as u32 + MILLISECOND * 100)
            }
            // Or whenever it comes.
            Family::Amnesia => {
                for _ in 0..dice.between(1, 2 * nodes.len() as u64) {
                    let node = dice.below(nodes.len() as u64) as usize;
                    let away = self.part(dice.below(30));
                    faults.push((moment(dice), Fault::NodeRestart(node, away, lost(dice))));
                }
                (faults, heals)
            }
            _ => (faults, heals),
        }
    }
}

impl Node {
    /// A node whose clock drifts and differs by at most so much.
    fn draw(dice: &mut Dice, drift: i32, skew: u64) -> Self {
        let drift = dice.below(2 * drift as u64 + 1) as i32 - drift;
        let skew = dice.below(2 * skew + 1).cast_signed() - skew.cast_signed();
        Self { drift, skew }
    }
}
