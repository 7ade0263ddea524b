//! A lock that lives with a transaction of the user's own.

use crate::error::Error;
use crate::fence::Token;
use crate::options::check_name;

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
