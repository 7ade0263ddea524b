//! Locks that another library keeps in a table of its own.
//!
//! The record of such a lock lies in fencelock's table, with the queue and the tokens. Who holds it, the other library's row says too: it
//! is locked with the record, read into it before a step ([`enter`]) and written after it ([`leave`]), in one transaction. Both
//! libraries believe the row, so each excludes the other. What the other one does is told to nobody: who waits for it asks again.

use std::borrow::Cow;
use std::future::Future;
use std::time::Duration;

use md5::{Digest, Md5};
use uuid::Uuid;

use super::model::Loaded;
use crate::driver::record::{Holder, Record};
use crate::error::{Code, Error};
use crate::port::{Failure, Kind, Layout, LockKey, Step};

/// The rows of other libraries for some locks, all locked.
#[derive(Default)]
pub(in crate::driver) struct ForeignRows(Vec<Entry>);

struct Entry {
    lock: LockKey,
    row: Option<ForeignRow>,
    /// Whether it shows the record's own holder.
    is_ours: bool,
}

impl ForeignRows {
    /// The row of this lock; `None` if there is none.
    pub(in crate::driver) fn add(&mut self, lock: LockKey, row: Option<ForeignRow>) {
        self.0.push(Entry { lock, row, is_ours: false });
    }

    /// Has the records say what the rows say at this moment.
    pub(in crate::driver) fn enter(&mut self, records: &mut [Loaded], now: u64) {
        for Entry { lock, row, is_ours } in &mut self.0 {
            if let Some(record) = record_of(records, lock) {
                *is_ours = enter(record, row.as_ref(), now);
            }
        }
    }

    /// The changes to write into the rows after the steps, where they differ from the records.
    pub(in crate::driver) fn leave(self, records: &mut [Loaded]) -> Vec<(LockKey, ForeignChange)> {
        let change = |Entry { lock, row, is_ours }: Entry| {
            let is_deleted = ForeignTable::of(&lock).is_some_and(|table| table.is_deleted);
            let is_left = is_deleted && row.as_ref().is_some_and(|row| row.by == NOBODY);
            let change = leave(record_of(records, &lock)?, row.as_ref(), is_ours || is_left)?;
            Some((lock, change))
        };
        self.0.into_iter().filter_map(change).collect()
    }

    /// Whether a row shows a hold of fencelock's that the record does not show: one of both was read before a hand-over, and one behind it.
    fn is_torn(&self, records: &mut [Loaded]) -> bool {
        self.0.iter().any(|Entry { lock, row, .. }| {
            let shown = row.as_ref().filter(|row| row.by.starts_with(MARK));
            let record = record_of(records, lock);
            let held = record.and_then(|record| record.holder().map(mark));
            shown.is_some_and(|row| held.as_ref() != Some(&row.by))
        })
    }
}

fn record_of<'a>(records: &'a mut [Loaded], lock: &LockKey) -> Option<&'a mut Record> {
    records.iter_mut().find(|loaded| loaded.lock == *lock)?.record.as_mut().ok()
}

/// How the other library's table is laid out.
pub(in crate::driver) struct ForeignTable {
    pub(in crate::driver) name: &'static str,
    /// Its columns: the key, until when the lock is held, since when, by whom.
    pub(in crate::driver) key: &'static str,
    #[cfg_attr(not(feature = "postgres"), allow(dead_code))] // MySQL compares text with any.
    pub(in crate::driver) key_type: &'static str,
    pub(in crate::driver) until: &'static str,
    pub(in crate::driver) since: &'static str,
    pub(in crate::driver) by: &'static str,
    /// A second column of the key, and its value.
    pub(in crate::driver) region: Option<(&'static str, &'static str)>,
    /// Whether the row goes when the lock is given back.
    pub(in crate::driver) is_deleted: bool,
    /// The prefix of the name in fencelock's own table.
    prefix: &'static str,
    /// The key of a name.
    key_of: fn(&str) -> String,
    /// The longest name, in characters.
    longest_name: usize,
}

/// `ShedLock`: <https://github.com/lukas-krecan/ShedLock>, as its JDBC providers keep locks with the database's time.
const SHEDLOCK: ForeignTable = ForeignTable {
    name: "shedlock",
    key: "name",
    key_type: "varchar",
    until: "lock_until",
    since: "locked_at",
    by: "locked_by",
    region: None,
    is_deleted: false,
    prefix: "fencelock:shedlock:",
    key_of: str::to_owned,
    longest_name: 64,
};

/// Spring Integration's `DefaultLockRepository`, 7.0 or newer.
const SPRING: ForeignTable = ForeignTable {
    name: "INT_LOCK",
    key: "lock_key",
    key_type: "bpchar",
    until: "expired_after",
    since: "created_date",
    by: "client_id",
    region: Some(("region", "DEFAULT")),
    is_deleted: true,
    prefix: "fencelock:spring:",
    key_of: spring_key,
    longest_name: 512,
};

const ALL: [(Layout, &ForeignTable); 2] =
    [(Layout::Shedlock, &SHEDLOCK), (Layout::Spring, &SPRING)];

