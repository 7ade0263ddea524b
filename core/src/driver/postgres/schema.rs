//! The tables: fencelock's own, with their functions, as they are made or printed, and how another shape is seen; a user's own, as the catalogue
//! describes them, with the statements for their versions; the trigger that refuses older tokens.

use tokio_postgres::types::Type;

use super::connection::{Connection, MOST_BYTES};
use super::fault::{OWN_TABLE, State, no_tables, other_shape, state};
use crate::driver::identifier::{self, Table, quoted};
use crate::driver::own_table::{KeyedTable, OwnTable};
use crate::driver::sql::dialect::{Connection as _, Tables};
use crate::driver::sql::dialect::{Kind, Layout};
use crate::driver::sql::fault::Fault;
use crate::driver::sql::statement::{Row, Statement, Value, column};
use crate::error::Result;

/// The server's clock in µs, in SQL.
pub(super) const CLOCK: &str = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint";

/// Locked while a client makes the tables: "fencelock", cut to eight bytes.
const MAKING: i64 = i64::from_be_bytes(*b"fenceloc");

/// The migration that makes fencelock's tables and functions where they are not, as SQL for PostgreSQL 12 and newer. `table` is what the
/// option says: the name of the locks' table, with which all other names begin; `fencelock` unless the URL says otherwise.
///
/// Fails with `invalid` for what can be no such name.
///
/// ```
/// let schema = fencelock::driver::postgres::schema("fencelock")?;
/// assert!(schema.contains("CREATE TABLE IF NOT EXISTS \"fencelock\""));
/// # Ok::<(), fencelock::Error>(())
/// ```
pub fn schema(table: &str) -> Result<String> {
    Ok(schema_of(&Tables::new(table, '"')?))
}

/// SQL that makes a table refuse every update by a token older than the row's newest: a trigger on `column`, a `bigint`
/// that the update sets to its token. `table` is `table` or `schema.table`, written as the database shows it. Whoever owns the
/// table runs it once; it can be run again.
///
/// With it, `UPDATE shelf SET stock = stock - 1, fence = $1 WHERE item = $2` fails (SQLSTATE 23514, a message that begins with
/// `lost:`) if a newer holder has written the row since. Equal tokens pass. An update that leaves the column alone is not
/// checked, and neither is a `DELETE`: those need `... WHERE item = $2 AND fence <= $1`.
///
/// Fails with the code `invalid` for what can be no name.
///
/// ```
/// let sql = fencelock::driver::postgres::gate_trigger("shop.shelf", "fence")?;
/// assert!(sql.contains(r#"BEFORE UPDATE ON "shop"."shelf""#));
/// assert!(fencelock::driver::postgres::gate_trigger("", "fence").is_err());
/// # Ok::<(), fencelock::Error>(())
/// ```
pub fn gate_trigger(table: &str, column: &str) -> Result<String> {
    let table = Table::parse(table, MOST_BYTES)?;
    identifier::check("column", column, MOST_BYTES)?;
    // Whatever `standard_conforming_strings` is.
    let word = format!("E'{}'", column.replace('\\', "\\\\").replace('\'', "''"));
    let (place, name, column) = (table.place('"'), quoted('"', table.name), quoted('"', column));
    // One for each table: two tables may have two owners. The server cuts a name that is too long.
    let function = quoted('"', &format!("fencelock_refuse_{}", table.name));
    Ok(format!(
        "-- Refuses older fencing tokens. To run it again replaces it, in one transaction without a gap.
CREATE OR REPLACE FUNCTION {place}{function}() RETURNS trigger LANGUAGE plpgsql AS $fencelock$
BEGIN
    RAISE EXCEPTION 'lost: a newer holder has written this row since; acquire the lock again'
        USING ERRCODE = 'check_violation', SCHEMA = TG_TABLE_SCHEMA, TABLE = TG_TABLE_NAME, COLUMN = TG_ARGV[0],
            DETAIL = format('The token of the write is %s, that of the row %s.',
                coalesce(to_jsonb(NEW) ->> TG_ARGV[0], 'missing'), to_jsonb(OLD) ->> TG_ARGV[0]);
END $fencelock$;
DROP TRIGGER IF EXISTS fencelock_gate ON {place}{name};
CREATE TRIGGER fencelock_gate BEFORE UPDATE ON {place}{name} FOR EACH ROW
    WHEN (NEW.{column} < OLD.{column} OR (NEW.{column} IS NULL AND OLD.{column} IS NOT NULL)) EXECUTE FUNCTION {place}{function}({word});
"
    ))
}

