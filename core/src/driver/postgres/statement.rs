//! The SQL. Numbers of the rules come from `port::limits`, as they do in every store.

use futures_util::future::try_join_all;
use tokio_postgres::{Client, Error, Statement};

use crate::driver::sql::sweep::{KEPT, PART};
use crate::driver::sql::tables::Tables;
use crate::fence::Token;
use crate::port::limits::{COUNTER_TTLS, TOKEN_LEAD};

/// The columns that a record is read from.
const COLUMNS: &str = "name, kind, owner, holder, token, granted_at, expires_at, last_token, counter_until, longest_lease, rest";

/// The server's clock, in µs.
pub(super) const CLOCK: &str = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint";

/// Statements that need no transaction.
pub(super) struct Single {
    pub(super) make: Statement,
    pub(super) take: Statement,
    pub(super) free: Statement,
    pub(super) renew: Statement,
    pub(super) look: Statement,
    pub(super) names: Statement,
    pub(super) sweep: Statement,
    pub(super) cell_look: Statement,
}

/// Statements of transactions.
pub(super) struct Several {
    pub(super) lock: Statement,
    pub(super) insert: Statement,
    pub(super) store: Statement,
    pub(super) tell: Statement,
    pub(super) cell_insert: Statement,
    pub(super) cell_lock: Statement,
    pub(super) cell_store: Statement,
    pub(super) cell_sweep: Statement,
}

impl Single {
    pub(super) async fn prepare(client: &Client, tables: &Tables) -> Result<Self, Error> {
        let texts = [make, take, free, renew, look, names, sweep, cell_look];
        let texts = texts.map(|text| text(tables));
        let [make, take, free, renew, look, names, sweep, cell_look] =
            prepare(client, &texts).await?;
        Ok(Self { make, take, free, renew, look, names, sweep, cell_look })
    }
}

impl Several {
    pub(super) async fn prepare(client: &Client, tables: &Tables) -> Result<Self, Error> {
        let texts = [lock, insert, store, tell, cell_insert, cell_lock, cell_store, cell_sweep];
        let texts = texts.map(|text| text(tables));
        let [lock, insert, store, tell, cell_insert, cell_lock, cell_store, cell_sweep] =
            prepare(client, &texts).await?;
        Ok(Self { lock, insert, store, tell, cell_insert, cell_lock, cell_store, cell_sweep })
    }
}

/// All in one flight.
pub(super) async fn prepare<const N: usize>(
    client: &Client,
    texts: &[String; N],
) -> Result<[Statement; N], Error> {
    let prepared = try_join_all(texts.iter().map(|text| client.prepare(text))).await?;
    Ok(prepared.try_into().unwrap_or_else(|_| unreachable!("one statement for each text")))
}

/// A moment before the last token, from which on the plain cases leave what is to be refused to the long way.
const LAST_YEAR: &str = "clock_timestamp() < timestamptz '2255-01-01Z'";

/// Takes a mutex that has no row yet. $1 name, $2 owner id, $3 who asks, $4 lease, $5 how many tokens behind the first.
fn make(Tables { table, .. }: &Tables) -> String {
    format!(
        "INSERT INTO {table} (name, version, owner, holder, token, granted_at, expires_at, last_token, counter_until, longest_lease)
         SELECT $1, 1, $2, $3, m.now, m.now, m.at + $4::bigint * interval '1 microsecond', m.now + $5::bigint,
             m.now + $5::bigint + {COUNTER_TTLS} * $4::bigint, $4::bigint
         FROM (SELECT c.at, (extract(epoch FROM c.at) * 1000000)::bigint AS now FROM (SELECT clock_timestamp() AS at) AS c) AS m
         WHERE {LAST_YEAR} ON CONFLICT (name) DO NOTHING RETURNING token, last_token"
    )
}

/// Takes a mutex that nobody holds, waits for or has left a mark at; otherwise changes nothing. $1 to $5 as above, $6 the highest token that
/// is known of it. As `Record::take` does it, but that the clock is read several times, and the counter is remembered a little longer.
fn take(Tables { table, .. }: &Tables) -> String {
    let (most, lead) = (Token::MAX.get(), TOKEN_LEAD.as_micros());
    let first = format!("greatest(last_token + 1, {CLOCK})");
    format!(
        "UPDATE {table} SET version = version + 1, kind = 'mutex', owner = $2, holder = $3, token = {first}, granted_at = {CLOCK},
             expires_at = clock_timestamp() + $4::bigint * interval '1 microsecond',
             last_token = greatest({first}, least({first} + $5::bigint, {CLOCK} + {lead})), longest_lease = $4::bigint,
             counter_until = greatest(counter_until, {first} + {lead} + {COUNTER_TTLS} * $4::bigint)
         WHERE name = $1 AND rest IS NULL AND (owner IS NULL OR expires_at <= clock_timestamp())
             AND last_token >= $6 AND last_token < {most} - 2 * {lead} AND {LAST_YEAR}
         RETURNING token, last_token"
    )
}

/// Ends the hold of a mutex nobody waits for; otherwise changes nothing. $1 name, $2 owner id.
fn free(Tables { table, .. }: &Tables) -> String {
    format!(
        "UPDATE {table} SET version = version + 1, owner = NULL, holder = NULL, token = NULL, granted_at = NULL, expires_at = NULL
         WHERE name = $1 AND owner = $2 AND rest IS NULL AND expires_at > clock_timestamp()"
    )
}

