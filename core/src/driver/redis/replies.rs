//! The server's replies as answers, and its messages as notices.

use std::sync::Arc;
use std::time::Duration;

use redis::{Cmd, Value};

use super::fault::{self, Named};
use super::scripts::{Call, Script, Sent};
use super::steps::{Request, fail, millis};
use crate::error::Error;
use crate::fence::Token;
use crate::port::{
    Action, Answer, Failure, HolderView, Kind, LockKey, LockState, Mode, Notice, Outcome, OwnerId,
    Step, WaiterView,
};

/// The meanings of the first word of a reply.
mod word {
    pub(super) const FAILED: i64 = 0;
    pub(super) const GRANTED: i64 = 1;
    pub(super) const QUEUED: i64 = 2;
    pub(super) const HELD: i64 = 3;
    pub(super) const FREED: i64 = 4;
    pub(super) const GONE: i64 = 5;
    pub(super) const CONFLICT: i64 = 6;
    pub(super) const UNBORN: i64 = 7;
    pub(super) const RECOVERING: i64 = 8;
    /// No word is higher; tokens are.
    pub(super) const LAST: i64 = RECOVERING;
}

/// The replies to an exchange, one for each request.
pub(super) struct Replies {
    pub(super) values: Vec<Value>,
    pub(super) lack: Lack,
}

/// The parts missing from an exchange.
#[derive(Default)]
pub(super) struct Lack {
    /// Scripts the server had forgotten were sent once more, and had no answer.
    pub(super) failed: Option<Failure>,
    /// Too few replicas have acknowledged what was written.
    pub(super) acks: Option<Error>,
}

/// Calls scripts by hash, and once more by text those that the server has forgotten. `command` makes a call; `send` sends some, and answers
/// also which acknowledgements the replies lack.
pub(super) async fn call<F: Future<Output = Result<(Vec<Value>, Option<Error>), Failure>>>(
    scripts: &[Script],
    sent: &Sent,
    command: impl Fn(usize, &str, &str) -> Cmd,
    send: impl Fn(Vec<Cmd>) -> F,
) -> Result<Replies, Failure> {
    let first = |(at, script): (usize, &Script)| {
        let (verb, script) = script.as_sent(sent);
        command(at, verb, script)
    };
    let (mut values, acks) = send(scripts.iter().enumerate().map(first).collect()).await?;
    let mut lack = Lack { failed: None, acks };
    let unknown = |at: &usize| is_unknown_script(&values[*at]);
    let forgotten: Vec<usize> = (0..values.len()).filter(unknown).collect();
    if forgotten.is_empty() {
        return Ok(Replies { values, lack });
    }
    let whole = |at: &usize| command(*at, "EVAL", scripts[*at].text());
    match send(forgotten.iter().map(whole).collect()).await {
        Ok((again, acks)) => {
            lack.acks = acks.or(lack.acks);
            for (at, value) in forgotten.into_iter().zip(again) {
                values[at] = value;
            }
        }
        // Only these are unknown; the others have their answers.
        Err(failure) => lack.failed = Some(failure),
    }
    Ok(Replies { values, lack })
}

impl Replies {
    /// The reply to the only request.
    pub(super) fn only(mut self) -> Result<Value, Failure> {
        self.lack.failed.map_or_else(|| Ok(self.values.pop().unwrap_or_default()), Err)
    }
}