/// The contents of another library's row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::driver) struct ForeignRow {
    pub(in crate::driver) by: String,
    /// In µs since 1970, as all moments.
    pub(in crate::driver) since: u64,
    pub(in crate::driver) until: u64,
}

/// A change to write into a row.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::driver) enum ForeignChange {
    /// The lock is ours.
    Hold(ForeignRow),
    /// It was ours, and is so no more.
    Free,
}

/// The text in place of a host in a row of ours; the token follows it.
const MARK: &str = "fencelock:";
/// The text in place of a host in a row that was made only to be locked.
pub(in crate::driver) const NOBODY: &str = "fencelock";
/// How long a transaction on another library's row may take: whoever keeps that row locked must not hold up what is renewed beside it.
pub(in crate::driver) const PATIENCE: Duration = Duration::from_secs(1);
/// How often a lock is looked at whose record and row do not agree.
const LOOKS: u32 = 3;
/// The other library may keep times in milliseconds.
const ROUNDED: u64 = 1000;

impl ForeignTable {
    /// The table of this lock, if another library has one.
    pub(in crate::driver) fn of(lock: &LockKey) -> Option<&'static Self> {
        let (_, table) = ALL.into_iter().find(|(layout, _)| *layout == lock.layout())?;
        Some(table)
    }

    /// The key of this lock in it.
    pub(in crate::driver) fn key_of(&self, lock: &LockKey) -> String {
        (self.key_of)(lock.as_str())
    }

    /// Says that the table cannot be used.
    pub(in crate::driver) fn unusable(&self, code: Code) -> Error {
        let Self { name, key, until, since, by, .. } = self;
        let message = format!(
            "where this session looks, the table `{name}` of the other library is not there or not as fencelock knows it (columns `{key}`, `{until}`, `{since}`, `{by}`, times without a zone), or this user may not SELECT, INSERT, UPDATE and DELETE there; make it as that library's manual says, and grant that"
        );
        Error::new(code, message)
    }
}

/// The name of a lock's row in fencelock's own table. No user's lock has a name that begins as those of other libraries do.
pub(in crate::driver) fn row_name(lock: &LockKey) -> Cow<'_, str> {
    match ForeignTable::of(lock) {
        Some(table) => Cow::Owned([table.prefix, lock.as_str()].concat()),
        None => Cow::Borrowed(lock.as_str()),
    }
}

/// Whether another library's row says who has this lock. Such a lock is never in one transaction with others.
pub(in crate::driver) fn is_foreign(lock: &LockKey) -> bool {
    ForeignTable::of(lock).is_some()
}

/// The prefixes of the names of rows for locks whose names begin with this, one for each layout.
pub(in crate::driver) fn row_prefixes(prefix: &str) -> Vec<String> {
    let foreign = ALL.into_iter().map(|(_, table)| [table.prefix, prefix].concat());
    [prefix.to_owned()].into_iter().chain(foreign).collect()
}

/// The lock whose row has this name.
pub(in crate::driver) fn lock_of_row(name: &str) -> LockKey {
    let foreign = ALL.into_iter().find_map(|(layout, table)| {
        Some(LockKey::laid_out(layout, name.strip_prefix(table.prefix)?))
    });
    foreign.unwrap_or_else(|| LockKey::new(name))
}

/// Why a step cannot be carried out on such a lock, if so.
pub(in crate::driver) fn refusal(step: &Step) -> Option<Failure> {
    let table = ForeignTable::of(&step.lock)?;
    if step.kind != Kind::Mutex {
        let message = format!(
            "the table `{}` has mutexes only; for other kinds of locks leave `dialect` out",
            table.name
        );
        return Some(Failure::refused(Error::new(Code::Unsupported, message)));
    }
    (step.lock.as_str().chars().count() > table.longest_name).then(|| {
        let most = table.longest_name;
        let message =
            format!("the table `{}` takes names of at most {most} characters", table.name);
        Failure::refused(Error::invalid("name", message))
    })
}

/// Looks at records and at the rows of other libraries, which are two statements, until they agree. `look` answers records, rows and the
/// moment.
pub(in crate::driver) async fn look<E, F>(look: impl Fn() -> F) -> Result<(Vec<Loaded>, u64), E>
where
    F: Future<Output = Result<(Vec<Loaded>, ForeignRows, u64), E>>,
{
    let mut looks = LOOKS;
    loop {
        let (mut records, mut rows, now) = look().await?;
        looks -= 1;
        if looks == 0 || !rows.is_torn(&mut records) {
            rows.enter(&mut records, now);
            return Ok((records, now));
        }
    }
}

/// Has the record say what the row says at this moment. Answers whether the row shows the record's own holder.
fn enter(record: &mut Record, row: Option<&ForeignRow>, now: u64) -> bool {
    let Some(row) = row.filter(|row| row.until > now) else {
        // Nobody holds it, also if the record knows better: then somebody else has held it since, or will before long.
        record.holders.clear();
        return false;
    };
    if record.holder().is_some_and(|holder| mark(holder) == row.by) {
        return true;
    }
    record.kind = Kind::Mutex;
    // The record takes no end for true that is further away than the longest lease.
    record.longest = record.longest.max(row.until - now);
    let info = serde_json::json!({ "by": row.by }).to_string();
    record.holders = vec![Holder::foreign(row.since, row.until, info.into())];
    false
}

