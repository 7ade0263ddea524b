//! The resource's side of the fence, for tables in PostgreSQL: the condition inside the write.

use super::schema::MOST_BYTES;
use crate::driver::identifier::{Table, check, quoted};
use crate::error::Result;

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
    check("column", column, MOST_BYTES)?;
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
