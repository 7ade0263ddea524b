//! Code for a user's own transactions: the condition inside a write, which is the resource's side of the fence, and a lock that lives with
//! a transaction.

use super::schema::MOST_BYTES;
use crate::driver::identifier::{Table, check, quoted};
use crate::error::{Error, Result};
use crate::fence::Token;
use crate::options::check_name;

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

/// Takes the lock `name` within a transaction of yours, and answers its fencing token. The lock is held until the transaction ends. It
/// excludes, and waits for, other transactions and the holders of `postgres+advisory://`; it does not know of locks in the table
/// (`postgres://`).
///
/// `ask` runs the statement that it is given in the transaction, with the name as its only parameter, and answers the number that comes
/// of it. So this works with every PostgreSQL library. Ask first in a transaction, which should be `READ COMMITTED`: at other levels
/// the transaction goes on to see what was there before it had the lock. The wait has no limit but the session's `lock_timeout`.
/// The statement calls `fencelock_lock` on the session's `search_path`. With another `table` or `schema`, have `ask` run
/// `SELECT locks.app_lock($1)` and the like instead of what it is given.
///
/// Fails with the code `invalid` for what can be no name, and as `ask` does.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// use fencelock::driver::postgres::lock_in;
/// # struct Row(i64);
/// # impl Row { fn get(&self, _: i32) -> i64 { self.0 } }
/// # struct Transaction;
/// # impl Transaction {
/// #     async fn query_one(&self, _: &str, _: &[&&str]) -> Result<Row, fencelock::Error> { Ok(Row(64)) }
/// # }
/// # let transaction = Transaction;
/// // With a transaction of tokio-postgres:
/// let ask = async |sql: &str, name: &str| Ok(transaction.query_one(sql, &[&name]).await?.get(0));
/// let token = lock_in("orders:42", ask).await?;
/// assert_eq!(token.get(), 64);
/// # Ok::<(), fencelock::Error>(()) }).unwrap();
/// ```
pub async fn lock_in<E: From<Error>>(
    name: &str,
    ask: impl AsyncFnOnce(&str, &str) -> Result<i64, E>,
) -> Result<Token, E> {
    check_name(name)?;
    let token = ask("SELECT fencelock_lock($1)", name).await?;
    let token = u64::try_from(token).map_err(|_| Error::internal("a token is negative"))?;
    Ok(Token::new(token))
}
