//! Whether an answer is what a case expects.

use fencelock::port::{Instant, Mode};
use serde::Deserialize;
use serde_json::Value;

use super::step::{Expect, State, Trouble};
use crate::protocol::{End, Grant, Refusal};

/// Tokens fit into every language's numbers.
const TOO_MUCH: u64 = 1 << 53;

/// Compares an end with what is expected.
pub(super) fn end(expect: &Expect, end: &End) -> Result<(), String> {
    let fits = match (expect, end) {
        (Expect::Error(trouble), End::Error(refusal)) => return refused(trouble, refusal),
        (Expect::Granted, end) => {
            return match grant(end) {
                Some(Grant { token: 1..TOO_MUCH, .. }) => Ok(()),
                Some(Grant { token, .. }) => Err(format!("{token} is no token")),
                None => Err(format!("expected a grant, got {end:?}")),
            };
        }
        (Expect::None, End::Ok(value)) => value.is_null(),
        (Expect::Skipped(reason), End::Ok(value)) => value["skipped"]["reason"] == reason.as_str(),
        (Expect::Done, End::Ok(_)) => true,
        (Expect::Released, End::Ok(value)) => value == "released",
        (Expect::AlreadyLost, End::Ok(value)) => value == "already_lost",
        (Expect::Unconfirmed, End::Ok(value)) => value == "unconfirmed",
        (Expect::GivenUp, End::Error(refusal)) => refusal.code == fencelock::Code::Cancelled,
        (Expect::Taken | Expect::GivenUp, end) => grant(end).is_some(),
        _ => false,
    };
    if fits { Ok(()) } else { Err(format!("expected {expect:?}, got {end:?}")) }
}

/// The guard of an end, if there is one.
pub(super) fn grant(end: &End) -> Option<Grant> {
    match end {
        End::Ok(value) => Grant::deserialize(value).ok(),
        End::Error(_) => None,
    }
}

fn refused(trouble: &Trouble, refusal: &Refusal) -> Result<(), String> {
    let wrong = |what: &str| Err(format!("{what}: expected {trouble:?}, got {refusal:?}"));
    if trouble.code != refusal.code {
        return wrong("another code");
    }
    if trouble.says.as_ref().is_some_and(|part| !refusal.message.contains(part)) {
        return wrong("another message");
    }
    if refusal.message.len() < 20 {
        return wrong("too short a message to tell what to do");
    }
    if trouble.retryable.is_some_and(|retryable| retryable != refusal.retryable) {
        return wrong("another retryable");
    }
    for (name, part) in &trouble.fields {
        if !refusal.fields.get(name).is_some_and(|value| value.contains(part)) {
            return wrong("another field");
        }
    }
    Ok(())
}

/// Compares how long something took, in milliseconds, with a least and a most.
pub(super) fn took(
    range: (u64, u64),
    (asked, ended): (Instant, Instant),
    slack: u64,
) -> Result<(), String> {
    let took = ended.since(asked).as_secs_f64() * 1000.0;
    if took < range.0 as f64 || took > (range.1 + slack) as f64 {
        return Err(format!("took {took:.1} ms, expected {} to {} ms", range.0, range.1));
    }
    Ok(())
}

/// Whether this is the token that the store shows of a grant. On a quorum that was `voted` each node may have drawn another by its own clock.
pub(super) fn is_shown(seen: u64, token: u64, voted: bool) -> bool {
    seen.abs_diff(token) <= if voted { 1_000_000 } else { 0 }
}

/// Compares a lock as it was inspected with a case's words for it. `holder` is the token of the guard it names; a quorum
/// that was `voted` shows nobody who waits.
pub(super) fn state(
    expect: &State,
    holder: Option<u64>,
    voted: bool,
    seen: &Value,
) -> Result<(), String> {
    let shown =
        |token| seen["holder"]["token"].as_u64().is_some_and(|seen| is_shown(seen, token, voted));
    let wrong = |what: &str| Err(format!("{what} is not as expected: {seen}"));
    let holds = &seen["holder"];
    let fits = match expect.holder.as_deref() {
        None => true,
        Some("nobody") => holds.is_null(),
        Some("somebody") => holds["token"].is_u64(),
        Some("foreign") => !holds.is_null() && holds["token"].is_null(),
        Some(_) => holder.is_some_and(shown),
    };
    if !fits {
        return wrong("the holder");
    }
    let waiters = seen["waiters"].as_array().map(Vec::as_slice).unwrap_or_default();
    // Those of a quorum ask again and again: no node knows them.
    let expected = expect.waiters.filter(|count| !voted || *count == 0);
    if expected.is_some_and(|count| waiters.len() != count) {
        return wrong("the number of waiters");
    }
    let holders = seen["holders"].as_array().into_iter().flatten();
    let modes = holders.map(|holder| Mode::deserialize(&holder["mode"]).ok());
    if expect.modes.as_ref().is_some_and(|expected| !modes.eq(expected.iter().copied().map(Some))) {
        return wrong("how it is held");
    }
    let infos = waiters.iter().map(|waiter| waiter["info"]["info"].as_str().unwrap_or(""));
    if expect.infos.as_ref().is_some_and(|expected| !infos.eq(expected)) {
        return wrong("the order of the waiters");
    }
    for (path, value) in &expect.info {
        let at = path.split('.').fold(&holds["info"], |value, key| &value[key]);
        if at.as_str() != Some(value) {
            return wrong(path);
        }
    }
    if expect.endless && !(holds.is_object() && holds["left"].is_null()) {
        return wrong("the lease, which should have no end,");
    }
    if let Some((from, to)) = expect.left {
        let left = holds["left"].as_f64().unwrap_or(-1.0);
        if left < from as f64 || left > to as f64 {
            return wrong("what is left of the lease");
        }
    }
    Ok(())
}
