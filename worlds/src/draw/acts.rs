//! What the tasks of a world ask for, drawn from its seed.

use std::time::Duration;

use fencelock::port::{Kind, Mode};
use fencelock_sim::Dice;

use super::{MILLISECOND, Scale};
use crate::cancel::Cancel;
use crate::plan::{Act, Doing, End, Family, How, JobPlan, Plan, Subject, Task};

impl Scale {
    /// How many acts a task has.
    pub(super) fn acts(&self, dice: &mut Dice) -> u64 {
        if self.family == Family::Shared { 1 } else { dice.between(1, 4) }
    }

    pub(super) fn act(&self, dice: &mut Dice) -> Act {
        let calm = self.family.calm();
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
        let calm = self.family.calm();
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
}

/// Draws the kinds of a world's locks and how every act holds its own. It uses dice of its own: a world of mutexes is
/// the one its seed has always been.
pub(super) fn draw_kinds(tasks: &mut [Task], family: Family, locks: u64, seed: u64) {
    let dice = &mut Dice::new(seed ^ 0x6b69_6e64).fork();
    if dice.chance(400) {
        return;
    }
    let kinds = [Kind::Mutex, Kind::ReadWrite, Kind::ReadWrite, Kind::Semaphore];
    // A quorum has no permits.
    let kinds = if family.votes() { &kinds[..3] } else { &kinds[..] };
    let kind = |dice: &mut Dice| (dice.pick(kinds), dice.between(1, 3) as u32);
    let drawn: Vec<_> = (0..locks).map(|_| kind(dice)).collect();
    for act in tasks.iter_mut().flat_map(|task| &mut task.acts) {
        let (kind, limit) = drawn[act.lock];
        // Somebody takes the name for something else.
        let kind = if dice.chance(20) { dice.pick(kinds) } else { kind };
        act.limit = limit;
        act.mode = match kind {
            Kind::ReadWrite => dice.pick(&[Mode::Read, Mode::Read, Mode::Write]),
            Kind::Semaphore => Mode::Permit,
            _ => Mode::Exclusive,
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

/// Has some acts ask in the scope of their client, and enter once more. By dice of their own: a world without scopes is
/// the one its seed has always been.
pub(super) fn draw_scopes(tasks: &mut [Task], seed: u64) {
    let dice = &mut Dice::new(seed ^ 0x7363_6f70_6573).fork();
    if !dice.chance(150) {
        return;
    }
    for act in tasks.iter_mut().flat_map(|task| &mut task.acts) {
        if act.mode == Mode::Exclusive && act.also.is_none() && dice.chance(700) {
            enter(dice, act);
        }
    }
    let scoped = || tasks.iter().flat_map(|task| &task.acts).filter(|act| act.scope.is_some());
    let longest = scoped().map(Act::longest_lease).max();
    for act in tasks.iter_mut().flat_map(|task| &mut task.acts) {
        act.scope = act.scope.and(longest);
    }
}

fn enter(dice: &mut Dice, act: &mut Act) {
    // All of a scope share the hold: what one of them asks of it is asked of all, and none is alone with the resource.
    (act.renew, act.max_hold) = (true, None);
    for doing in &mut act.section {
        match *doing {
            Doing::Write(time) | Doing::Freeze(time) => *doing = Doing::Work(time),
            Doing::Extend(ttl) => *doing = Doing::Work(ttl),
            _ => {}
        }
    }
    let mut longest = act.ttl;
    for _ in 0..dice.below(3) {
        let ttl = (act.ttl * dice.between(50, 300) as u32 / 100).max(MILLISECOND * 10);
        longest = longest.max(ttl);
        let entering = Doing::Enter(ttl, Cancel::draw(dice, 400, act.ttl));
        act.section.insert(dice.below(act.section.len() as u64 + 1) as usize, entering);
    }
    act.scope = Some(longest);
}

/// All share one lock: they read beside the others and now and then write, or all take one of many permits. The first has it alone
/// until all are there.
pub(super) fn share(tasks: &mut [Task], seed: u64) {
    let dice = &mut Dice::new(seed ^ 0x63_726f_7764).fork();
    let permits = dice.chance(300);
    let limit = if permits { dice.between(10, 60) as u32 } else { 1 };
    let many = tasks.len() as u32;
    for (number, act) in tasks.iter_mut().flat_map(|task| &mut task.acts).enumerate() {
        let alone = !permits && (number == 0 || dice.chance(30));
        act.mode = match alone {
            _ if permits => Mode::Permit,
            true => Mode::Write,
            false => Mode::Read,
        };
        act.limit = limit;
        act.cancel = Cancel::draw(dice, 20, act.ttl);
        (act.renew, act.max_hold) = (true, None);
        act.how = if dice.chance(50) { How::Within(act.ttl) } else { How::Acquire };
        act.rest = if number == 0 { Duration::ZERO } else { act.ttl / 10 };
        let work = if number == 0 { act.ttl } else { short(act, many) };
        act.section = vec![Doing::Work(work)];
    }
}

/// Writers stand in each other's way: all of them together work no longer than a few leases.
fn short(act: &Act, many: u32) -> Duration {
    if act.mode == Mode::Write { act.ttl * 20 / many } else { act.ttl / 4 }
}

impl Plan {
    /// Replaces what is asked for by what the subject says.
    pub(super) fn draw_cells(&mut self) {
        let unit = Scale::draw(&mut Dice::new(self.seed).fork(), self.family).unit;
        let dice = &mut Dice::new(self.seed ^ 0x6365_6c6c).fork();
        let part = |hundredths: u64| unit * hundredths as u32 / 100;
        let calm = self.calm();
        self.job = JobPlan {
            period: part(dice.pick(&[60, 200, 500])),
            named: dice.chance(300),
            at_least: dice.chance(200).then(|| part(dice.between(50, 300))),
            retry_dead: dice.chance(300),
        };
        let at_most = (!calm && dice.chance(150)).then(|| part(dice.between(30, 400)));
        // An instant that lies a minute ahead of the store's clock is refused.
        let far = (self.job.period.as_micros() as u64 * 3).min(45_000_000);
        let skew = if dice.chance(400) { far } else { 0 };
        for machine in &mut self.clients {
            machine.skew = Some(dice.below(2 * skew + 1).cast_signed() - skew.cast_signed());
        }
        for task in &mut self.tasks {
            let act = |dice: &mut Dice| {
                let (how, rest) = match self.subject {
                    Subject::Jobs => {
                        (How::Start, self.job.period * dice.between(0, 120) as u32 / 100)
                    }
                    Subject::Elections => (How::Lead, part(dice.below(100))),
                    _ if dice.chance(250) => (How::Delete, part(dice.pick(&[0, 0, 10, 100]))),
                    _ => (How::Add(dice.pick(&[0, 2, 16, 16])), part(dice.pick(&[0, 0, 10, 100]))),
                };
                Act {
                    rest,
                    lock: dice.pick(&[0, 0, 0, 1]),
                    mode: Mode::Exclusive,
                    limit: 1,
                    permits: 1,
                    also: None,
                    scope: None,
                    how,
                    cancel: Cancel::draw(dice, 200, unit),
                    ttl: unit,
                    renew: true,
                    fair: true,
                    local: 0,
                    max_hold: at_most.filter(|_| how == How::Start),
                    section: vec![Doing::Work(part(dice.pick(&[0, 5, 40, 150, 400])))],
                    end: match dice.below(10) {
                        0..6 => End::Release(Cancel::Never),
                        6 | 7 => End::Fail,
                        _ if calm => End::Release(Cancel::Never),
                        _ => End::Drop,
                    },
                }
            };
            task.acts = (0..dice.between(2, 6)).map(|_| act(dice)).collect();
        }
    }
}
