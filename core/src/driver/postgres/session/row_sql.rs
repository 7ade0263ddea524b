//! The SQL of locks that are rows. A wish and a heartbeat tell which backend carried them out.

use crate::driver::sql::sweep::{KEPT, PART};
use crate::driver::sql::tables::Tables;

/// Takes the row of a lock, and draws a token only then. One that somebody has is skipped. Tells the backend, the token, and whether
/// there is such a row.
pub(super) fn take(tokens: &str, table: &str, is_it: &str) -> String {
    format!(
        "WITH l AS MATERIALIZED (SELECT FROM {table} AS t WHERE {is_it} FOR UPDATE SKIP LOCKED)
         SELECT pg_backend_pid(), (SELECT nextval('{tokens}') FROM l), EXISTS (SELECT FROM {table} AS t WHERE {is_it})"
    )
}

/// The same, but one that somebody has is waited for, for a second at most, and taken then.
pub(super) fn wait(Tables { word, tokens, .. }: &Tables, table: &str, is_it: &str) -> String {
    let locks = format!("SELECT FROM {table} AS t WHERE {is_it} FOR UPDATE").replace('\'', "''");
    format!(
        "WITH l AS MATERIALIZED (SELECT FROM {table} AS t WHERE {is_it} FOR UPDATE SKIP LOCKED)
         SELECT pg_backend_pid(), CASE WHEN {word}_wait('{locks}', $1) > 0 THEN (SELECT nextval('{tokens}') FROM l) END,
             EXISTS (SELECT FROM {table} AS t WHERE {is_it})"
    )
}

/// The query for the holder of a row lock and its waiters, in order of arrival as far as the server shows it. A holder writes its
/// transaction there (`xmax`). A waiter has, or waits for, a lock of the server's on the place of the row.
pub(super) fn look(table: &str, is_it: &str) -> String {
    format!(
        "WITH r AS MATERIALIZED (SELECT t.tableoid AS lies, t.xmax AS by, (t.ctid::text::point)[0]::integer AS page,
                 (t.ctid::text::point)[1]::smallint AS tuple FROM {table} AS t WHERE {is_it}),
             l AS MATERIALIZED (SELECT * FROM pg_locks)
         SELECT w.granted, 'ExclusiveLock', a.application_name,
             (extract(epoch FROM clock_timestamp() - w.since) * 1000)::bigint, w.pid
         FROM (SELECT true AS granted, NULL::timestamptz AS since, l.pid
                 FROM l JOIN r ON l.locktype = 'transactionid' AND l.granted AND l.transactionid = r.by
             UNION ALL SELECT false, (SELECT min(x.waitstart) FROM l AS x WHERE x.pid = l.pid), l.pid
                 FROM l JOIN r ON l.locktype = 'tuple' AND l.relation = r.lies AND l.page = r.page AND l.tuple = r.tuple
                 WHERE l.database = (SELECT oid FROM pg_database WHERE datname = current_database())) AS w
             LEFT JOIN pg_stat_activity AS a ON a.pid = w.pid
         ORDER BY w.granted DESC, w.since, w.pid"
    )
}

/// The names that begin with $1 of fencelock's own rows that are locked.
pub(super) fn names(rows: &str) -> String {
    format!(
        "SELECT t.name FROM {rows} AS t
         JOIN pg_locks AS l ON l.locktype = 'transactionid' AND l.granted AND l.transactionid = t.xmax
         WHERE t.name >= $1 AND starts_with(t.name, $1) ORDER BY t.name"
    )
}

pub(super) fn insert(rows: &str) -> String {
    format!("INSERT INTO {rows} (name) VALUES ($1) ON CONFLICT (name) DO NOTHING")
}

/// Deletes rows behind $1 that were made long ago, but for those somebody is at. They tell nothing: who needs one makes it anew. Answers
/// the last name it has looked at.
pub(super) fn sweep(rows: &str) -> String {
    let kept = KEPT.as_secs();
    format!(
        "WITH part AS (SELECT max(name) AS last FROM (SELECT name FROM {rows} WHERE name > $1 ORDER BY name LIMIT {PART}) AS p),
             gone AS (DELETE FROM {rows} WHERE name IN (SELECT f.name FROM {rows} AS f, part
                 WHERE f.name > $1 AND f.name <= part.last AND f.made < clock_timestamp() - interval '{kept} seconds' FOR UPDATE OF f SKIP LOCKED))
         SELECT last FROM part"
    )
}
