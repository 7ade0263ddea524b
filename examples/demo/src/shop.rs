//! The shop: a SQLite database with a stock, a counter and the sales.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension as _, Result, Transaction, TransactionBehavior};

use crate::PATIENCE;

/// A fence is the newest token that the shop has seen beside its number.
const TABLES: &str = "
    CREATE TABLE numbers (name TEXT PRIMARY KEY, value INTEGER NOT NULL, fence INTEGER NOT NULL);
    CREATE TABLE sales (id INTEGER PRIMARY KEY, piece INTEGER NOT NULL, token INTEGER NOT NULL);
    INSERT INTO numbers VALUES ('stock', 0, 0), ('counter', 0, 0);";
const RESTOCK: &str = "UPDATE numbers SET value = ?1 WHERE name = 'stock'";

pub(crate) struct Shop(Connection);

impl Shop {
    /// Makes the tables in a new file.
    pub(crate) fn create(path: &Path) -> Result<Self> {
        let shop = Self::open(path)?;
        shop.0.pragma_update(None, "journal_mode", "wal")?;
        shop.0.execute_batch(TABLES)?;
        Ok(shop)
    }

    pub(crate) fn open(path: &Path) -> Result<Self> {
        let connection = Connection::open(path)?;
        connection.busy_timeout(PATIENCE)?;
        // It is to outlive its processes, not a power failure.
        connection.pragma_update(None, "synchronous", "off")?;
        Ok(Self(connection))
    }

    /// Forgets the sales and has so many pieces again.
    pub(crate) fn restock(&self, pieces: i64) -> Result<()> {
        self.0.execute("DELETE FROM sales", [])?;
        self.0.execute(RESTOCK, [pieces]).map(drop)
    }

    /// Reads a number without a lock.
    pub(crate) fn read(&self, name: &str) -> Result<i64> {
        self.0.query_row("SELECT value FROM numbers WHERE name = ?1", [name], |row| row.get(0))
    }

    /// Reads a number as a holder of the lock. The shop keeps the token, so that from now on it refuses older holders,
    /// who would write over what this one is about to change. `None`: a newer holder was here.
    pub(crate) fn read_fenced(&self, name: &str, token: i64) -> Result<Option<i64>> {
        let read = "UPDATE numbers SET fence = ?2 WHERE name = ?1 AND fence <= ?2 RETURNING value";
        self.0.query_row(read, (name, token), |row| row.get(0)).optional()
    }

    /// Writes a number, unless a newer holder was here: the condition is part of the write. Answers whether it did.
    pub(crate) fn write_fenced(&self, name: &str, value: i64, token: i64) -> Result<bool> {
        let write = "UPDATE numbers SET value = ?2, fence = ?3 WHERE name = ?1 AND fence <= ?3";
        Ok(self.0.execute(write, (name, value, token))? == 1)
    }

    /// Sells the piece that was seen; with a token, unless a newer holder was here. Answers whether it did.
    pub(crate) fn sell(&self, seen: i64, token: Option<i64>) -> Result<bool> {
        let sale = Transaction::new_unchecked(&self.0, TransactionBehavior::Immediate)?;
        let passed = match token {
            Some(token) => self.write_fenced("stock", seen - 1, token)?,
            None => sale.execute(RESTOCK, [seen - 1])? == 1,
        };
        if passed {
            let row = (seen, token.unwrap_or(0));
            sale.execute("INSERT INTO sales (piece, token) VALUES (?1, ?2)", row)?;
        }
        sale.commit().map(|()| passed)
    }

    /// Counts the sales, the different pieces in them, and the sales whose token is not newer than all before.
    pub(crate) fn sales(&self) -> Result<(i64, i64, i64)> {
        let count =
            "SELECT count(*), count(DISTINCT piece), count(*) FILTER (WHERE token <= newest)
            FROM (SELECT piece, token, max(token) OVER before AS newest FROM sales
            WINDOW before AS (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING))";
        self.0.query_row(count, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
    }
}
