//! These servers wake nobody. A client that waits reads what is told at its rows, at first often, then less often: that takes no connection
//! of its own, and a server that is full, another user or a proxy changes nothing.

use std::collections::BTreeMap;
use std::sync::Weak;
use std::time::Duration;

use super::dialect::Mysql;
use super::told::{self, Told, concerns};
use crate::driver::record::Record;
use crate::driver::sql::foreign::lock_of_row;
use crate::driver::sql::link::Link;
use crate::driver::sql::records::{BESIDE, Replaced, names, of_lock};
use crate::driver::sql::statement::{Row, Statement, Value, column};
use crate::port::backoff::Backoff;
use crate::port::limits::TICKET_LIFE;
use crate::port::{Instant, LockKey, Notice};

/// The longest pause between two looks of the one who is next, and of any.
const LONGEST_OF_NEXT: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(1);
/// A waiter is seen when its ticket is refreshed. One that was not seen for so long has gone, or has the lock.
const GONE: Duration = TICKET_LIFE;
/// Of so many names it is remembered what was read; of more, only where one of ours waits.
const MOST: usize = 4096;

/// The state that a client has read from the rows it waits at.
#[derive(Default)]
pub(super) struct Waits {
    rows: BTreeMap<LockKey, Waited>,
    /// Whether a task looks at what is told, and after which pause next.
    polls: bool,
    pause: Backoff,
}

struct Waited {
    /// The newest version that was read.
    seen: u64,
    /// How many wait there before the first of ours; `None` if none of ours waits.
    ahead: Option<usize>,
    /// When that was seen.
    at: Instant,
}

impl Waits {
    pub(super) fn clear(&mut self) {
        self.rows.clear();
    }

    /// Where any of ours waits, and how many are before the one that is nearest to its turn.
    fn waits_at(&self, now: Instant) -> (Vec<LockKey>, usize) {
        let waits = self.rows.iter();
        let waits = waits.filter(|(_, row)| row.ahead.is_some() && now.since(row.at) < GONE);
        let nearest = waits.clone().filter_map(|(_, row)| row.ahead).min();
        (waits.map(|(lock, _)| lock.clone()).collect(), nearest.unwrap_or(usize::MAX))
    }

    /// So many are before the first of ours that waits there. Answers whether that is new.
    fn moves(&mut self, lock: &LockKey, ahead: usize) -> bool {
        let waits = self.rows.get_mut(lock).and_then(|row| row.ahead.as_mut());
        waits.is_some_and(|known| std::mem::replace(known, ahead) != ahead)
    }

    /// So many wait before the first of ours at a row that was read in this version, or none of ours waits. Answers whether ours has begun to
    /// wait.
    fn expect(&mut self, lock: &LockKey, version: u64, ahead: Option<usize>, at: Instant) -> bool {
        let new = Waited { seen: version, ahead, at };
        if let Some(row) = self.rows.get_mut(lock) {
            let former = std::mem::replace(row, new).ahead;
            return ahead.is_some() && former.is_none();
        }
        if ahead.is_none() {
            return false;
        }
        if self.rows.len() >= MOST {
            self.rows.retain(|_, row| row.ahead.is_some());
        }
        self.rows.insert(lock.clone(), new);
        true
    }

    /// The notices in the row for this client that it has not read yet.
    fn read(&mut self, lock: &LockKey, version: u64, told: &[Told], channel: &str) -> Vec<Notice> {
        let Some(row) = self.rows.get_mut(lock) else { return Vec::new() };
        let new = told.iter().flat_map(|told| told.after(row.seen, channel)).collect();
        row.seen = version.max(row.seen);
        new
    }
}

/// The version of a row, and what is told in it.
fn beside(row: Option<&Row>) -> (u64, Vec<Told>) {
    let Some(row) = row else { return Default::default() };
    let told = column(row, BESIDE + 1, "told").and_then(told::read);
    (column(row, BESIDE, "version").unwrap_or_default(), told.unwrap_or_default())
}

/// How many wait in this record before the first of this client's; `None` if none of them waits.
fn ahead_of_ours(record: &Record, channel: &str) -> Option<usize> {
    record.tickets.iter().position(|ticket| *ticket.channel == *channel)
}

impl Link<Mysql> {
    /// Reads what is told in rows of these locks.
    pub(super) fn heard(&self, locks: &[LockKey], rows: &[Row]) {
        for lock in locks {
            let (version, told) = beside(of_lock(rows.iter(), lock));
            self.hear(lock, version, &told);
        }
    }

