//! The words of a reply, as what they say.

use std::sync::Arc;
use std::time::Duration;

use redis::Value;

use super::code;
use super::scripts::word;
use crate::fence::Token;
use crate::port::{HolderView, LockState, Outcome, OwnerId, WaiterView};

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
pub(super) fn outcome(words: &[Value]) -> Option<Outcome> {
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
        (word::CONFLICT, [kind, ..]) => Outcome::Conflict { kind: code::kind(number(kind)?)? },
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
pub(super) fn state(words: &[Value]) -> Option<Outcome> {
    let [kind, last, now, count, rest @ ..] = words else { return None };
    let ago = |since| Duration::from_micros(unsigned(now).unwrap_or(0).saturating_sub(since));
    let (holders, waiters) = rest.split_at_checked(6 * usize::try_from(number(count)?).ok()?)?;
    let holder = |words: &[Value]| {
        // Of a holder that is not ours only its end is known.
        let token = unsigned(&words[1]).map(Token::new);
        Some(HolderView {
            mode: code::mode(number(&words[0])?)?,
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
            mode: code::mode(number(&words[0])?)?,
            waiting_for: ago(unsigned(&words[1])?),
            info: text(&words[2])?,
        })
    };
    let waiters = waiters.chunks_exact(3).map(waiter).collect::<Option<_>>()?;
    let (kind, last) = (code::kind(number(kind)?)?, Token::new(unsigned(last)?));
    Some(Outcome::State(LockState { kind, holders, last, waiters }))
}