fn schema_of(Tables { word, table, cells, rows, tokens }: &Tables) -> String {
    format!(
        r#"-- Locks of fencelock: one row each. A row stays when its lock is free, so that tokens rise.
CREATE TABLE IF NOT EXISTS {table} (
    name text COLLATE "C" PRIMARY KEY,
    version bigint NOT NULL DEFAULT 0,        -- counts the changes of the row
    kind text NOT NULL DEFAULT 'mutex',       -- mutex, read-write, semaphore
    holder text,                              -- who holds it, as JSON; of several, the first
    token bigint,                             -- the fencing token of the newest grant to a present holder
    expires_at timestamptz,                   -- when the last lease ends, unless it is renewed
    waiting integer NOT NULL DEFAULT 0,       -- how many wait
    owner text,                               -- proves the hold of a mutex
    granted_at bigint,                        -- microseconds since 1970, as all below
    last_token bigint NOT NULL DEFAULT 0,
    counter_until bigint NOT NULL DEFAULT 0,  -- from then on `last_token` may be forgotten
    longest_lease bigint NOT NULL DEFAULT 0,
    rest text                                 -- waiters, other holders and the like, as JSON
) WITH (fillfactor = 50);
-- Versions and scheduled jobs.
CREATE TABLE IF NOT EXISTS {cells} (
    name text COLLATE "C" PRIMARY KEY,
    value text,
    since bigint NOT NULL DEFAULT 0,
    trail text,                               -- its newest changes, as JSON
    forget_after bigint
) WITH (fillfactor = 70);
CREATE INDEX IF NOT EXISTS {cells}_end ON {cells} (forget_after) WHERE forget_after IS NOT NULL;
-- Locks by row: a row is a lock while somebody has it locked. It tells nothing else, so an old one may go, and all go with a crash.
CREATE UNLOGGED TABLE IF NOT EXISTS {rows} (
    name text COLLATE "C" PRIMARY KEY,
    made timestamptz NOT NULL DEFAULT clock_timestamp()
);
-- Fencing tokens of locks that live with a session or a transaction. What is drawn stays drawn, also after a rollback.
CREATE SEQUENCE IF NOT EXISTS {tokens} INCREMENT 32 MINVALUE 32 MAXVALUE 9007199254740960;
-- The number by which PostgreSQL knows such a lock.
CREATE OR REPLACE FUNCTION {word}_key(name text) RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE AS $fencelock$
    SELECT ('x' || left(encode(sha256(convert_to('{word}:' || name, 'UTF8')), 'hex'), 16))::bit(64)::bigint
$fencelock$;
-- Sets the tokens a minute ahead of the clock if they are behind it.
CREATE OR REPLACE FUNCTION {word}_advance() RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT AS $fencelock$
DECLARE
    now bigint := extract(epoch FROM clock_timestamp()) * 1000000;
BEGIN
    IF EXISTS (SELECT FROM {tokens} WHERE last_value < now) THEN
        PERFORM pg_advisory_xact_lock({word}_key(''));
        PERFORM setval('{tokens}', now + 60000000) FROM {tokens} WHERE last_value < now;
    END IF;
END $fencelock$;
-- Sets the tokens a minute ahead after a crash, which may have lost those of transactions that were open. It has also emptied
-- `{rows}`.
CREATE OR REPLACE FUNCTION {word}_leap() RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT AS $fencelock$
BEGIN
    IF NOT EXISTS (SELECT FROM {rows} WHERE name = '') THEN
        PERFORM pg_advisory_xact_lock({word}_key(''));
        INSERT INTO {rows} VALUES ('', 'infinity') ON CONFLICT (name) DO NOTHING;
        IF FOUND THEN
            PERFORM setval('{tokens}', last_value + 60000000) FROM {tokens};
        END IF;
    END IF;
END $fencelock$;
-- Carries out a statement that waits for a lock, for a second at most, and answers how many rows it found; nothing if that was too short.
-- A longer statement would keep VACUUM from removing rows, and CREATE INDEX CONCURRENTLY from its end, in the whole database. What a
-- subtransaction has locked shows nobody who has it, so it is rolled back; a lock of the session stays.
CREATE OR REPLACE FUNCTION {word}_wait(statement text, value text) RETURNS bigint LANGUAGE plpgsql SET lock_timeout = '1s' AS $fencelock$
DECLARE
    found bigint;
BEGIN
    EXECUTE statement USING value;
    GET DIAGNOSTICS found = ROW_COUNT;
    RAISE SQLSTATE 'FL001';
EXCEPTION
    WHEN lock_not_available THEN RETURN NULL;
    WHEN SQLSTATE 'FL001' THEN RETURN found;
END $fencelock$;
DO $fencelock$ BEGIN PERFORM {word}_leap(); PERFORM {word}_advance(); END $fencelock$;
"#
    )
}

