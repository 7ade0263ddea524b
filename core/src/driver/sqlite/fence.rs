//! The resource's side of the fence, for tables in SQLite: the condition inside the write.

use crate::error::{Error, Result};

/// SQL that makes a table refuse every update by a token older than the row's newest: a trigger on `column`, a whole
/// number that the update sets to its token. Run it once, on the database the table lies in.
///
/// With it, `UPDATE shelf SET stock = stock - 1, fence = :token WHERE item = :item` fails if a newer holder has written
/// the row since; equal tokens pass. Without a trigger the same condition stands in the statement:
/// `... WHERE item = :item AND fence <= :token`, and no row changed means refused.
///
/// ```
/// let sql = fencelock::driver::sqlite::gate_trigger("shelf", "fence")?;
/// assert!(sql.starts_with(r#"CREATE TRIGGER IF NOT EXISTS "fencelock_gate_shelf""#));
/// assert!(fencelock::driver::sqlite::gate_trigger("shelf; DROP TABLE shelf", "fence").is_err());
/// # Ok::<(), fencelock::Error>(())
/// ```
pub fn gate_trigger(table: &str, column: &str) -> Result<String> {
    check("table", table)?;
    check("column", column)?;
    Ok(format!(
        r#"CREATE TRIGGER IF NOT EXISTS "fencelock_gate_{table}" BEFORE UPDATE ON "{table}"
WHEN NEW."{column}" < OLD."{column}" OR NEW."{column}" IS NULL
BEGIN
    SELECT RAISE(ABORT, 'lost: a newer holder has written this row since; acquire the lock again');
END"#
    ))
}

/// Identifiers are checked, never pasted as they come.
fn check(what: &'static str, name: &str) -> Result<()> {
    let letter = |c: char| c.is_ascii_alphabetic() || c == '_';
    let fits = name.len() <= 63
        && name.starts_with(letter)
        && name.chars().all(|c| letter(c) || c.is_ascii_digit());
    if fits {
        return Ok(());
    }
    Err(Error::invalid(
        what,
        format!(
            "a {what}'s name must be at most 63 letters, digits and underscores, and not begin with a digit"
        ),
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
        shelf.execute_batch(&gate_trigger("shelf", "fence").unwrap()).unwrap();
        shelf.execute_batch(&gate_trigger("shelf", "fence").unwrap()).unwrap();
        assert_eq!(sell(&shelf, 7), Ok(1));
        assert_eq!(sell(&shelf, 7), Ok(1), "one holder may write many times");
        assert!(sell(&shelf, 6).unwrap_err().to_string().starts_with("lost:"));
        let row: (i64, i64) = shelf
            .query_row("SELECT stock, fence FROM shelf", [], |row| Ok((row.get(0)?, row.get(1)?)))
            .unwrap();
        assert_eq!(row, (8, 7));
    }

    #[test]
    fn names_that_are_none_are_refused() {
        for bad in ["", "1a", "a b", "a\"b", "a;b", "ä", &"a".repeat(64)] {
            assert!(gate_trigger(bad, "fence").is_err(), "{bad}");
            assert!(gate_trigger("shelf", bad).is_err(), "{bad}");
        }
    }
}
