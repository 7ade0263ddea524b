//! Steps as commands.

use std::time::Duration;

use redis::Cmd;

use super::keys::{BIRTH, holder_key, redisson_side_key, wake_of, write_record_key};
use super::replies::{code_of_kind, code_of_mode};
use super::scripts::{Call, Script};
use crate::error::{Code, Error};
use crate::port::{Action, Answer, Failure, Kind, Layout, Step, Take};

/// The most locks of one script, so that no script keeps the server for long.
const GROUP: usize = 600;
/// Digits of a lease in what is told.
const DIGITS: usize = 17;
/// The size of the argument for one lock: the owner, whether it is a Refresh, the lease.
pub(super) const ENTRY_SIZE: usize = 32 + 1 + DIGITS;

/// One script call: a single step, or a run of renewals and refreshes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request<'a> {
    pub(super) script: Script,
    pub(super) steps: &'a [Step],
}

impl<'a> Request<'a> {
    /// Cuts a batch into calls, in order.
    pub(super) fn plan(mut batch: &'a [Step]) -> Vec<Self> {
        let mut plan = Vec::new();
        while let Some(first) = batch.first() {
            let script = script_of(first);
            let (script, count) = match (script.call(), batch.get(1)) {
                (Call::Renew, _) => {
                    let same = |step: &&Step| (script_of(step), step.kind) == (script, first.kind);
                    (script, batch.iter().take(GROUP).take_while(same).count())
                }
                // A client that frees a mutex and takes it anew sends one script instead of two.
                (Call::Free, Some(next)) if passes(first, next) => (script_of(next), 2),
                _ => (script, 1),
            };
            let (steps, rest) = batch.split_at(count);
            plan.push(Self { script, steps });
            batch = rest;
        }
        plan
    }

    /// One call for Takes of different mutexes, as one.
    pub(super) fn all(steps: &'a [Step]) -> Self {
        let layout = steps.first().map_or(Layout::Own, |step| step.lock.layout());
        Self { script: Script::of(Call::All, Kind::Mutex, layout), steps }
    }

    /// Why these steps are not one call, if they are none.
    pub(super) fn apart(steps: &[Step]) -> Option<Vec<Answer>> {
        let mutex = |step: &Step| {
            let plain = matches!(step.action, Action::Take(Take { vote: None, .. }));
            step.kind == Kind::Mutex && plain
        };
        let alike = |step: &Step| step.lock.layout() == steps[0].lock.layout();
        if steps.iter().all(|step| mutex(step) && alike(step)) {
            return None;
        }
        let message = "only mutexes of one dialect are taken as one; others one after another";
        Some(fail(steps, &Failure::refused(Error::new(Code::Unsupported, message))))
    }

    /// Whether it is a Free and the Take of the same mutex behind it.
    fn passes(&self) -> bool {
        self.script.call() == Call::Take && self.steps.len() == 2
    }

    /// The call by the script's hash (`EVALSHA`) or its text (`EVAL`).
    pub(super) fn command(&self, verb: &str, script: &str, channel: &str) -> Cmd {
        let count = self.steps.len();
        let renews = self.script.call() == Call::Renew;
        let (words, bytes) = if renews { (2, 192) } else { (12, 512) };
        let mut command = Cmd::with_capacity(4 + words * count, script.len() + bytes * count);
        let locks = if self.passes() { &self.steps[1..] } else { self.steps };
        let mark = locks.iter().any(votes).then(|| BIRTH.to_owned());
        let more: Vec<_> = locks.iter().filter_map(redisson_side_key).chain(mark).collect();
        command.arg(verb).arg(script).arg(2 * locks.len() + more.len());
        let mut record = String::new();
        for Step { lock, .. } in locks {
            record.clear();
            write_record_key(lock, &mut record);
            command.arg(&*holder_key(lock)).arg(&record);
        }
        command.arg(more);
        if renews {
            write_renewals(&mut command, locks);
        } else {
            let frees = self.passes().then(|| &self.steps[0]);
            for step in locks {
                write_arguments(&mut command, step, frees, channel);
            }
        }
        match locks.first() {
            Some(Step { kind, action, .. }) if *kind != Kind::Mutex && !action.only_looks() => {
                command.arg(code_of_kind(*kind));
            }
            _ => {}
        }
        command
    }
}

/// One failure for all.
pub(super) fn fail(steps: &[Step], failure: &Failure) -> Vec<Answer> {
    steps.iter().map(|_| Err(failure.clone())).collect()
}

pub(super) fn votes(step: &Step) -> bool {
    matches!(step.action, Action::Take(Take { vote: Some(_), .. }))
}

/// Whether the second step takes the mutex that the first one frees.
fn passes(first: &Step, next: &Step) -> bool {
    let mutex = first.kind == Kind::Mutex && next.kind == Kind::Mutex;
    let takes = matches!(next.action, Action::Take(Take { vote: None, .. }));
    mutex && takes && first.lock == next.lock
}

fn script_of(step: &Step) -> Script {
    let call = match step.action {
        Action::Take(_) => Call::Take,
        Action::Free { .. } | Action::Break => Call::Free,
        Action::Leave { .. } => Call::Leave,
        Action::Refresh { .. } | Action::Renew { .. } => Call::Renew,
        Action::Read => Call::Look,
    };
    Script::of(call, step.kind, step.lock.layout())
}

