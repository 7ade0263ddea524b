//! Steps as commands, and the server's replies as answers.

use std::time::Duration;

use redis::{Cmd, Value};

use super::code;
use super::fault::{self, Named};
use super::foreign_wake;
use super::keys::{BIRTH, holder_key, write_record_key};
use super::outcome::{outcome, state};
use super::redisson;
use super::scripts::{Call, Script, word};
use crate::error::{Code, Error};
use crate::fence::Token;
use crate::port::{Action, Answer, Failure, Kind, Layout, LockKey, Outcome, Step, Take};

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
        let birth = locks.iter().any(votes).then(|| BIRTH.to_owned());
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
            write_renewals(&mut command, locks);
        } else {
            let frees = self.passes().then(|| &self.steps[0]);
            for step in locks {
                write_arguments(&mut command, step, frees, channel);
            }
        }
        match locks.first() {
            Some(Step { kind, action, .. }) if *kind != Kind::Mutex && !action.only_looks() => {
                command.arg(code::of_kind(*kind));
            }
            _ => {}
        }
        command
    }

    /// Appends the answer that the reply gives to each step.
    pub(super) fn answers(&self, reply: Value, address: &impl Named, answers: &mut Vec<Answer>) {
        match (reply, self.steps) {
            (Value::ServerError(error), steps) => {
                let text = format!("{} {}", error.code(), error.details().unwrap_or_default());
                let failed = |step: &Step| Err(fault::failed_step(address, &text, &step.lock));
                answers.extend(steps.iter().map(failed));
            }
            (reply, [step]) if !matches!(self.script.call(), Call::Renew | Call::All) => {
                answers.push(answer(step, &reply, address));
            }
            // The plain case is answered by the token alone.
            (token @ Value::Int(_), [_, take]) => {
                answers.extend([Ok(Outcome::Freed), answer(take, &token, address)]);
            }
            (Value::Array(replies), steps) => {
                let replies = replies.iter().map(Some).chain(std::iter::repeat(None));
                let answer = |(step, reply): (&Step, Option<&Value>)| {
                    reply.map_or_else(|| Err(garbled(&step.lock)), |it| answer(step, it, address))
                };
                answers.extend(steps.iter().zip(replies).map(answer));
            }
            (_, steps) => answers.extend(steps.iter().map(|step| Err(garbled(&step.lock)))),
        }
    }
}

/// The part of a reply that answers one step.
fn answer(step: &Step, reply: &Value, address: &impl Named) -> Answer {
    let outcome = match (reply, &step.action) {
        // The token alone, if all is as it was asked for.
        (Value::Int(number), action) if *number > word::LAST => {
            let granted =
                |left, drawn| Outcome::Granted { token: Token::new(*number as u64), left, drawn };
            match action {
                Action::Take(take) => Some(granted(take.ttl, take.block.max(1))),
                Action::Refresh { ttl } | Action::Renew { ttl } => {
                    Some(granted(Duration::from_millis(millis(*ttl)), 1))
                }
                _ => None,
            }
        }
        (number @ Value::Int(_), _) => outcome(std::slice::from_ref(number)),
        (Value::Array(words), Action::Read) => state(words),
        (Value::Array(words), _) => match &words[..] {
            [Value::Int(word::FAILED), Value::BulkString(text), ..] => {
                let text = String::from_utf8_lossy(text);
                return Err(fault::failed_step(address, &text, &step.lock));
            }
            words => outcome(words),
        },
        _ => None,
    };
    outcome.ok_or_else(|| garbled(&step.lock))
}

/// One failure for all.
pub(super) fn fail(steps: &[Step], failure: &Failure) -> Vec<Answer> {
    steps.iter().map(|_| Err(failure.clone())).collect()
}

/// Whether the server does not know the script: then it certainly did not run.
pub(super) fn is_unknown_script(reply: &Value) -> bool {
    matches!(reply, Value::ServerError(error) if error.code() == "NOSCRIPT")
}

fn votes(step: &Step) -> bool {
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
    match foreign_wake::wake(&step.lock) {
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
        command.arg(code::of_mode(take.mode)).arg(take.limit).arg(take.permits);
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

/// A reply that no script of ours gives: what was done is not known.
fn garbled(lock: &LockKey) -> Failure {
    let error = Error::internal("the server answered a script in a form fencelock does not know");
    Failure::unknown(error.with("key", lock.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
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

    fn renewals(count: usize) -> Vec<Step> {
        let owner = OwnerId::parse(&"1".repeat(32)).expect("32 digits");
        let (lock, kind) = (LockKey::new("orders"), Kind::Mutex);
        let step = |at: usize| {
            let ttl = Duration::from_micros(1500) * u32::try_from(at + 1).expect("few");
            let action = if at == 1 { Action::Refresh { ttl } } else { Action::Renew { ttl } };
            Step { lock: lock.clone(), owner, kind, action }
        };
        (0..count).map(step).collect()
    }

    #[test]
    fn renewals_have_one_length() {
        let mut command = Cmd::new();
        write_renewals(&mut command, &renewals(3));
        let owner = "1".repeat(32);
        let expected =
            format!("{owner}000000000000000002{owner}100000000000000003{owner}000000000000000005");
        assert_eq!(expected.len(), 3 * ENTRY_SIZE);
        assert_eq!(command.args_iter().last(), Some(redis::Arg::Simple(expected.as_bytes())));
    }

    #[test]
    fn tokens_stand_for_those_who_hold_and_words_for_the_others() {
        let words = |words: &[Value]| Value::Array(words.to_vec());
        let failed = Value::BulkString(b"WRONGTYPE".to_vec());
        let reply = Value::Array(vec![
            Value::Int(70),
            Value::Int(word::GONE),
            words(&[Value::Int(word::FAILED), failed]),
            words(&[Value::Int(word::GRANTED), Value::Int(9_007_199_254_740_991), Value::Int(6)]),
        ]);
        let steps = renewals(5);
        let mut answers = Vec::new();
        Request::plan(&steps)[0].answers(reply, &Here, &mut answers);
        let held = |token, millis| Outcome::Granted {
            token: Token::new(token),
            left: Duration::from_millis(millis),
            drawn: 1,
        };
        assert!(matches!(&answers[0], Ok(outcome) if *outcome == held(70, 2)));
        assert!(matches!(&answers[1], Ok(Outcome::Gone)));
        assert!(matches!(&answers[2], Err(failure) if failure.error.code() == Code::Conflict));
        let last = held(9_007_199_254_740_991, 6);
        assert!(matches!(&answers[3], Ok(outcome) if *outcome == last));
        // Nothing was said of it.
        assert!(matches!(&answers[4], Err(failure) if failure.error.code() == Code::Internal));
    }

    struct Here;

    impl std::fmt::Display for Here {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("here")
        }
    }

    impl Named for Here {
        fn scrub(&self, text: &str) -> String {
            text.to_owned()
        }
    }
}
