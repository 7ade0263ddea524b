//! The cases and options for which the command line has no words.

use fencelock::options::{OptionKind, OptionRow, OptionScope, TABLE};
use fencelock::port::Mode;
use serde_json::Value;

use super::case::{Case, Need};
use super::step::{Ask, Name, Step};
use crate::protocol::Options;

/// Milliseconds in which a command surely has started.
const START: f64 = 500.0;
/// Of all kinds of locks it knows one.
const MUTEXES: &str = "it runs commands under mutexes, and jobs: cli/tests/program/job.rs";
/// Milliseconds no text can name.
const TOO_LONG: f64 = 1e15;

/// Why the command line cannot play a case; `None` if it can.
pub(super) fn lacks(case: &Case) -> Option<&'static str> {
    let needs = case.needs();
    if needs.contains(&Need::Untyped) {
        return Some("all its words are text");
    }
    if needs.contains(&Need::OneClient) {
        return Some("every run is a client of its own");
    }
    if needs.contains(&Need::WholeLease) {
        return Some("it ends the command before the lease ends");
    }
    case.steps.iter().find_map(beyond).or_else(|| beyond_options(&case.options))
}

fn beyond(step: &Step) -> Option<&'static str> {
    match step {
        Step::Acquire(ask) | Step::Try(ask) | Step::Start(ask) => beyond_ask(ask),
        Step::Job(_)
        | Step::Leader(_)
        | Step::Observe(_)
        | Step::Value(_)
        | Step::Write(_)
        | Step::Update(_) => Some(MUTEXES),
        Step::Transfer(_) => Some("a run ends with its command"),
        Step::Extend(_) | Step::Remaining(_) => {
            Some("it keeps the lease by itself, and ends the command when it cannot")
        }
        Step::PingStore(_) | Step::Locked(_) => Some("a look is `inspect`"),
        Step::Gate(_) => Some("a command writes by itself"),
        Step::Break(_) => Some("cli/tests/program/look.rs has `break`"),
        Step::Connect(connect) if connect.url.as_deref() == Some("") => {
            Some("no URL is the one by default")
        }
        Step::Close(_) => Some("nothing stays connected between two commands"),
        Step::Stop(_) | Step::Resume(_) => Some("a frozen actor does not freeze its runs"),
        Step::Parallel(times) | Step::Repeat(times) => times.steps.iter().find_map(beyond),
        _ => None,
    }
}

fn beyond_ask(ask: &Ask) -> Option<&'static str> {
    let other = ask.permits.is_some() || ask.scope.is_some() || ask.job.is_some() || ask.elect;
    if other || ask.mode != Mode::default() || !ask.all.is_empty() {
        return Some(MUTEXES);
    }
    if ask.patience.is_some() {
        return Some("who waits in vain is told so: exit code 75");
    }
    if matches!(&ask.lock, Name::Own(name) | Name::Exact { exact: name } if name.contains('\0')) {
        return Some("no word of a command line holds a zero byte");
    }
    let of_client = |name: &String| row(name).is_some_and(|row| row.scope == OptionScope::Client);
    if ask.options.keys().any(of_client) {
        return Some("its options are the client's and the lock's alike");
    }
    beyond_options(&ask.options)
}

fn beyond_options(options: &Options) -> Option<&'static str> {
    let is_text = |name: &str| row(name).is_some_and(|row| row.kind == OptionKind::Text);
    if options.iter().any(|(name, value)| is_text(name) && !value.is_string()) {
        return Some("all its words are text");
    }
    let time = |name| options.get(name).and_then(Value::as_f64);
    let ends = |time: f64| time > 0.0 && time < START;
    if ["ttl", "max_hold"].into_iter().filter_map(time).any(ends) {
        return Some("so short a lease ends before a command has started");
    }
    if options.values().filter_map(Value::as_f64).any(|time| time >= TOO_LONG) {
        return Some("so long a time is `forever` in text");
    }
    None
}

fn row(name: &str) -> Option<&'static OptionRow> {
    TABLE.iter().find(|row| row.name == name)
}