/// The change that the row needs after the steps, if any. `was_ours`: it shows the record's own holder, as [`enter`] answers,
/// or was made only to be locked. The other library's holder leaves the record.
fn leave(record: &mut Record, row: Option<&ForeignRow>, was_ours: bool) -> Option<ForeignChange> {
    record.holders.retain(|holder| !holder.is_foreign());
    let Some(holder) = record.holder() else {
        return was_ours.then_some(ForeignChange::Free);
    };
    let held = ForeignRow { by: mark(holder), since: holder.since, until: holder.ends };
    let same = |row: &ForeignRow| row.by == held.by && row.until.abs_diff(held.until) <= ROUNDED;
    (!row.is_some_and(same)).then_some(ForeignChange::Hold(held))
}

fn mark(holder: &Holder) -> String {
    format!("{MARK}{}", holder.token)
}

/// As Java's `UUID.nameUUIDFromBytes`, unless the name is a UUID.
fn spring_key(name: &str) -> String {
    let is_uuid = name.len() == 36 && Uuid::try_parse(name).is_ok();
    if is_uuid {
        return name.to_lowercase();
    }
    uuid::Builder::from_md5_bytes(Md5::digest(name).into()).into_uuid().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::port::{Mode, OwnerId};

    fn row(by: &str, until: u64) -> ForeignRow {
        ForeignRow { by: by.to_owned(), since: 5, until }
    }

    fn ours(token: u64, ends: u64) -> Record {
        let owner = OwnerId::parse("00112233445566778899aabbccddeeff").unwrap();
        let (mode, since, info) = (Mode::Exclusive, 10, "{}".into());
        let holder = Holder { owner, mode, token, since, ends, permits: 1, info };
        Record { holders: vec![holder], ..Record::default() }
    }

    #[test]
    fn a_foreign_holder_is_there_for_the_steps_and_not_kept() {
        let mut record = ours(7, 5_000_000);
        enter(&mut record, Some(&row("web-3", 9_000_000)), 1_000_000);
        let holder = record.holder().unwrap().clone();
        assert!(holder.is_foreign() && holder.ends == 9_000_000 && record.longest >= 8_000_000);
        assert_eq!(&*holder.info, r#"{"by":"web-3"}"#);
        assert_eq!(leave(&mut record, Some(&row("web-3", 9_000_000)), false), None);
        assert!(record.holders.is_empty());
    }

    #[test]
    fn a_hold_that_the_row_does_not_show_is_over() {
        for there in [None, Some(row("fencelock:7", 900_000)), Some(row("web-3", 900_000))] {
            let mut record = ours(7, 5_000_000);
            enter(&mut record, there.as_ref(), 1_000_000);
            assert!(record.holders.is_empty(), "{there:?}");
        }
    }

    #[test]
    fn the_row_follows_the_record() {
        let mut record = ours(7, 5_000_400);
        let held = ForeignRow { by: "fencelock:7".into(), since: 10, until: 5_000_400 };
        assert_eq!(leave(&mut record, None, false), Some(ForeignChange::Hold(held.clone())));
        // The row keeps milliseconds.
        assert_eq!(leave(&mut record, Some(&row("fencelock:7", 5_000_000)), true), None);
        let renewed = leave(&mut record, Some(&row("fencelock:7", 4_000_000)), true);
        assert_eq!(renewed, Some(ForeignChange::Hold(held)));
        let (mut free, held) = (Record::default(), row("fencelock:7", 5_000_000));
        assert!(enter(&mut record, Some(&held), 1));
        assert_eq!(leave(&mut free, Some(&held), true), Some(ForeignChange::Free));
        // Another fencelock, whose own table is another one, is foreign too.
        assert!(!enter(&mut free, Some(&held), 1));
        assert_eq!(leave(&mut free, Some(&held), false), None);
    }

    #[test]
    fn keys_are_those_that_java_makes() {
        // `UUID.nameUUIDFromBytes("orders:42".getBytes(UTF_8))`, and a UUID as it is.
        assert_eq!(spring_key("orders:42"), "87f88d1e-f091-3d9f-ad58-99fa6b554064");
        let uuid = "6B1A0D0E-6C1F-4F0E-9D3B-0A1B2C3D4E5F";
        assert_eq!(spring_key(uuid), uuid.to_lowercase());
    }

    #[test]
    fn rows_of_other_libraries_have_names_of_their_own() {
        let lock = LockKey::laid_out(Layout::Shedlock, "a");
        assert_eq!(row_name(&lock), "fencelock:shedlock:a");
        assert_eq!(lock_of_row("fencelock:shedlock:a"), lock);
        assert_eq!(lock_of_row("a"), LockKey::new("a"));
        assert_eq!(row_prefixes("x")[1..], ["fencelock:shedlock:x", "fencelock:spring:x"]);
    }
}