    /// The value that is written beside each record that is different.
    pub(super) fn told<T>(&self, rows: &[Row], replaced: &Replaced<T>) -> Vec<Option<Value>> {
        let mut others: Vec<_> = replaced.others.iter().collect();
        let written = replaced.different().into_iter().map(|(lock, record)| {
            let (read, before) = beside(of_lock(rows.iter(), lock));
            let of_others = std::mem::take(&mut others).into_iter();
            let (here, elsewhere) = of_others.partition(|(_, notice)| concerns(notice, record));
            others = elsewhere;
            let here: Vec<_> = here;
            let new =
                |(to, notice): &(_, _)| Told::new(read + 1, std::sync::Arc::clone(to), notice);
            let told = told::written(&before, here.into_iter().map(new), record, &self.channel);
            // Before it is written: what is told right after that must not be missed.
            self.expect(lock, read, ahead_of_ours(record, &self.channel));
            Some(told.into())
        });
        written.collect()
    }

    /// A row that was read in this version is about to be written, and so many wait there before the first of ours, or none of ours waits.
    fn expect(&self, lock: &LockKey, version: u64, ahead: Option<usize>) {
        let mut waits = self.dialect.waits.lock();
        let is_new = waits.expect(lock, version, ahead, self.runtime.now());
        if is_new {
            waits.pause = Backoff::new();
        }
        if ahead.is_none() || waits.polls || self.is_closed() {
            return;
        }
        waits.polls = true;
        drop(waits);
        self.runtime.spawn(Box::pin(poll(self.weak.clone())));
    }

    /// Tells this client what is new of what a row says.
    fn hear(&self, lock: &LockKey, version: u64, told: &[Told]) {
        let notices = self.dialect.waits.lock().read(lock, version, told, &self.channel);
        self.tell_self(notices);
    }

    /// Reads what is told where one of ours waits, and where the first ticket of this channel lies, as a path in JSON. A row that cannot be
    /// read now is read at the next look.
    async fn read_told(&self) {
        let (locks, _) = self.dialect.waits.lock().waits_at(self.runtime.now());
        if locks.is_empty() {
            return;
        }
        let (table, channel) = (&self.tables.table, &self.channel);
        let text = format!(
            "SELECT name, version, told, JSON_SEARCH(rest, 'one', '{channel}', NULL, '$.waiters[*].channel')
             FROM {table} FORCE INDEX (PRIMARY) WHERE name IN ($1)"
        );
        let asked = Statement::once(text, [names(&locks)]);
        let Ok(answer) = self.ask(vec![asked], false).await else { return };
        for row in answer.all() {
            let Ok(name) = column::<&str>(row, 0, "name") else { continue };
            let Ok(version) = column(row, 1, "version") else { continue };
            let lock = lock_of_row(name);
            let path = column::<Option<&str>>(row, 3, "place").unwrap_or_default();
            if let Some(ahead) = path.and_then(place) {
                let mut waits = self.dialect.waits.lock();
                // A queue that moves may move on soon.
                if waits.moves(&lock, ahead) {
                    waits.pause = Backoff::new();
                }
            }
            let told = column(row, 2, "told").and_then(told::read).unwrap_or_default();
            self.hear(&lock, version, &told);
        }
    }

    /// How long until the next look; `None` if none of ours waits, and nobody polls from then on.
    fn next_pause(&self) -> Option<Duration> {
        let mut waits = self.dialect.waits.lock();
        let (locks, ahead) = waits.waits_at(self.runtime.now());
        if locks.is_empty() || self.is_closed() {
            waits.polls = false;
            return None;
        }
        // With each one before it, its turn is further away.
        let turns = u32::try_from(ahead).unwrap_or(u32::MAX).saturating_add(1);
        let pause = waits.pause.next_up_to(LONGEST_OF_NEXT).saturating_mul(turns);
        Some(Backoff::spread(pause.min(LONGEST), &self.runtime))
    }
}

/// The number in a path such as `"$.waiters[3].channel"`.
fn place(path: &str) -> Option<usize> {
    path.split_once('[')?.1.split_once(']')?.0.parse().ok()
}

/// Looks for as long as one of ours waits.
async fn poll(weak: Weak<Link<Mysql>>) {
    while let Some(link) = weak.upgrade() {
        let Some(pause) = link.next_pause() else { return };
        let runtime = link.runtime.clone();
        // A client that nobody uses any more ends while this sleeps.
        drop(link);
        runtime.sleep_until(runtime.now() + pause).await;
        let Some(link) = weak.upgrade() else { return };
        link.read_told().await;
    }
}
