//! The shop: a real SQLite database with its items, how many are left, a counter and the orders.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, Result, TransactionBehavior, params};

/// A number in the shop that workers read, change and write back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Number {
    /// Pieces on the shelf.
    Stock,
    /// What the last act counts up.
    Counter,
}

/// The answer to a holder of the lock who shows its token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fenced<T> {
    /// The token is the newest the shop has seen.
    Passed(T),
    /// A newer holder was here: nothing was read and nothing written.
    Refused { newest: u64 },
}

/// What the orders say, counted by the database itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Books {
    /// Orders that were confirmed to a buyer.
    pub sold: u32,
    /// Items that have a buyer.
    pub pieces: u32,
    /// Orders written with an older token than an order before them.
    pub stale: u32,
    /// Pieces on the shelf.
    pub stock: i64,
}

/// One process's connection to the shop.
pub(super) struct Shop {
    connection: Connection,
}

const TABLES: &str = "
    CREATE TABLE numbers (name TEXT PRIMARY KEY, value INTEGER NOT NULL, fence INTEGER NOT NULL DEFAULT 0) STRICT;
    CREATE TABLE items (piece INTEGER PRIMARY KEY, buyer INTEGER) STRICT;
    CREATE TABLE orders (
        id INTEGER PRIMARY KEY, buyer INTEGER NOT NULL, piece INTEGER NOT NULL, token INTEGER NOT NULL DEFAULT 0
    ) STRICT;
    INSERT INTO numbers (name, value) VALUES ('stock', 0), ('counter', 0);";

impl Number {
    fn name(self) -> &'static str {
        match self {
            Self::Stock => "stock",
            Self::Counter => "counter",
        }
    }
}

impl Shop {
    /// Builds the shop in a new file.
    pub(super) fn build(path: &Path) -> Result<Self> {
        let connection = Connection::open(path)?;
        connection.pragma_update(None, "journal_mode", "wal")?;
        connection.execute_batch(TABLES)?;
        Self::with(connection)
    }

    /// Enters a shop that was built.
    pub(super) fn enter(path: &Path) -> Result<Self> {
        Self::with(Connection::open(path)?)
    }

    fn with(connection: Connection) -> Result<Self> {
        connection.busy_timeout(Duration::from_secs(10))?;
        // The shop has to outlive its processes, not a power failure.
        connection.pragma_update(None, "synchronous", "off")?;
        Ok(Self { connection })
    }

    /// Clears the orders and fills the shelf with so many items, each a row.
    pub(super) fn restock(&mut self, pieces: u32) -> Result<()> {
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction.execute_batch("DELETE FROM orders; DELETE FROM items")?;
        transaction.execute(
            "WITH RECURSIVE shelf (piece) AS (SELECT 1 UNION ALL SELECT piece + 1 FROM shelf WHERE piece < ?1)
             INSERT INTO items (piece) SELECT piece FROM shelf",
            [pieces],
        )?;
        transaction.execute("UPDATE numbers SET value = ?1 WHERE name = 'stock'", [pieces])?;
        transaction.commit()
    }

    /// A number, as anybody may read it.
    pub(super) fn read(&self, number: Number) -> Result<i64> {
        self.connection
            .prepare_cached("SELECT value FROM numbers WHERE name = ?1")?
            .query_row([number.name()], |row| row.get(0))
    }

    /// Sells the piece that was seen on top, without any check: the sale of a shop without a lock.
    pub(super) fn sell(&mut self, buyer: u32, seen: i64) -> Result<()> {
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction
            .prepare_cached("UPDATE numbers SET value = ?1 WHERE name = 'stock'")?
            .execute([seen - 1])?;
        promise(&transaction, buyer, seen, 0)?;
        transaction.commit()
    }

    /// A number, as a holder of the lock reads it: the shop notes the token, so that from now on an older holder, who
    /// would write over what this one is about to change, is refused.
    pub(super) fn read_fenced(&self, number: Number, token: u64) -> Result<Fenced<i64>> {
        let mut look = self.connection.prepare_cached(
            "UPDATE numbers SET fence = ?2 WHERE name = ?1 AND fence <= ?2 RETURNING value",
        )?;
        let value = look.query_row(params![number.name(), token], |row| row.get(0)).optional()?;
        match value {
            Some(value) => Ok(Fenced::Passed(value)),
            None => self.refuse(number),
        }
    }

