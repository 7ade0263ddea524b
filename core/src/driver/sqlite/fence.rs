//! The resource's side of the fence, for tables in SQLite: the condition inside the write.

use crate::driver::identifier::{Table, check, quoted};
use crate::error::Result;

/// SQLite takes names of any length; this is far from where a statement is too long.
const MOST_BYTES: usize = 1000;

/// SQL that makes a table refuse every update by a token older than the row's newest: a trigger on `column`, a whole
/// number that the update sets to its token. `table` is `table`, or `schema.table` in an attached database. Run it once, on the
/// database the table lies in; to run it again replaces it.
///
/// With it, `UPDATE shelf SET stock = stock - 1, fence = :token WHERE item = :item` fails if a newer holder has written
/// the row since; equal tokens pass. Without a trigger the same condition stands in the statement:
/// `... WHERE item = :item AND fence <= :token`, and no row changed means refused.
///
/// Fails with the code `invalid` for what can be no name.
///
/// ```
/// let sql = fencelock::driver::sqlite::gate_trigger("shelf", "fence")?;
/// assert!(sql.contains(r#"CREATE TRIGGER "fencelock_gate_shelf" BEFORE UPDATE ON "shelf""#));
/// assert!(fencelock::driver::sqlite::gate_trigger("", "fence").is_err());
/// # Ok::<(), fencelock::Error>(())
/// ```
pub fn gate_trigger(table: &str, column: &str) -> Result<String> {
    let table = Table::parse(table, MOST_BYTES)?;
    check("column", column, MOST_BYTES)?;
    let trigger = quoted('"', &format!("fencelock_gate_{}", table.name));
    let (place, name, column) = (table.place('"'), quoted('"', table.name), quoted('"', column));
    Ok(format!(
        "DROP TRIGGER IF EXISTS {place}{trigger};
CREATE TRIGGER {place}{trigger} BEFORE UPDATE ON {name}
WHEN NEW.{column} < OLD.{column} OR (NEW.{column} IS NULL AND OLD.{column} IS NOT NULL)
BEGIN
    SELECT RAISE(ABORT, 'lost: a newer holder has written this row since; acquire the lock again');
END;
"
    ))
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::*;

    fn sell(shelf: &Connection, token: i64) -> rusqlite::Result<usize> {
        shelf.execute("UPDATE shelf SET stock = stock - 1, fence = ?1", [token])
    }

    #[test]
    fn older_tokens_are_refused_by_the_write_itself() {
        let shelf = Connection::open_in_memory().unwrap();
        shelf.execute_batch("CREATE TABLE shelf (stock INTEGER, fence INTEGER NOT NULL DEFAULT 0); INSERT INTO shelf (stock) VALUES (10)").unwrap();
        // The last one counts.
        for column in ["stock", "fence", "fence"] {
            shelf.execute_batch(&gate_trigger("shelf", column).unwrap()).unwrap();
        }
        assert_eq!(sell(&shelf, 7), Ok(1));
        assert_eq!(sell(&shelf, 7), Ok(1), "one holder may write many times");
        assert!(sell(&shelf, 6).unwrap_err().to_string().starts_with("lost:"));
        let row: (i64, i64) = shelf
            .query_row("SELECT stock, fence FROM shelf", [], |row| Ok((row.get(0)?, row.get(1)?)))
            .unwrap();
        assert_eq!(row, (8, 7));
    }

    #[test]
    fn a_row_that_nobody_has_written_under_a_lock_can_be_changed_without_a_token() {
        let shelf = Connection::open_in_memory().unwrap();
        shelf.execute_batch("CREATE TABLE shelf (stock INTEGER, fence INTEGER); INSERT INTO shelf (stock) VALUES (10)").unwrap();
        shelf.execute_batch(&gate_trigger("shelf", "fence").unwrap()).unwrap();
        assert_eq!(shelf.execute("UPDATE shelf SET stock = 9", []), Ok(1));
        assert_eq!(sell(&shelf, 7), Ok(1));
        assert!(shelf.execute("UPDATE shelf SET fence = NULL", []).is_err());
    }

    #[test]
    fn names_are_taken_as_they_are() {
        for name in ["a b", "a\"b", "a;b", "ä'", "--", "]", "select"] {
            let (shelf, quoted) = (Connection::open_in_memory().unwrap(), quoted('"', name));
            let make = format!(
                "CREATE TABLE {quoted} ({quoted} INTEGER); INSERT INTO {quoted} VALUES (5)"
            );
            shelf.execute_batch(&make).unwrap();
            shelf.execute_batch(&gate_trigger(&format!("main.{name}"), name).unwrap()).unwrap();
            let write =
                |token: i64| shelf.execute(&format!("UPDATE {quoted} SET {quoted} = ?1"), [token]);
            assert_eq!(write(5), Ok(1), "{name}");
            assert!(write(4).is_err(), "{name}");
        }
        for bad in ["", "a\0", "a.b.c", &"a".repeat(1001)] {
            assert!(gate_trigger(bad, "fence").is_err(), "{bad}");
        }
        assert!(gate_trigger("shelf", "").is_err());
    }
}