/// Makes the tables and functions. Clients do it one after the other; somebody who runs the printed migration may be at it too, and
/// whoever comes second finds that they are there.
pub(super) async fn create(connection: &mut Connection, tables: &Tables) -> Result<(), Fault> {
    let schema = format!("SELECT pg_advisory_xact_lock({MAKING}); {}", schema_of(tables));
    let [begin, commit, _] = connection.transaction();
    let asked = [begin, vec![Statement::bare(schema)], commit].concat();
    match connection.ask(&asked, false).await {
        Err(fault) if matches!(state(&fault.failure.error), "23505" | "42P07") => {
            connection.ask(&asked, false).await.map(drop)
        }
        done => done.map(drop),
    }
}

/// The columns that a row must have, with their types, in the order of the statement that writes it.
pub(super) const WRITTEN: &[(&str, Type)] = &[
    ("name", Type::TEXT),
    ("kind", Type::TEXT),
    ("holder", Type::TEXT),
    ("token", Type::INT8),
    ("expires_at", Type::TIMESTAMPTZ),
    ("waiting", Type::INT4),
    ("owner", Type::TEXT),
    ("granted_at", Type::INT8),
    ("last_token", Type::INT8),
    ("counter_until", Type::INT8),
    ("longest_lease", Type::INT8),
    ("rest", Type::TEXT),
];

/// The same of a cell's.
pub(super) const CELL: &[(&str, Type)] = &[
    ("name", Type::TEXT),
    ("value", Type::TEXT),
    ("since", Type::INT8),
    ("trail", Type::TEXT),
    ("forget_after", Type::INT8),
];

/// The types of the columns $2 of the table $1.
const TYPES: &str = "SELECT a.atttypid::bigint FROM unnest($2::text[]) WITH ORDINALITY AS n(name, at)
    LEFT JOIN pg_attribute AS a ON a.attrelid = to_regclass($1) AND a.attname = n.name AND a.attnum > 0 AND NOT a.attisdropped
    ORDER BY n.at";

/// Makes sure that the tables are there, as the statements need them, where those are not prepared; makes them if that is wanted.
pub(super) async fn find(
    connection: &mut Connection,
    tables: &Tables,
    create: bool,
) -> Result<(), Fault> {
    if create && has(connection, &tables.table, WRITTEN).await?.is_none() {
        self::create(connection, tables).await?;
    }
    let own = [(&tables.table, &tables.word, WRITTEN), (&tables.cells, &tables.cells, CELL)];
    for (table, shown, columns) in own {
        let found = has(connection, table, columns).await?;
        let found = found.ok_or_else(|| Fault::refused(no_tables()))?;
        let differs = |(found, (_, wanted)): &(&Option<i64>, &(&str, Type))| {
            **found != Some(i64::from(wanted.oid()))
        };
        if let Some((_, (column, wanted))) = found.iter().zip(columns).find(differs) {
            return Err(Fault::refused(other_shape(&format!("{shown}.{column}"), wanted.name())));
        }
    }
    Ok(())
}

/// The types of these columns, each if it is there; `None` if none is.
async fn has(
    connection: &mut Connection,
    table: &str,
    columns: &[(&str, Type)],
) -> Result<Option<Vec<Option<i64>>>, Fault> {
    let names = columns.iter().map(|(name, _)| (*name).to_owned()).collect();
    let asked = [Statement::once(TYPES, [table.into(), Value::Names(names)])];
    let rows = connection.ask(&asked, false).await?.rows();
    let found = rows.iter().map(|row| column::<Option<i64>>(row, 0, "type"));
    let found = found.collect::<Result<Vec<_>>>().map_err(Fault::refused)?;
    Ok(found.iter().any(Option::is_some).then_some(found))
}

/// Makes sure that the columns are of the types that the statements write.
pub(super) fn check(tables: &Tables, store: &[Type], cell_store: &[Type]) -> Result<()> {
    let each = [(&tables.word, store, WRITTEN), (&tables.cells, cell_store, CELL)];
    for (table, found, columns) in each {
        let differs = |(found, (_, wanted)): &(&Type, &(&str, Type))| found != &wanted;
        if let Some((_, (column, wanted))) = found.iter().zip(columns).find(differs) {
            return Err(other_shape(&format!("{table}.{column}"), wanted.name()));
        }
    }
    Ok(())
}