/// Renews holds of mutexes. $1 names, $2 owner ids, $3 leases. What waits there does not matter: the lock is held. As `Record::renew`.
fn renew(Tables { table, .. }: &Tables) -> String {
    let lease = |micros: &str| format!("{micros} * interval '1 microsecond'");
    let (longest, wanted) = (lease("f.longest_lease"), lease("r.ttl"));
    let ends = format!("greatest(least(f.expires_at, c.at + {longest}), c.at + {wanted})");
    let micros = |moment: &str| format!("(extract(epoch FROM {moment}) * 1000000)::bigint");
    let (until, now) = (micros(&ends), micros("c.at"));
    format!(
        "UPDATE {table} AS f SET version = f.version + 1, expires_at = {ends}, longest_lease = greatest(f.longest_lease, r.ttl),
             counter_until = greatest(f.counter_until, {until} + {COUNTER_TTLS} * r.ttl)
         FROM unnest($1::text[], $2::text[], $3::bigint[]) AS r(name, owner, ttl), (SELECT clock_timestamp() AS at) AS c
         WHERE f.name = r.name AND f.owner = r.owner AND f.expires_at > c.at
         RETURNING f.name, f.token, {} - {now}",
        micros("f.expires_at"),
    )
}

/// Records as they are. $1 names. One row at least, for the clock.
fn look(Tables { table, .. }: &Tables) -> String {
    let columns = COLUMNS.replace(", ", ", f.");
    format!(
        "SELECT f.{columns}, c.now FROM (SELECT {CLOCK} AS now) AS c LEFT JOIN {table} AS f ON f.name = ANY($1::text[])"
    )
}

/// The names that begin with $1 and are remembered.
fn names(Tables { table, .. }: &Tables) -> String {
    format!(
        "SELECT name FROM {table} WHERE name >= $1 AND starts_with(name, $1)
             AND (owner IS NOT NULL OR rest IS NOT NULL OR counter_until > {CLOCK}) ORDER BY name"
    )
}

/// Deletes the rows behind $1 whose names were not used for long.
fn sweep(Tables { table, .. }: &Tables) -> String {
    let kept = KEPT.as_micros();
    let unused =
        format!("f.owner IS NULL AND f.rest IS NULL AND f.counter_until < {CLOCK} - {kept}");
    sweep_of(table, &unused)
}

/// Deletes the rows behind $1 of this table that are unused, but for those somebody is at. Answers the last name it has looked at.
pub(super) fn sweep_of(table: &str, unused: &str) -> String {
    format!(
        "WITH part AS (SELECT max(name) AS last FROM (SELECT name FROM {table} WHERE name > $1 ORDER BY name LIMIT {PART}) AS p),
             gone AS (DELETE FROM {table} WHERE name IN (SELECT f.name FROM {table} AS f, part
                 WHERE f.name > $1 AND f.name <= part.last AND {unused} FOR UPDATE OF f SKIP LOCKED))
         SELECT last FROM part"
    )
}

/// Locks rows, always in the same order, and reads them; the clock is read outside, and so after it.
fn lock(Tables { table, .. }: &Tables) -> String {
    format!(
        "SELECT l.*, {CLOCK} FROM (SELECT {COLUMNS} FROM {table} WHERE name = ANY($1::text[]) ORDER BY name FOR UPDATE) AS l"
    )
}

fn insert(Tables { table, .. }: &Tables) -> String {
    format!("INSERT INTO {table} (name) SELECT unnest($1::text[]) ON CONFLICT (name) DO NOTHING")
}

fn store(Tables { table, .. }: &Tables) -> String {
    format!(
        "UPDATE {table} SET version = version + 1, kind = $2, holder = $3, token = $4, expires_at = $5, waiting = $6,
             owner = $7, granted_at = $8, last_token = $9, counter_until = $10, longest_lease = $11, rest = $12 WHERE name = $1"
    )
}

fn tell(_: &Tables) -> String {
    "SELECT pg_notify(channel, notice) FROM unnest($1::text[], $2::text[]) AS told(channel, notice)"
        .to_owned()
}

fn cell_look(Tables { cells, .. }: &Tables) -> String {
    format!(
        "SELECT f.value, f.since, f.trail, f.forget_after, c.now FROM (SELECT {CLOCK} AS now) AS c
         LEFT JOIN {cells} AS f ON f.name = $1"
    )
}

fn cell_insert(Tables { cells, .. }: &Tables) -> String {
    format!("INSERT INTO {cells} (name) VALUES ($1) ON CONFLICT (name) DO NOTHING")
}

fn cell_lock(Tables { cells, .. }: &Tables) -> String {
    format!(
        "SELECT l.*, {CLOCK} FROM (SELECT value, since, trail, forget_after FROM {cells} WHERE name = $1 FOR UPDATE) AS l"
    )
}

fn cell_store(Tables { cells, .. }: &Tables) -> String {
    format!(
        "UPDATE {cells} SET value = $2, since = $3, trail = $4, forget_after = $5 WHERE name = $1"
    )
}

/// With every change a few that have ended go, but for those somebody is at.
fn cell_sweep(Tables { cells, .. }: &Tables) -> String {
    format!(
        "DELETE FROM {cells} WHERE name IN (SELECT name FROM {cells}
             WHERE forget_after <= $1 ORDER BY forget_after LIMIT 4 FOR UPDATE SKIP LOCKED)"
    )
}
