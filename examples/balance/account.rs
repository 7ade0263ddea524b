//! The account, and the three ways to deduct from it.

use std::path::Path;
use std::time::Duration;

use fencelock::blocking::{Lock, Versioned, connect};
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};
use serde::{Deserialize, Serialize};

use crate::Result;

/// The time a deduction takes between reading the balance and writing it.
const MOMENT: Duration = Duration::from_millis(2);
const NAME: &str = "fencelock-example:balance";

/// The account as a whole. As a version this is the value itself, so that all of it changes at once.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Books {
    pub(crate) opened: i64,
    pub(crate) balance: i64,
    pub(crate) paid: i64,
}

pub(crate) enum Account {
    Version(Versioned),
    Lock(Lock, Book),
    None(Book),
}

impl Account {
    /// The account is opened with this balance, unless it is there.
    pub(crate) fn open(how: &str, url: &str, book: &Path, opened: i64) -> Result<Self> {
        Ok(match how {
            "version" => {
                // With eight that change it all the time, somebody else is faster more often than usual.
                let account = connect(url)?.version(NAME).option("retries", 100);
                let books = Books { opened, balance: opened, paid: 0 };
                let _ = account.compare_and_set(None, &books)?;
                Self::Version(account)
            }
            "lock" => Self::Lock(connect(url)?.lock(NAME), Book::open(book, opened)?),
            "none" => Self::None(Book::open(book, opened)?),
            _ => return Err(format!("--how is version, lock or none, not `{how}`").into()),
        })
    }

    /// Whether the balance covered the amount. If it did not, nothing has changed.
    pub(crate) fn deduct(&mut self, amount: i64) -> Result<bool> {
        match self {
            Self::Version(account) => {
                // Asked again with what is there by then, if somebody else was faster. `None`: it is not covered.
                let written = account.update(|books: Option<Books>| {
                    let books = books.filter(|books| books.balance >= amount)?;
                    let (balance, paid) = (books.balance - amount, books.paid + amount);
                    Some(Books { balance, paid, ..books })
                })?;
                Ok(written.is_some())
            }
            Self::Lock(lock, book) => loop {
                let guard = lock.acquire()?;
                let paid = book.read_and_write(amount, guard.token().get().cast_signed())?;
                // The book has judged already: whether the lease has ended since the write does not matter.
                let _ = guard.release();
                if let Some(paid) = paid {
                    return Ok(paid);
                }
            },
            // Without a lock there is no token: all write as the same holder.
            Self::None(book) => Ok(book.read_and_write(amount, 0)? == Some(true)),
        }
    }

    pub(crate) fn books(&self) -> Result<Books> {
        match self {
            Self::Version(account) => Ok(account.read()?.expect("it was opened").value),
            Self::Lock(_, book) | Self::None(book) => Ok(book.books()?),
        }
    }
}

/// The account in a SQLite file: what is left, and every payment.
pub(crate) struct Book(Connection);

impl Book {
    fn open(file: &Path, opened: i64) -> rusqlite::Result<Self> {
        let mut book = Connection::open(file)?;
        book.busy_timeout(Duration::from_secs(60))?;
        let change = book.transaction_with_behavior(TransactionBehavior::Immediate)?;
        change.execute_batch(
            "CREATE TABLE IF NOT EXISTS account (opened INTEGER, balance INTEGER, fence INTEGER);
             CREATE TABLE IF NOT EXISTS payments (amount INTEGER);",
        )?;
        let unless_it_is_there = "WHERE NOT EXISTS (SELECT * FROM account)";
        change.execute(
            &format!("INSERT INTO account SELECT ?1, ?1, 0 {unless_it_is_there}"),
            [opened],
        )?;
        change.commit()?;
        Ok(Self(book))
    }

    /// Whether the amount was paid. `None`: a newer holder has come, and nothing is written.
    fn read_and_write(&mut self, amount: i64, token: i64) -> rusqlite::Result<Option<bool>> {
        // Reading leaves the token too: an older holder that writes after this would be undone by what is made of it here.
        let read = "UPDATE account SET fence = ?1 WHERE fence <= ?1 RETURNING balance";
        let balance: Option<i64> = self.0.query_row(read, [token], |row| row.get(0)).optional()?;
        let Some(balance) = balance else { return Ok(None) };
        if balance < amount {
            return Ok(Some(false));
        }
        std::thread::sleep(MOMENT);
        // The balance and the payment are one change: a crash leaves both or neither.
        let change = self.0.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let write = "UPDATE account SET balance = ?1 WHERE fence <= ?2";
        if change.execute(write, params![balance - amount, token])? == 0 {
            return Ok(None);
        }
        change.execute("INSERT INTO payments VALUES (?1)", [amount])?;
        change.commit()?;
        Ok(Some(true))
    }

    fn books(&self) -> rusqlite::Result<Books> {
        let all =
            "SELECT opened, balance, (SELECT coalesce(sum(amount), 0) FROM payments) FROM account";
        self.0.query_row(all, [], |row| {
            Ok(Books { opened: row.get(0)?, balance: row.get(1)?, paid: row.get(2)? })
        })
    }
}