    /// Writes a number, if the token is the newest: the condition is in the write itself.
    pub(super) fn write_fenced(
        &self,
        number: Number,
        value: i64,
        token: u64,
    ) -> Result<Fenced<()>> {
        let mut write = self.connection.prepare_cached(
            "UPDATE numbers SET value = ?2, fence = ?3 WHERE name = ?1 AND fence <= ?3",
        )?;
        match write.execute(params![number.name(), value, token])? {
            0 => self.refuse(number),
            _ => Ok(Fenced::Passed(())),
        }
    }

    /// Sells the piece that was seen on top, if the token is the newest.
    pub(super) fn sell_fenced(&mut self, buyer: u32, seen: i64, token: u64) -> Result<Fenced<()>> {
        self.connection.execute_batch("BEGIN IMMEDIATE")?;
        let sold = self.write_fenced(Number::Stock, seen - 1, token).and_then(|written| {
            if written == Fenced::Passed(()) {
                promise(&self.connection, buyer, seen, token)?;
            }
            Ok(written)
        });
        self.connection.execute_batch(if sold.is_ok() { "COMMIT" } else { "ROLLBACK" })?;
        sold
    }

    fn refuse<T>(&self, number: Number) -> Result<Fenced<T>> {
        let newest = self.connection.query_row(
            "SELECT fence FROM numbers WHERE name = ?1",
            [number.name()],
            |row| row.get(0),
        )?;
        Ok(Fenced::Refused { newest })
    }

    /// Counts what was sold.
    pub(super) fn books(&self) -> Result<Books> {
        let stock = self.read(Number::Stock)?;
        self.connection.query_row(
            "SELECT count(*), (SELECT count(buyer) FROM items), count(*) FILTER (WHERE token < newest) FROM
                (SELECT token, max(token) OVER (ORDER BY id) AS newest FROM orders)",
            [],
            |row| Ok(Books { sold: row.get(0)?, pieces: row.get(1)?, stale: row.get(2)?, stock }),
        )
    }
}

/// Writes the order, and the buyer's number on the item: over another's, if that was promised before.
fn promise(connection: &Connection, buyer: u32, piece: i64, token: u64) -> Result<()> {
    connection
        .prepare_cached("INSERT INTO orders (buyer, piece, token) VALUES (?1, ?2, ?3)")?
        .execute(params![buyer, piece, token])?;
    connection
        .prepare_cached("UPDATE items SET buyer = ?1 WHERE piece = ?2")?
        .execute(params![buyer, piece])?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shop(pieces: u32) -> Shop {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(TABLES).unwrap();
        let mut shop = Shop::with(connection).unwrap();
        shop.restock(pieces).unwrap();
        shop
    }

    #[test]
    fn two_unlocked_sales_of_one_look_sell_a_piece_twice() {
        let mut shop = shop(10);
        let seen = shop.read(Number::Stock).unwrap();
        shop.sell(1, seen).unwrap();
        shop.sell(2, seen).unwrap();
        assert_eq!(shop.books().unwrap(), Books { sold: 2, pieces: 1, stale: 0, stock: 9 });
    }

    #[test]
    fn a_sale_with_an_older_token_changes_nothing() {
        let mut shop = shop(10);
        assert_eq!(shop.sell_fenced(1, 10, 7).unwrap(), Fenced::Passed(()));
        assert_eq!(shop.sell_fenced(2, 9, 6).unwrap(), Fenced::Refused { newest: 7 });
        assert_eq!(shop.books().unwrap(), Books { sold: 1, pieces: 1, stale: 0, stock: 9 });
    }

    #[test]
    fn a_newer_look_shuts_out_an_older_write() {
        let shop = shop(10);
        assert_eq!(shop.read_fenced(Number::Counter, 7).unwrap(), Fenced::Passed(0));
        assert_eq!(shop.read_fenced(Number::Counter, 8).unwrap(), Fenced::Passed(0));
        let stale = shop.write_fenced(Number::Counter, 1, 7).unwrap();
        assert_eq!(stale, Fenced::Refused { newest: 8 });
        assert_eq!(shop.write_fenced(Number::Counter, 1, 8).unwrap(), Fenced::Passed(()));
        assert_eq!(shop.read(Number::Counter).unwrap(), 1);
    }

    #[test]
    fn the_books_see_an_order_out_of_turn() {
        let shop = shop(3);
        for (piece, token) in [(3, 5), (2, 9), (1, 8)] {
            promise(&shop.connection, 1, piece, token).unwrap();
        }
        assert_eq!(shop.books().unwrap(), Books { sold: 3, pieces: 3, stale: 1, stock: 3 });
    }
}
