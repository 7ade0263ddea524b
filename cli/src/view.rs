//! A lock for people and programs that look: what `inspect` and `ls` show.

use std::iter;
use std::time::{Duration, SystemTime};

use clap::ValueEnum;
use fencelock::Token;
use fencelock::port::{HolderView, Kind, LockState, Mode, WaiterView};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::legible::legible;

/// How a result is written.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// For people.
    Human,
    /// For programs.
    Json,
}

/// The JSON of a lock, for `--help`.
pub(crate) const JSON: &str = "\
JSON of a lock (times are whole milliseconds; new fields may be added, but none is renamed or removed):
  name        the lock
  state       \"held\" or \"free\"; in a list also \"error\", with `error` saying why it could not be read
  kind        how it is in use: \"mutex\", \"read_write\" or \"semaphore\"
  last_token  the newest fencing token drawn, 0 if none is known
  holder      the first of the holders, or null
  holders     in the order of their tokens, each with
    mode        \"exclusive\", \"read\", \"write\" or \"permit\"
    token       its fencing token; null if the holder is not fencelock's
    left_ms     what is left of its lease; null if it has no end
    held_ms     for how long it has held the lock, null if not known;  since: the same as a UTC time
    host, pid, app, language, info
                what the holder says about itself; null if it says nothing
    connection  its number on the database server, where the lock lives with a session there
  waiters     in their order, each with position (from 1), mode, waiting_ms, and host to info as above";

/// How many waiters `ls` shows of each lock, which may have thousands.
const SHOWN: usize = 3;

/// The identity that a holder or waiter gives. A part that is missing or of another type counts as not given.
#[derive(Clone, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Who {
    host: Option<String>,
    pid: Option<u64>,
    app: Option<String>,
    language: Option<String>,
    info: Value,
    /// Its number on the database server, where the lock lives with its session.
    #[serde(alias = "backend", skip_serializing_if = "Option::is_none")]
    connection: Option<u64>,
}

#[derive(Serialize)]
pub(crate) struct LockView {
    name: String,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    kind: Kind,
    last_token: Token,
    holder: Option<Holder>,
    holders: Vec<Holder>,
    waiters: Vec<Waiter>,
}

/// The holds that were broken.
#[derive(Serialize)]
pub(crate) struct BrokenView {
    name: String,
    broken: Vec<Holder>,
}

#[derive(Clone, Serialize)]
struct Holder {
    mode: Mode,
    token: Option<Token>,
    left_ms: Option<u64>,
    held_ms: Option<u64>,
    since: Option<String>,
    #[serde(flatten)]
    who: Who,
}

#[derive(Serialize)]
struct Waiter {
    position: usize,
    mode: Mode,
    waiting_ms: u64,
    #[serde(flatten)]
    who: Who,
}

impl LockView {
    pub(crate) fn new(name: String, state: LockState) -> Self {
        let holders: Vec<_> = state.holders.iter().map(Holder::new).collect();
        Self {
            name,
            state: if holders.is_empty() { "free" } else { "held" },
            error: None,
            kind: state.kind,
            last_token: state.last,
            holder: holders.first().cloned(),
            holders,
            waiters: (1..)
                .zip(state.waiters)
                .map(|(at, waiter)| Waiter::new(at, &waiter))
                .collect(),
        }
    }

    /// One that could not be read.
    pub(crate) fn unreadable(name: String, error: &fencelock::Error) -> Self {
        let (state, error) = ("error", Some(error.to_string()));
        Self { state, error, ..Self::new(name, LockState::default()) }
    }

    /// Some lines about one lock.
    pub(crate) fn describe(&self) -> String {
        let name = legible(&self.name);
        let mut lines = Vec::new();
        match &self.holder {
            None if self.last_token.get() == 0 && self.waiters.is_empty() => {
                lines.push(format!("{name} is free; the store knows nothing of it"));
            }
            None => {
                lines.push(format!("{name} is free; no token above {} was given", self.last_token));
            }
            Some(_) => {
                lines.push(match self.holders.len() {
                    _ if self.kind == Kind::Mutex => format!("{name} is held"),
                    count => format!("{name} is held as a {}, {count} at once", self.kind),
                });
                lines.extend(self.holders.iter().flat_map(|holder| holder.facts(self.kind)));
            }
        }
        if !self.waiters.is_empty() {
            lines.push(format!("  {:<8} {}", "waiters", self.waiters.len()));
        }
        let width = self.waiters.len().to_string().len();
        for Waiter { position, waiting_ms, who, .. } in &self.waiters {
            let waiting = time(*waiting_ms);
            lines.push(format!("  {:<8} {position:>width$}. {waiting:>7}  {}", "", who.describe()));
        }
        lines.push(String::new());
        lines.join("\n")
    }

    /// The cells of this lock in the table of `ls`, under [`LockView::COLUMNS`].
    pub(crate) fn row(&self) -> [String; LockView::COLUMNS.len()] {
        let holder = self.holder.as_ref();
        let token = holder.and_then(|holder| holder.token);
        [
            legible(&self.name),
            self.state.to_owned(),
            match (holder, &self.error) {
                (Some(holder), _) => holder.who.describe(),
                (None, Some(error)) => legible(error),
                (None, None) => "-".to_owned(),
            },
            holder.and_then(Holder::since).unwrap_or_else(|| "-".to_owned()),
            token.map_or_else(|| "-".to_owned(), |token| token.to_string()),
            holder.map_or_else(|| "-".to_owned(), Holder::lease),
            self.queue(),
        ]
    }

