//! The resource's side of the fence, for tables in MySQL and MariaDB: the condition inside the write.

use md5::{Digest, Md5};

use super::schema::MOST_BYTES;
use crate::driver::identifier::{Table, check, quoted};
use crate::error::Result;

/// The longest name that stands in the trigger's.
const MOST_IN_TRIGGER: usize = 48;

/// Two statements that make a table refuse every update by a token older than the row's newest: a trigger on `column`, a `bigint` that
/// the update sets to its token. `table` is `table` or `database.table`. Whoever owns the table runs them once, one after the other; they can
/// be run again. In between, and if the second one fails, the table has no trigger.
///
/// With it, `UPDATE shelf SET stock = stock - 1, fence = ? WHERE item = ?` fails (SQLSTATE 45000, a message that begins with `lost:`) if a
/// newer holder has written the row since. Equal tokens pass. An update that leaves the column alone is not checked, and neither is a
/// `DELETE`: those need `... WHERE item = ? AND fence <= ?`.
///
/// Fails with the code `invalid` for what can be no name.
///
/// ```
/// let [_, create] = fencelock::driver::mysql::gate_trigger("shop.shelf", "fence")?;
/// assert!(create.contains("BEFORE UPDATE ON `shop`.`shelf`"));
/// assert!(fencelock::driver::mysql::gate_trigger("", "fence").is_err());
/// # Ok::<(), fencelock::Error>(())
/// ```
pub fn gate_trigger(table: &str, column: &str) -> Result<[String; 2]> {
    let table = Table::parse(table, MOST_BYTES)?;
    check("column", column, MOST_BYTES)?;
    let (place, name, column) = (table.place('`'), quoted('`', table.name), quoted('`', column));
    let trigger = match table.name {
        short if short.len() <= MOST_IN_TRIGGER => short.to_owned(),
        long => format!("{:032x}", u128::from_be_bytes(Md5::digest(long).into())),
    };
    let trigger = quoted('`', &format!("fencelock_gate_{trigger}"));
    Ok([
        format!("DROP TRIGGER IF EXISTS {place}{trigger}"),
        format!(
            "CREATE TRIGGER {place}{trigger} BEFORE UPDATE ON {place}{name} FOR EACH ROW
IF NEW.{column} < OLD.{column} OR (NEW.{column} IS NULL AND OLD.{column} IS NOT NULL) THEN
    SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'lost: a newer holder has written this row since; acquire the lock again';
END IF"
        ),
    ])
}