/// For each of the columns $2: whether the table $1 is there, the column's type, and whether it is a key by itself.
const SHAPE: &str = "WITH t AS (SELECT to_regclass($1) AS oid), c AS (
        SELECT a.attname, a.attnum, format_type(a.atttypid, -1) AS type FROM pg_attribute AS a, t
        WHERE a.attrelid = t.oid AND a.attnum > 0 AND NOT a.attisdropped)
    SELECT t.oid IS NOT NULL, c.type,
        EXISTS (SELECT FROM pg_index AS i WHERE i.indrelid = t.oid AND i.indisunique AND i.indisvalid AND i.indpred IS NULL
            AND i.indnkeyatts = 1 AND i.indkey[0] = c.attnum)
        AND NOT EXISTS (SELECT FROM pg_inherits AS h, pg_class AS p WHERE h.inhparent = t.oid AND p.oid = t.oid AND p.relkind = 'r')
    FROM t, unnest($2::text[]) WITH ORDINALITY AS n(name, at) LEFT JOIN c ON c.attname = n.name ORDER BY n.at";

/// The types of these columns, of which the first is the key. Refused if one is missing, or the key is of no use as such.
pub(super) async fn types(
    connection: &mut Connection,
    table: &KeyedTable<'_>,
    columns: &[&str],
    known: &'static [State],
) -> Result<Vec<String>, Fault> {
    let names = columns.iter().map(|&name| name.to_owned()).collect();
    let asked = Statement::once(SHAPE, [table.name('"').into(), Value::Names(names)]);
    let rows = connection.ask_of(&[asked], false, known).await?.rows();
    let shown = |(row, name): (&Row, &&str)| {
        if !column::<bool>(row, 0, "table")? {
            return Err(table.no_table());
        }
        let kind = column::<Option<&str>>(row, 1, "type")?;
        Ok((kind.ok_or_else(|| table.no_column(name))?.to_owned(), column(row, 2, "unique")?))
    };
    let shown: Result<Vec<(String, bool)>> = rows.iter().zip(columns).map(shown).collect();
    let shown = shown.map_err(Fault::refused)?;
    let (key, is_unique) = shown.first().ok_or_else(Fault::vanished)?;
    if ["name", "\"char\""].contains(&key.as_str()) {
        return Err(Fault::refused(table.does_not_name(key)));
    }
    if !is_unique {
        return Err(Fault::refused(table.not_unique()));
    }
    Ok(shown.into_iter().map(|(kind, _)| kind).collect())
}

/// The statements for the versions in a table.
pub(super) async fn layout(
    connection: &mut Connection,
    own: &OwnTable<'_>,
) -> Result<Layout, Fault> {
    let columns = [own.keyed.key, own.version, own.value];
    let types = types(connection, &own.keyed, &columns, OWN_TABLE).await?;
    let [key_type, version_type, value_type] = &types[..] else { return Err(Fault::vanished()) };
    if !["smallint", "integer", "bigint"].contains(&version_type.as_str()) {
        return Err(Fault::refused(own.does_not_count(version_type)));
    }
    let (table, clock) = (own.keyed.name('"'), CLOCK);
    let [key, version, value] = own.columns('"');
    let is_it = format!("t.{key} = {}", of_type("$1::text", key_type));
    Ok(Layout {
        look: vec![format!(
            "SELECT t.{key} IS NOT NULL, t.{version}::bigint, to_jsonb(t.{value})::text, c.now
             FROM (SELECT {clock} AS now) AS c LEFT JOIN {table} AS t ON {is_it}"
        )],
        lock: format!(
            "SELECT t.{version}::bigint, {clock} FROM {table} AS t WHERE {is_it} FOR UPDATE"
        ),
        replace: format!(
            "UPDATE {table} AS t SET {version} = t.{version} + 1, {value} = {}
             WHERE {is_it} AND t.{version} = $3 RETURNING t.{version}::bigint, {clock}",
            of_type("$2::jsonb", value_type)
        ),
        kind: Kind::Json,
    })
}

/// A parameter as a value of this type, by the input of the type: a cast would cut what is too long.
pub(super) fn of_type(parameter: &str, kind: &str) -> String {
    format!(
        "(SELECT x.it FROM jsonb_to_record(jsonb_build_object('it', {parameter})) AS x(it {kind}))"
    )
}
