//! Steps as commands, and the server's replies as answers.

use std::time::Duration;

use redis::{Cmd, Value};

use super::code;
use super::fault::{self, Named};
use super::foreign_wake;
use super::keys::{BIRTH, holder_key, write_record_key};
use super::outcome::{outcome, state};
use super::redisson;
use super::renew_batch::{self, GROUP, Told, WORDS};
use super::script::{Call, Form, Script, word};
use crate::error::{Code, Error};
use crate::fence::Token;
use crate::port::{Action, Answer, Failure, Kind, Layout, LockKey, Outcome, Step, Take};

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
        while let Some(step) = batch.first() {
            let script = script_of(step);
            let (script, count) = match (script, batch.get(1)) {
                (Script(Call::RenewBatch, ..), _) => {
                    let same = |step: &&Step| script_of(step) == script;
                    (script, batch.iter().take(GROUP).take_while(same).count())
                }
                (
                    // A client that frees a mutex and takes it anew sends one script instead of two.
                    Script(Call::Free, Kind::Mutex, layout),
                    Some(Step { lock, kind: Kind::Mutex, action: Action::Take(take), .. }),
                ) if *lock == step.lock && take.vote.is_none() => {
                    (Script(Call::Pass, Kind::Mutex, layout), 2)
                }
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
        let layout = steps.first().map_or(Layout::Own, |step| laid_out_as(&step.lock));
        Self { script: Script(Call::All, Kind::Mutex, layout), steps }
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

    /// The call by the script's hash (`EVALSHA`) or its text (`EVAL`).
    pub(super) fn command(&self, verb: &str, script: &str, channel: &str, form: Form) -> Cmd {
        let count = self.steps.len();
        let renews = self.script.0 == Call::RenewBatch;
        let (words, bytes) = if renews { (2, 192) } else { (10, 512) };
        let mut command = Cmd::with_capacity(4 + words * count, script.len() + bytes * count);
        let locks = if self.script.0 == Call::Pass { &self.steps[1..] } else { self.steps };
        let birth = (self.script.0 == Call::Vote).then(|| BIRTH.to_owned());
        let more: Vec<_> = locks.iter().filter_map(redisson::side_key).chain(birth).collect();
        command.arg(verb).arg(script).arg(2 * locks.len() + more.len());
        let mut record = String::new();
        for Step { lock, .. } in locks {
            record.clear();
            write_record_key(lock, &mut record);
            command.arg(&*holder_key(lock)).arg(&record);
        }
        command.arg(more);
        if renews {
            renew_batch::write_arguments(&mut command, locks);
            return command;
        }
        // Of a Pass the Take's come first: they are read where a Take reads them.
        for step in locks.iter().chain(&self.steps[..count - locks.len()]) {
            write_arguments(&mut command, step, channel, form);
        }
        command
    }

    /// Appends the answer that the reply gives to each step.
    pub(super) fn answers(
        &self,
        reply: Value,
        address: &impl Named,
        form: Form,
        answers: &mut Vec<Answer>,
    ) {
        let failed = |text: &str, lock| Err(fault::failed_step(address, text, lock));
        let words = match reply {
            Value::Array(words) => words,
            // The plain cases are answered by one number.
            Value::Int(number) => {
                if self.script.0 == Call::Pass {
                    answers.push(Ok(Outcome::Freed));
                }
                return answers.push(self.brief(number));
            }
            Value::ServerError(error) => {
                let text = format!("{} {}", error.code(), error.details().unwrap_or_default());
                return answers.extend(self.steps.iter().map(|step| failed(&text, &step.lock)));
            }
            _ => Vec::new(),
        };
        if self.script.0 == Call::Pass {
            let freed = words.first().and_then(|word| outcome(std::slice::from_ref(word)));
            answers.push(freed.ok_or_else(|| garbled(&self.steps[0].lock)));
            answers.push(match words.get(1..).unwrap_or_default() {
                [Value::Int(number)] => self.brief(*number),
                words => outcome(words).ok_or_else(|| garbled(&self.steps[1].lock)),
            });
        } else if self.script.0 == Call::RenewBatch {
            let told = renew_batch::read(self.steps, &words, form).zip(self.steps);
            answers.extend(told.map(|(told, step)| match told {
                Told::Outcome(outcome) => Ok(outcome),
                Told::Failed(text) => failed(&String::from_utf8_lossy(text), &step.lock),
                Told::Garbled => Err(garbled(&step.lock)),
            }));
        } else if self.script.0 == Call::All {
            for (at, step) in self.steps.iter().enumerate() {
                let words = words.get(at * WORDS..(at + 1) * WORDS).unwrap_or_default();
                answers.push(outcome(words).ok_or_else(|| garbled(&step.lock)));
            }
        } else {
            let outcome = if self.script.0 == Call::Look { state(&words) } else { outcome(&words) };
            answers.push(outcome.ok_or_else(|| garbled(&self.steps[0].lock)));
        }
    }
}

impl Request<'_> {
    /// The answer that a single number gives to the last step: to a Take the token, if it is one.
    fn brief(&self, number: i64) -> Answer {
        let step = &self.steps[self.steps.len() - 1];
        let outcome = match &step.action {
            Action::Take(take) if number > word::LAST => {
                u64::try_from(number).ok().map(|token| Outcome::Granted {
                    token: Token::new(token),
                    left: take.ttl,
                    drawn: take.block.max(1),
                })
            }
            _ => outcome(&[Value::Int(number)]),
        };
        outcome.ok_or_else(|| garbled(&step.lock))
    }
}

