//! The one table of options: name, type, default and meaning. Structs, URLs, maps, bindings and docs all come from it.

mod dialect;
mod read;
mod stores;
mod value;
mod write;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

pub use self::dialect::Dialect;
use self::dialect::dialect;
pub(crate) use self::read::check_ttl;
use self::read::{
    boolean, boolean_or_auto, bounded, check_count, check_info, check_pause, check_prefix, info,
    integer, optional, pause, positive, text, zero,
};
pub(crate) use self::stores::check_table;
pub use self::stores::{Durability, SslMode};
use self::stores::{durability, sslmode, table};
pub use self::value::OptionValue;
use self::write::Written;
use crate::error::{Error, Result};

/// The kind of value that an option takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OptionKind {
    /// A time: `30s`, `500ms`, `1h 30m`; a number in a map is milliseconds. Bindings make milliseconds of what their language has.
    Duration,
    /// A time, or `forever` / `none`.
    OptionalDuration,
    /// `true` or `false`.
    Boolean,
    /// A whole number.
    Integer,
    /// Text.
    Text,
    /// Text, or texts by name; where all is text, as JSON.
    Info,
}

/// The nouns that take an option. Each option can also be given to a client (in its URL), as the default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OptionScope {
    /// All that are held: a lock, a run of a job, an office.
    Hold,
    /// A lock, or an election: what its waiters say.
    Wait,
    /// A lock.
    Lock,
    /// A job.
    Job,
    /// An election.
    Election,
    /// A version.
    Version,
    /// A client only.
    Client,
}

impl OptionScope {
    /// Whether this takes options for that.
    pub fn takes(self, other: Self) -> bool {
        match self {
            Self::Client => true,
            Self::Hold | Self::Version => self == other,
            Self::Job | Self::Wait => self == other || other == Self::Hold,
            Self::Lock | Self::Election => self == other || Self::Wait.takes(other),
        }
    }

    fn noun(self) -> &'static str {
        match self {
            Self::Hold | Self::Lock => "a lock",
            Self::Wait => "a lock or an election",
            Self::Job => "a job",
            Self::Election => "an election",
            Self::Version => "a version",
            Self::Client => "the client",
        }
    }
}

/// One row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct OptionRow {
    /// The name, the same in every language but for its case.
    pub name: &'static str,
    /// The kind of its value.
    pub kind: OptionKind,
    /// The default, as it would be written in a URL.
    pub default: &'static str,
    /// The only values it takes, if it takes one word out of a few; otherwise empty.
    pub words: &'static [&'static str],
    /// Where it may be given.
    pub scope: OptionScope,
    /// The description of the option.
    pub doc: &'static str,
}