/// Adds what the script is told of all its locks, as one word: a hundred thousand leases are renewed three times in each of
/// their lengths, and every word more costs both sides.
fn write_renewals(command: &mut Cmd, steps: &[Step]) {
    let mut entries = String::with_capacity(ENTRY_SIZE * steps.len());
    let (mut length, mut digits) = (0, String::new());
    for step in steps {
        entries.push_str(step.owner.encode(&mut [0; 32]));
        entries.push(if matches!(step.action, Action::Refresh { .. }) { '1' } else { '0' });
        // Most want the same.
        let millis = millis(lease(&step.action));
        if millis != length {
            length = millis;
            digits = format!("{millis:0DIGITS$}");
        }
        entries.push_str(&digits);
    }
    command.arg(entries);
}

fn lease(action: &Action) -> Duration {
    match action {
        Action::Refresh { ttl } | Action::Renew { ttl } => *ttl,
        _ => Duration::ZERO,
    }
}

/// `frees`: the Free or Break of the same mutex before a Take.
fn write_arguments(command: &mut Cmd, step: &Step, frees: Option<&Step>, channel: &str) {
    if !step.action.only_looks() {
        command.arg(step.owner.encode(&mut [0; 32]));
    }
    match &step.action {
        Action::Take(take) => return write_take(command, step.kind, take, frees, channel),
        Action::Free { open } => command.arg(u8::from(*open)),
        Action::Break => command.arg(0),
        Action::Leave { tombstone } => command.arg(micros(tombstone.unwrap_or_default())),
        // Those of a renewal batch are written together.
        Action::Refresh { .. } | Action::Renew { .. } | Action::Read => return,
    };
    match wake_of(&step.lock) {
        Some(wake) => {
            command.arg(wake.list).arg(wake.channel);
        }
        None if step.kind != Kind::Mutex => {
            command.arg("").arg("");
        }
        None => {}
    }
}

fn write_take(command: &mut Cmd, kind: Kind, take: &Take, frees: Option<&Step>, channel: &str) {
    command.arg(millis(take.ttl)).arg(u8::from(take.wait)).arg(take.block.max(1));
    command.arg(take.floor.get()).arg(channel).arg(&*take.info);
    if let Some(Step { owner, action, .. }) = frees {
        let open = matches!(action, Action::Free { open: true });
        command.arg(owner.encode(&mut [0; 32])).arg(u8::from(open));
    } else if kind != Kind::Mutex {
        command.arg(code_of_mode(take.mode)).arg(take.limit).arg(take.permits);
    } else if take.vote.is_some() {
        command.arg("").arg("").arg("");
    }
    if let Some(vote) = take.vote {
        command.arg(micros(vote.aged)).arg(u8::from(vote.again));
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX >> 11)
}

/// The unit of Redis' leases. Rounded up: a lock never ends before we were told it would.
pub(super) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_micros().div_ceil(1000)).unwrap_or(u64::MAX >> 11).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fence::Token;
    use crate::port::{LockKey, Mode, OwnerId, Vote};

    fn take() -> Take {
        Take {
            mode: Mode::Exclusive,
            limit: 1,
            permits: 1,
            ttl: Duration::from_secs(1),
            wait: false,
            block: 1,
            floor: Token::default(),
            info: "{}".into(),
            vote: None,
        }
    }

    fn actions() -> Vec<Action> {
        let ttl = Duration::from_secs(1);
        let vote = Some(Vote { aged: ttl, again: false });
        vec![
            Action::Take(take()),
            Action::Refresh { ttl },
            Action::Renew { ttl },
            Action::Free { open: false },
            Action::Leave { tombstone: None },
            Action::Read,
            Action::Take(Take { vote, ..take() }),
        ]
    }

    /// A script that was forgotten would be missed when somebody needs it.
    #[test]
    fn every_step_has_a_script_of_its_own() {
        for layout in [Layout::Own, Layout::Redisson] {
            let lock = LockKey::laid_out(layout, "orders");
            for kind in [Kind::Mutex, Kind::ReadWrite, Kind::Semaphore] {
                for action in actions() {
                    let votes = matches!(action, Action::Take(Take { vote: Some(_), .. }));
                    // A quorum has no dialects and no permits, Redisson no permits of ours.
                    let permits = kind == Kind::Semaphore;
                    if votes && (layout != Layout::Own || permits)
                        || layout != Layout::Own && permits
                    {
                        continue;
                    }
                    let step = Step { kind, action, ..of(&lock) };
                    let plan = Request::plan(std::slice::from_ref(&step));
                    assert!(plan[0].script.text().contains("redis.call"), "{step:?}");
                }
            }
            let steps = [
                Step { action: Action::Free { open: false }, ..of(&lock) },
                Step { action: Action::Take(take()), ..of(&lock) },
            ];
            assert_eq!(Request::plan(&steps).len(), 1);
            assert!(!Request::all(&steps).script.text().is_empty());
        }
    }

    fn of(lock: &LockKey) -> Step {
        let owner = OwnerId::parse(&"1".repeat(32)).expect("32 digits");
        Step { lock: lock.clone(), owner, kind: Kind::Mutex, action: Action::Read }
    }
}