impl Request<'_> {
    /// Appends the answer that the reply gives to each step.
    pub(super) fn answers(
        &self,
        reply: Value,
        lack: &Lack,
        address: &impl Named,
        answers: &mut Vec<Answer>,
    ) {
        if let Some(failure) = lack.failed.as_ref().filter(|_| is_unknown_script(&reply)) {
            return answers.extend(fail(self.steps, failure));
        }
        let before = answers.len();
        self.read(reply, address, answers);
        let Some(error) = &lack.acks else { return };
        for answer in &mut answers[before..] {
            if matches!(answer, Ok(Outcome::Granted { .. })) {
                // It stands on the master, and on how many others nobody knows.
                *answer = Err(Failure::unknown(error.clone()));
            }
        }
    }

    fn read(&self, reply: Value, address: &impl Named, answers: &mut Vec<Answer>) {
        match (reply, self.steps) {
            (Value::ServerError(error), steps) => {
                let text = fault::words(&error);
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

/// Whether the server does not know the script: then it certainly did not run.
fn is_unknown_script(reply: &Value) -> bool {
    matches!(reply, Value::ServerError(error) if error.code() == "NOSCRIPT")
}

/// A reply that no script of ours gives: what was done is not known.
fn garbled(lock: &LockKey) -> Failure {
    let error = Error::internal("the server answered a script in a form fencelock does not know");
    Failure::unknown(error.with("key", lock.as_str()))
}

// Kinds and modes as the scripts write them.
const MODES: [Mode; 4] = [Mode::Exclusive, Mode::Read, Mode::Write, Mode::Permit];
const KINDS: [Kind; 3] = [Kind::Mutex, Kind::ReadWrite, Kind::Semaphore];

fn place<T: PartialEq>(all: &[T], one: &T) -> i64 {
    let place = all.iter().position(|known| known == one).expect("all are listed");
    i64::try_from(place + 1).unwrap_or(0)
}

fn at<T: Copy>(all: &[T], code: i64) -> Option<T> {
    all.get(usize::try_from(code).ok()?.checked_sub(1)?).copied()
}

pub(super) fn code_of_mode(mode: Mode) -> i64 {
    place(&MODES, &mode)
}

fn mode_of(code: i64) -> Option<Mode> {
    at(&MODES, code)
}

pub(super) fn code_of_kind(kind: Kind) -> i64 {
    place(&KINDS, &kind)
}

fn kind_of(code: i64) -> Option<Kind> {
    at(&KINDS, code)
}

/// The answer of a node whose birth mark is gone: how long it will not vote is not known yet.
pub(super) const UNBORN: Outcome = Outcome::Recovering { left: Duration::ZERO };

fn number(word: &Value) -> Option<i64> {
    if let Value::Int(number) = word { Some(*number) } else { None }
}

fn unsigned(word: &Value) -> Option<u64> {
    number(word).and_then(|number| u64::try_from(number).ok())
}

/// A lease of so many milliseconds; a negative number is one without an end.
fn lease(millis: i64) -> Option<Duration> {
    u64::try_from(millis).ok().map(Duration::from_millis)
}

/// The outcome that a reply states, if a script of ours gave it.
fn outcome(words: &[Value]) -> Option<Outcome> {
    let outcome = match (number(words.first()?)?, &words[1..]) {
        (word::GRANTED, [token, ttl, more @ ..]) => Outcome::Granted {
            token: Token::new(unsigned(token)?),
            left: lease(number(ttl)?).unwrap_or_default(),
            drawn: match more.first() {
                Some(drawn) => u32::try_from(number(drawn)?).ok()?.max(1),
                None => 1,
            },
        },
        (word::QUEUED, [last, ttl, ahead, foreign]) => Outcome::Queued {
            last: Token::new(unsigned(last)?),
            left: lease(number(ttl)?),
            ahead: u32::try_from(number(ahead)?).ok()?,
            foreign: number(foreign)? == 1,
        },
        (word::CONFLICT, [kind, ..]) => Outcome::Conflict { kind: kind_of(number(kind)?)? },
        (word::UNBORN, _) => UNBORN,
        (word::RECOVERING, [left]) => Outcome::Recovering { left: lease(number(left)?)? },
        (word::HELD, [ttl, ..]) => Outcome::Held { left: lease(number(ttl)?) },
        (word::FREED, _) => Outcome::Freed,
        (word::GONE, _) => Outcome::Gone,
        _ => return None,
    };
    Some(outcome)
}

fn text(word: &Value) -> Option<Arc<str>> {
    let Value::BulkString(bytes) = word else { return None };
    Some(String::from_utf8_lossy(bytes).into())
}

/// The outcome that the reply to a look states.
fn state(words: &[Value]) -> Option<Outcome> {
    let [kind, last, now, count, rest @ ..] = words else { return None };
    let ago = |since| Duration::from_micros(unsigned(now).unwrap_or(0).saturating_sub(since));
    let (holders, waiters) = rest.split_at_checked(6 * usize::try_from(number(count)?).ok()?)?;
    let holder = |words: &[Value]| {
        // Of a holder that is not ours only its end is known.
        let token = unsigned(&words[1]).map(Token::new);
        Some(HolderView {
            mode: mode_of(number(&words[0])?)?,
            token,
            left: lease(number(&words[2])?),
            held_for: token.and(Some(ago(unsigned(&words[3])?))),
            info: text(&words[4])?,
            owner: OwnerId::parse(&text(&words[5])?),
        })
    };
    let mut holders: Vec<_> = holders.chunks_exact(6).map(holder).collect::<Option<_>>()?;
    holders.sort_by_key(|holder| holder.token);
    let waiter = |words: &[Value]| {
        Some(WaiterView {
            mode: mode_of(number(&words[0])?)?,
            waiting_for: ago(unsigned(&words[1])?),
            info: text(&words[2])?,
        })
    };
    let waiters = waiters.chunks_exact(3).map(waiter).collect::<Option<_>>()?;
    let (kind, last) = (kind_of(number(kind)?)?, Token::new(unsigned(last)?));
    Some(Outcome::State(LockState { kind, holders, last, waiters }))
}

/// Reads a message of a script: `g<owner> <token> <ttl in ms> <tokens drawn>` for a grant, `o<owner>` for an open lock. Anybody may publish,
/// so anything may stand there.
pub(super) fn notice(message: &[u8]) -> Option<Notice> {
    let message = std::str::from_utf8(message).ok()?;
    if let Some(owner) = message.strip_prefix('o') {
        return Some(Notice::Open { owner: OwnerId::parse(owner)? });
    }
    let mut words = message.strip_prefix('g')?.split(' ');
    let owner = OwnerId::parse(words.next()?)?;
    let token = Token::new(words.next()?.parse().ok()?);
    let ttl = Duration::from_millis(words.next()?.parse().ok()?);
    let drawn = words.next()?.parse().ok()?;
    words.next().is_none().then_some(Notice::Granted { owner, token, ttl, drawn })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Code;

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
    fn only_whole_messages_are_notices() {
        let owner = "00112233445566778899aabbccddeeff";
        let granted = Notice::Granted {
            owner: OwnerId::parse(owner).unwrap(),
            token: Token::new(7),
            ttl: Duration::from_secs(5),
            drawn: 17,
        };
        assert_eq!(notice(format!("g{owner} 7 5000 17").as_bytes()), Some(granted));
        assert!(notice(format!("o{owner}").as_bytes()).is_some());
        for bad in
            ["", "g", "o", "gx 7 5000 1", &format!("g{owner} 7 5"), &format!("g{owner} 7 5 9 1")]
        {
            assert_eq!(notice(bad.as_bytes()), None, "{bad}");
        }
        assert_eq!(notice(b"o\xff"), None);
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
        Request::plan(&steps)[0].answers(reply, &Lack::default(), &Here, &mut answers);
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