macro_rules! options {
    ($($(#[doc = $doc:literal])+ $name:ident: $type:ty = $default:literal, $kind:ident, $scope:ident, $read:ident;)+) => {
        /// Every option with its value. See [`TABLE`] for names, defaults and meaning.
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Options {
            $($(#[doc = $doc])+ pub $name: $type,)+
        }

        /// The table.
        pub const TABLE: &[OptionRow] = &[$(OptionRow {
            name: stringify!($name),
            kind: OptionKind::$kind,
            default: $default,
            words: <$type as Written>::WORDS,
            scope: OptionScope::$scope,
            doc: concat!($($doc),+).trim_ascii(),
        },)+];

        impl Default for Options {
            fn default() -> Self {
                let text = |default: &str| Value::String(default.to_owned());
                Self { $($name: $read(stringify!($name), &text($default)).expect("defaults are valid"),)+ }
            }
        }

        impl Options {
            /// Sets one option by name. An unknown name is refused with the nearest known one.
            pub fn set(&mut self, name: &str, value: &OptionValue) -> Result<()> {
                match name {
                    $(stringify!($name) => self.$name = $read(stringify!($name), &value.0)?,)+
                    _ => return Err(unknown(name)),
                }
                Ok(())
            }

            /// Every option by name, as [`Options::set`] takes it.
            pub fn to_map(&self) -> BTreeMap<&'static str, OptionValue> {
                [$((stringify!($name), OptionValue(self.$name.written())),)+].into_iter().collect()
            }
        }
    };
}

options! {
    /// Length of the lease. If the holder dies, the lock is free again after at most this time.
    ttl: Duration = "30s", Duration, Hold, bounded;
    /// Whether the lease is renewed, at a third of its length, for as long as the guard lives. `false`: a fixed lease. (Runs
    /// of jobs are always renewed.)
    renew: bool = "true", Boolean, Lock, boolean;
    /// How long `acquire` waits for the lock before it fails with `timeout`. `0s` asks once and does not queue.
    wait: Option<Duration> = "forever", OptionalDuration, Wait, optional;
    /// The longest time a lock may be held, however often it is renewed.
    max_hold: Option<Duration> = "none", OptionalDuration, Lock, positive;
    /// Whether waiters get the lock in their order of arrival. `auto`: where the store can do that, which is everywhere except on
    /// Redlock. `true`: refused where it cannot. `false`: the first client that asks gets a free lock, which gives more throughput; a
    /// waiter is passed over at most twice, and for at most a second.
    fair: Option<bool> = "auto", Boolean, Lock, boolean_or_auto;
    /// How the lock is stored. `auto` is the store's own layout. On Redis, `plain:<prefix>` is the string key that
    /// redis-py, node-redlock and redsync use, and `redisson` is the layout of Redisson's locks. On ZooKeeper, `kazoo` is that
    /// of kazoo's. On PostgreSQL and MySQL, `shedlock` and `spring` are the rows of `ShedLock` and of Spring's `JdbcLockRegistry`.
    dialect: Dialect = "auto", Text, Wait, dialect;
    /// Information for people who inspect the lock: a short text, or texts by name. As text the latter are JSON, `{"order":"42"}`.
    info: String = "", Info, Hold, info;
    /// How many permits of a semaphore are taken at once, all or none. Not on etcd and ZooKeeper.
    permits: u32 = "1", Integer, Lock, integer;
    /// How often a lock may pass from waiter to waiter inside this client (for at most 10 ms) before other clients are
    /// served. `0`: never.
    local: u32 = "16", Integer, Lock, integer;
    /// How often the update of a version tries again when another writer was faster, before it fails with `conflict`.
    retries: u32 = "16", Integer, Version, integer;
    /// The longest pause before the first of these tries. It doubles with each try, up to 64 times; each pause is a
    /// random part of it.
    backoff: Duration = "5ms", Duration, Version, pause;
    /// How long the store keeps a version's value after its last change.
    keep: Option<Duration> = "forever", OptionalDuration, Version, positive;
    /// On PostgreSQL and MySQL: keeps a version in a row of your own table, written as the table with three of its columns in
    /// brackets: `account(id, version, balance)`. The first is the key, whose value is the version's name. The second is a whole number
    /// that rises with each change. The third is the value. In a URL whose scheme ends in `+row`: the table with its key only,
    /// `account(id)`, whose rows are then the locks.
    on_table: String = "", Text, Version, text;
    /// The shortest time from the start of a job's run to the start of the next one, even if the run ends sooner.
    at_least_for: Option<Duration> = "none", OptionalDuration, Job, positive;
    /// The longest time a job's run may take. After that it is lost.
    at_most_for: Option<Duration> = "none", OptionalDuration, Job, positive;
    /// Whether a job's run that died before its end may run again, for the same scheduled instant.
    retry_dead: bool = "false", Boolean, Job, boolean;
    /// How often an observer of an election asks who leads.
    observe: Duration = "1s", Duration, Election, bounded;
    /// Text that stands before every name on the store, so that programs share it without meeting: with `shop:` the lock `orders` lies
    /// there as `shop:orders`. Not before the keys of your own table (`on_table`).
    prefix: String = "", Text, Client, text;
    /// How long to wait for an answer of the store. After that the outcome counts as unknown.
    timeout: Duration = "5s", Duration, Client, bounded;
    /// On a quorum: the longest lease, and how long a node that may have lost its data does not vote. All clients must
    /// use the same value.
    max_ttl: Duration = "60s", Duration, Client, bounded;
    /// How long to try to reach the store. After that it counts as unavailable.
    connect_timeout: Duration = "5s", Duration, Client, bounded;
    /// On Redis: how many replicas must confirm a grant or a renewal before it counts. A failover to one of them then
    /// loses no lock.
    acks: u32 = "0", Integer, Client, integer;
    /// On a database: whether to make fencelock's tables if they are not there.
    create: bool = "false", Boolean, Client, boolean;
    /// On PostgreSQL: the schema in which fencelock's tables and functions lie. Empty: the first one of the user's search path.
    schema: String = "", Text, Client, text;
    /// On PostgreSQL and MySQL: the name of the table of locks. The names of fencelock's other tables and functions begin with it.
    /// Letters a to z, digits and `_`. Tables of another name have other locks.
    table: String = "fencelock", Text, Client, table;
    /// On PostgreSQL: whether a commit waits for the server's disk (`durable`). `relaxed` is many times quicker; a crash of the server may
    /// then undo the changes of the last second, tokens still rise.
    durability: Durability = "durable", Text, Client, durability;
    /// On a database: `verify-full` is TLS with a server that proves to be the one, `disable` is no TLS. `auto`: `verify-full`, but nothing
    /// is encrypted on the way to this machine itself (`localhost`, a socket file). `require` means `verify-full` here, `prefer` and `allow`
    /// mean `auto`. `verify-ca`, with TLS but on MySQL: the certificate must come from a trusted authority, but may name another host.
    sslmode: SslMode = "auto", Text, Client, sslmode;
    /// With TLS: the name that the server's certificate must have, where the server is reached by another name. Empty: the host of the URL.
    tls_name: String = "", Text, Client, text;
    /// On Redis, PostgreSQL and MySQL: a file with the password, read anew for each connection, so that it may change. A line's end behind it
    /// does not count. Empty: the password of the URL.
    password_file: String = "", Text, Client, text;
    /// With TLS (`rediss://`): a file of PEM certificates. Only these authorities are trusted for the server's
    /// certificate. Empty: those the system trusts.
    cacert: String = "", Text, Client, text;
    /// With TLS: a file with this client's own certificate, for servers that ask for one.
    cert: String = "", Text, Client, text;
    /// With TLS: a file with the private key of `cert`.
    key: String = "", Text, Client, text;
}

impl Options {
    /// Sets many options by name, of what has this scope; those that mean nothing for it are refused.
    pub fn set_all<'a>(
        &mut self,
        values: impl IntoIterator<Item = (&'a str, OptionValue)>,
        of: OptionScope,
    ) -> Result<()> {
        for (name, value) in values {
            let row = TABLE.iter().find(|row| row.name == name).ok_or_else(|| unknown(name))?;
            if !of.takes(row.scope) {
                let (here, there) = (of.noun(), row.scope.noun());
                // redis-py's and others' `timeout` of a lock is its lease, or the wait for it.
                let instead = match name {
                    "timeout" => "the length of the lease is `ttl`, the longest wait `wait`",
                    _ if row.scope == OptionScope::Client => {
                        "leave it out here, or give it in the client's URL"
                    }
                    _ => "leave it out here",
                };
                let message = format!("`{name}` belongs to {there}, not to {here}; {instead}");
                return Err(Error::invalid(row.name, message));
            }
            self.set(name, &value)?;
        }
        Ok(())
    }

    /// The first option that was set and means something with TLS only, but `sslmode`.
    #[cfg(any(feature = "tokio", feature = "host"))]
    pub(crate) fn of_tls(&self) -> Option<&'static str> {
        let Self { cacert, cert, key, tls_name, .. } = self;
        let all = [("cacert", cacert), ("cert", cert), ("key", key), ("tls_name", tls_name)];
        all.into_iter().find(|(_, text)| !text.is_empty()).map(|(name, _)| name)
    }

    /// Checks the values a struct was filled with, as the other ways in do one by one.
    pub fn check(&self) -> Result<()> {
        check_ttl("ttl", self.ttl)?;
        check_ttl("timeout", self.timeout)?;
        check_ttl("connect_timeout", self.connect_timeout)?;
        check_ttl("observe", self.observe)?;
        check_ttl("max_ttl", self.max_ttl)?;
        check_pause("backoff", self.backoff)?;
        let Self { max_hold, keep, at_least_for, at_most_for, .. } = *self;
        let times = [
            ("max_hold", max_hold),
            ("keep", keep),
            ("at_least_for", at_least_for),
            ("at_most_for", at_most_for),
        ];
        let none = |(_, time): &(_, Option<Duration>)| time.is_some_and(|time| time.is_zero());
        if let Some((name, _)) = times.into_iter().find(none) {
            return Err(zero(name));
        }
        if !self.prefix.is_empty()
            && let (_, Some(error)) = full_name(&self.prefix, "x")
        {
            let message = format!("with this `prefix` no name can be: {}", error.message());
            return Err(Error::invalid("prefix", message));
        }
        check_table("table", &self.table)?;
        check_count("local", self.local)?;
        check_count("permits", self.permits)?;
        check_info("info", &self.info)?;
        if let Dialect::Plain { prefix } = &self.dialect {
            check_prefix("dialect", prefix)?;
        }
        Ok(())
    }
}

/// A name as it lies on the store, behind this prefix, and why there can be none such.
pub(crate) fn full_name(prefix: &str, name: &str) -> (Arc<str>, Option<Error>) {
    let full = format!("{prefix}{name}");
    let whole = || check_name(&full).map_err(|error| error.with("prefix", prefix));
    let mistake = check_name(name).and_then(|()| whole()).err();
    (if mistake.is_none() { full.into() } else { name.into() }, mistake)
}

/// Checks a lock's name: 1 to 512 bytes of UTF-8 without control characters, not beginning with `fencelock:`, as keys do that are
/// the stores' own.
pub fn check_name(name: &str) -> Result<()> {
    let complaint = if name.is_empty() {
        "a lock's name must not be empty"
    } else if name.len() > 512 {
        "a lock's name must not be longer than 512 bytes; hash the long part of it"
    } else if name.chars().any(char::is_control) {
        "a lock's name must not contain control characters"
    } else {
        return check_key(name);
    };
    Err(Error::invalid("name", complaint).with("length", name.len().to_string()))
}

/// Checks the key that a name becomes in a dialect: it must not be one of our own.
pub(crate) fn check_key(key: &str) -> Result<()> {
    if !key.starts_with("fencelock:") {
        return Ok(());
    }
    let complaint = "a lock's name must not begin with `fencelock:`, nor a dialect's prefix make it so: fencelock keeps its own data under \
                     such keys";
    Err(Error::invalid("name", complaint))
}

/// Options of other lock libraries, as their lower-case letters, with ours that means the same or nearly so.
const ELSEWHERE: &[(&str, &str)] = &[
    ("acquiretimeout", "wait"),
    ("blocking", "wait"),
    ("blockingtimeout", "wait"),
    ("driftfactor", "ttl"),
    ("duration", "ttl"),
    ("expire", "ttl"),
    ("expiry", "ttl"),
    ("leasetime", "ttl"),
    ("lifetime", "ttl"),
    ("locktimeout", "ttl"),
    ("lockatleastfor", "at_least_for"),
    ("lockatmostfor", "at_most_for"),
    ("retrycount", "wait"),
    ("retrydelay", "wait"),
    ("retryjitter", "wait"),
    ("sessiontimeout", "ttl"),
    ("tries", "wait"),
    ("waittime", "wait"),
];

/// Options of other libraries that are parts of the URL here.
const IN_URL: &[&str] =
    &["database", "db", "host", "password", "port", "ssl", "tls", "user", "username"];

fn unknown(name: &str) -> Error {
    let meant = name.to_lowercase().replace(['-', ' '], "_");
    let letters = meant.replace('_', "");
    let elsewhere = ELSEWHERE.iter().find(|(word, _)| *word == letters).map(|(_, ours)| *ours);
    let apart = |row: &&OptionRow| strsim::osa_distance(&meant, row.name);
    // A name of which more than a third is different means something else.
    let is_near = |row: &&OptionRow| {
        apart(row) <= row.name.len().max(meant.len()) / 3 || meant.starts_with(row.name)
    };
    let nearest = TABLE.iter().min_by_key(apart).filter(is_near).map(|row| row.name);
    // What is no name may be the end of a password in a URL.
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    let shown = name.len() <= 40 && name.chars().all(is_name);
    let complaint = match (elsewhere, nearest) {
        (Some(ours), _) => format!("there is no option `{name}`; here it is `{ours}`"),
        _ if IN_URL.contains(&&*letters) => {
            format!(
                "there is no option `{name}`; it is part of the URL: `rediss://user:password@host:6379/0`, without TLS `redis://`"
            )
        }
        (None, Some(nearest)) if shown => {
            format!("there is no option `{name}`; the nearest is `{nearest}`")
        }
        (None, None) if shown => format!("there is no option `{name}`; leave it out"),
        _ => "there is no such option: a name has letters, digits and `_`".to_owned(),
    };
    let error = Error::invalid("option", complaint);
    match elsewhere.or(nearest) {
        Some(nearest) => error.with("nearest", nearest),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Code;

    #[test]
    fn every_row_can_be_set_to_its_default() {
        for row in TABLE {
            let mut options = Options::default();
            options.set(row.name, &row.default.into()).unwrap();
            assert_eq!(options, Options::default(), "{}", row.name);
        }
    }

    #[test]
    fn a_row_with_words_takes_these_and_no_other() {
        let worded: Vec<_> = TABLE.iter().filter(|row| !row.words.is_empty()).collect();
        assert_eq!(
            worded.iter().map(|row| row.name).collect::<Vec<_>>(),
            ["durability", "sslmode"]
        );
        for row in worded {
            let mut options = Options::default();
            for word in row.words {
                options.set(row.name, &(*word).into()).unwrap();
                let written = options.to_map()[row.name].0.clone();
                assert!(row.words.iter().any(|word| written == *word), "{written}");
            }
            assert!(row.words.contains(&row.default), "{}", row.name);
            let error = options.set(row.name, &"other".into()).unwrap_err();
            for word in row.words {
                assert!(error.message().contains(&format!("`{word}`")), "{error}");
            }
        }
    }

    #[test]
    fn each_noun_takes_only_its_own() {
        let taken = |of: OptionScope| {
            let rows = TABLE.iter().filter(|row| of.takes(row.scope));
            rows.map(|row| row.name).collect::<Vec<_>>()
        };
        assert_eq!(taken(OptionScope::Election), ["ttl", "wait", "dialect", "info", "observe"]);
        assert_eq!(
            taken(OptionScope::Lock),
            ["ttl", "renew", "wait", "max_hold", "fair", "dialect", "info", "permits", "local"]
        );
        assert_eq!(
            taken(OptionScope::Job),
            ["ttl", "info", "at_least_for", "at_most_for", "retry_dead"]
        );
        assert_eq!(taken(OptionScope::Version), ["retries", "backoff", "keep", "on_table"]);
        assert_eq!(taken(OptionScope::Client).len(), TABLE.len());
    }

    #[test]
    fn what_was_written_can_be_read() {
        let plain = Dialect::Plain { prefix: "lock:".into() };
        let (wait, info) = (Some(Duration::from_millis(1500)), r#"{"a":"b"}"#.into());
        let options = Options { wait, info, dialect: plain, renew: false, ..Options::default() };
        let map = options.to_map();
        assert_eq!(
            (map.len(), &map["wait"], &map["keep"]),
            (TABLE.len(), &1500.0.into(), &None::<f64>.into())
        );
        let mut again = Options::default();
        again.set_all(map, OptionScope::Client).unwrap();
        assert_eq!(again, options);
    }

    #[test]
    fn words_of_other_libraries_name_ours_and_far_ones_nothing() {
        let nearest = |name| Options::default().set(name, &1.into()).unwrap_err();
        for (name, ours) in [("expire", "ttl"), ("blocking_timeout", "wait"), ("waitTime", "wait")]
        {
            let error = nearest(name);
            assert_eq!(error.fields()["nearest"], ours);
            assert!(error.message().contains(&format!("here it is `{ours}`")), "{error}");
        }
        let error = nearest("colour");
        assert!(error.fields().get("nearest").is_none(), "{error}");
        let error = nearest("password");
        assert!(error.message().contains("`rediss://user:password@host:6379/0`"), "{error}");
    }

    #[test]
    fn what_a_struct_was_filled_with_is_checked() {
        let options = Options::default;
        let plain = |prefix: String| Dialect::Plain { prefix };
        for (bad, named) in [
            (Options { local: u32::MAX, ..options() }, "local"),
            (Options { info: "a\nb".into(), ..options() }, "info"),
            (Options { permits: 70_000, ..options() }, "permits"),
            (Options { dialect: plain("a\r".into()), ..options() }, "dialect"),
            (Options { dialect: plain("a".repeat(257)), ..options() }, "dialect"),
        ] {
            let error = bad.check().unwrap_err();
            assert_eq!((error.code(), error.fields()["argument"].as_str()), (Code::Invalid, named));
        }
        options().check().unwrap();
    }
}