    pub(crate) const COLUMNS: [&str; 7] =
        ["NAME", "STATE", "HOLDER", "SINCE", "TOKEN", "LEASE", "WAITERS"];

    /// How many wait, and the first of them in their order: a lock stays one line of the list, however long its own line is.
    fn queue(&self) -> String {
        let first = self.waiters.iter().take(SHOWN).map(|waiter| waiter.who.describe());
        let mut queue = self.waiters.len().to_string();
        for (waiter, before) in first.zip([": "].into_iter().chain(iter::repeat("; "))) {
            queue.extend([before, &waiter]);
        }
        if self.waiters.len() > SHOWN {
            queue.push_str("; …");
        }
        queue
    }
}

impl BrokenView {
    pub(crate) fn new(name: &str, broken: &[HolderView]) -> Self {
        Self { name: name.to_owned(), broken: broken.iter().map(Holder::new).collect() }
    }

    /// A line for each hold.
    pub(crate) fn describe(&self) -> String {
        let line = |holder: &Holder| {
            let token = holder.token.map_or("none".to_owned(), |token| token.to_string());
            let (name, who) = (legible(&self.name), holder.who.describe());
            format!("{name} is broken: {who} has lost token {token}\n")
        };
        self.broken.iter().map(line).collect()
    }
}

impl Holder {
    fn new(holder: &HolderView) -> Self {
        let since = holder.held_for.and_then(|held| SystemTime::now().checked_sub(held));
        Self {
            mode: holder.mode,
            token: holder.token,
            left_ms: holder.left.map(millis),
            held_ms: holder.held_for.map(millis),
            since: since.map(|since| humantime::format_rfc3339_millis(since).to_string()),
            who: Who::read(&holder.info),
        }
    }

    /// The known facts about it, a line each.
    fn facts(&self, kind: Kind) -> Vec<String> {
        let mut lines = Vec::new();
        let mut fact = |what: &str, text: &str| lines.push(format!("  {what:<8} {text}"));
        fact(if kind == Kind::Mutex { "holder" } else { mode(self.mode) }, &self.who.describe());
        match &self.who.info {
            Value::Null => {}
            Value::String(text) => fact("info", &legible(text)),
            texts => fact("info", &legible(&texts.to_string())),
        }
        if let (Some(since), Some(held)) = (&self.since, self.held_ms) {
            fact("since", &format!("{since} ({} ago)", time(held)));
        }
        fact("token", &self.token.map_or("none".to_owned(), |token| token.to_string()));
        fact("lease", &self.lease());
        lines
    }

    /// When it began, to the second.
    fn since(&self) -> Option<String> {
        let since = humantime::parse_rfc3339(self.since.as_deref()?).ok()?;
        Some(humantime::format_rfc3339_seconds(since).to_string())
    }

    fn lease(&self) -> String {
        self.left_ms.map_or_else(|| "no end".to_owned(), |left| format!("{} left", time(left)))
    }
}

impl Waiter {
    fn new(position: usize, waiter: &WaiterView) -> Self {
        let who = Who::read(&waiter.info);
        let (mode, waiting_ms) = (waiter.mode, millis(waiter.waiting_for));
        Self { position, mode, waiting_ms, who }
    }
}

impl Who {
    fn read(info: &str) -> Self {
        serde_json::from_str(info).unwrap_or_default()
    }

    /// `backup.sh on web-1, pid 4242 (shell)`, as far as it is known.
    fn describe(&self) -> String {
        let mut text = match (&self.app, self.connection) {
            (Some(app), _) => legible(app),
            (None, Some(connection)) => return format!("connection {connection} of the server"),
            (None, None) => return "a client of another library".to_owned(),
        };
        if let Some(host) = &self.host {
            text.extend([" on ", &legible(host)]);
        }
        if let Some(pid) = self.pid {
            text.extend([", pid ", &pid.to_string()]);
        }
        if let Some(connection) = self.connection {
            text.extend([", connection ", &connection.to_string()]);
        }
        if let Some(language) = &self.language {
            text.extend([" (", &legible(language), ")"]);
        }
        text
    }
}

/// How somebody holds, as one word of a line.
fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Read => "reader",
        Mode::Write => "writer",
        Mode::Permit => "permit",
        _ => "holder",
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// A time as precise as people want it: `870ms`, `12.3s`, `4m 5s`, `2d 3h`.
fn time(millis: u64) -> String {
    let seconds = millis / 1000;
    match seconds {
        0 => format!("{millis}ms"),
        1..60 => format!("{}.{}s", seconds, millis % 1000 / 100),
        60..3600 => format!("{}m {}s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{}h {}m", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{}d {}h", seconds / 86_400, seconds % 86_400 / 3600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_as_precise_as_people_want_them() {
        let shown = [870, 12_340, 245_000, 7_260_000, 183_600_000].map(time);
        assert_eq!(shown, ["870ms", "12.3s", "4m 5s", "2h 1m", "2d 3h"]);
    }

    #[test]
    fn u28_a_session_of_a_database_has_a_number() {
        let shown = |info| Who::read(info).describe();
        assert_eq!(shown(r#"{"app":"shop","backend":4711}"#), "shop, connection 4711");
        assert_eq!(shown(r#"{"user":"locks","connection":9}"#), "connection 9 of the server");
    }

    #[test]
    fn a_stranger_cannot_steer_the_terminal() {
        let who = Who::read(r#"{"app":"\u001b[2Jevil","host":"h","pid":7,"language":"c"}"#);
        assert_eq!(who.describe(), "\\u{1b}[2Jevil on h, pid 7 (c)");
        assert_eq!(Who::read("not json").describe(), "a client of another library");
    }
}