/// One failure for all.
pub(super) fn fail(steps: &[Step], failure: &Failure) -> Vec<Answer> {
    steps.iter().map(|_| Err(failure.clone())).collect()
}

/// Whether the server does not know the script: then it certainly did not run.
pub(super) fn is_unknown_script(reply: &Value) -> bool {
    matches!(reply, Value::ServerError(error) if error.code() == "NOSCRIPT")
}

/// The layout whose scripts a lock has: a plain dialect differs from our own layout in its keys only.
fn laid_out_as(lock: &LockKey) -> Layout {
    if lock.layout() == Layout::Plain { Layout::Own } else { lock.layout() }
}

fn script_of(step: &Step) -> Script {
    let layout = laid_out_as(&step.lock);
    let call = match step.action {
        Action::Take(Take { vote: Some(_), .. }) => {
            debug_assert!(layout == Layout::Own, "a quorum speaks no dialect");
            Call::Vote
        }
        Action::Take(_) => Call::Take,
        Action::Free { .. } | Action::Break => Call::Free,
        Action::Leave { .. } => Call::Leave,
        Action::Refresh { .. } | Action::Renew { .. } => Call::RenewBatch,
        Action::Read => return Script(Call::Look, Kind::Mutex, layout),
    };
    Script(call, step.kind, layout)
}

fn write_arguments(command: &mut Cmd, step: &Step, channel: &str, form: Form) {
    if !step.action.only_looks() {
        command.arg(step.owner.encode(&mut [0; 32]));
    }
    match &step.action {
        Action::Take(take) => write_take(command, step.kind, take, channel, form),
        Action::Free { open } => command.arg(u8::from(*open)),
        Action::Break => command.arg(0),
        Action::Leave { tombstone } => {
            let life = tombstone.unwrap_or_default().as_micros();
            command.arg(u64::try_from(life).unwrap_or(u64::MAX >> 11))
        }
        // Those of a renewal batch are written together.
        Action::Refresh { .. } | Action::Renew { .. } | Action::Read => command,
    };
    if matches!(step.action, Action::Free { .. } | Action::Break | Action::Leave { .. })
        && let Some(wake) = foreign_wake::wake(&step.lock)
    {
        command.arg(wake.list).arg(wake.channel);
    }
}

fn write_take<'a>(
    command: &'a mut Cmd,
    kind: Kind,
    take: &Take,
    channel: &str,
    form: Form,
) -> &'a mut Cmd {
    command.arg(millis(take.ttl));
    match form {
        Form::Packed => command.arg(&packed(take)[..]),
        Form::Text => {
            let (wait, block) = (u8::from(take.wait), take.block.max(1));
            command.arg(format!("{wait} {block} {}", take.floor.get()))
        }
    };
    command.arg(channel).arg(&*take.info);
    if kind != Kind::Mutex {
        command.arg(code::of_mode(take.mode)).arg(take.limit).arg(take.permits);
    }
    if let Some(vote) = take.vote {
        let aged = u64::try_from(vote.aged.as_micros()).unwrap_or(u64::MAX >> 11);
        command.arg(aged).arg(u8::from(vote.again));
    }
    command
}

/// Whether a Take waits, how many tokens it draws, and its floor, as a script unpacks them: `<Bdd`. Reading numbers from
/// text costs a script more.
#[expect(clippy::cast_precision_loss, reason = "tokens stay below 2^53")]
fn packed(take: &Take) -> [u8; 17] {
    let mut packed = [0; 17];
    packed[0] = u8::from(take.wait);
    packed[1..9].copy_from_slice(&f64::from(take.block.max(1)).to_le_bytes());
    packed[9..].copy_from_slice(&(take.floor.get() as f64).to_le_bytes());
    packed
}

/// The unit of Redis' leases. Rounded up: a lock never ends before we were told it would.
pub(super) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_micros().div_ceil(1000)).unwrap_or(u64::MAX >> 11).max(1)
}

/// A reply that no script of ours gives: what was done is not known.
fn garbled(lock: &LockKey) -> Failure {
    let error = Error::internal("the server answered a script in a form fencelock does not know");
    Failure::unknown(error.with("key", lock.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::redis::script::Texts;
    use crate::port::{Mode, OwnerId, Vote};

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
        let texts = Texts::stopped(Form::Packed);
        for layout in [Layout::Own, Layout::Redisson] {
            let lock = LockKey::laid_out(layout, "orders");
            for kind in [Kind::Mutex, Kind::ReadWrite, Kind::Semaphore] {
                for action in actions() {
                    let votes = matches!(action, Action::Take(Take { vote: Some(_), .. }));
                    // A quorum has no dialects and no permits.
                    if votes && (layout != Layout::Own || kind == Kind::Semaphore) {
                        continue;
                    }
                    let step = Step { kind, action, ..of(&lock) };
                    let plan = Request::plan(std::slice::from_ref(&step));
                    let text = texts.of(plan[0].script);
                    assert!(!text.contains("\n--"), "comments travel along: {text}");
                    assert!(text.contains("redis.call"), "{text}");
                }
            }
            let steps = [
                Step { action: Action::Free { open: false }, ..of(&lock) },
                Step { action: Action::Take(take()), ..of(&lock) },
            ];
            assert!(!texts.of(Request::plan(&steps)[0].script).is_empty());
            assert!(!texts.of(Request::all(&steps).script).is_empty());
        }
    }

    fn of(lock: &LockKey) -> Step {
        let owner = OwnerId::parse(&"1".repeat(32)).expect("32 digits");
        Step { lock: lock.clone(), owner, kind: Kind::Mutex, action: Action::Read }
    }
}
