//! Why a token: a holder that slept through the end of its lease is refused by the write itself.
//!
//! The shelf remembers the newest token that wrote to it, and every write carries its condition inside: no lock service
//! can promise more, because between the last look at a guard and the write a process may be stopped for any time.

use std::time::Duration;

use fencelock::Token;
use rusqlite::{Connection, params};

/// Sells one item; false if a newer holder has written since.
fn sell(shelf: &Connection, token: Token) -> rusqlite::Result<bool> {
    let fenced =
        "UPDATE shelf SET stock = stock - 1, fence = ?1 WHERE item = 'lamp' AND fence <= ?1";
    Ok(shelf.execute(fenced, params![token.get().cast_signed()])? == 1)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let shelf = Connection::open_in_memory()?;
    shelf.execute_batch(
        "CREATE TABLE shelf (item TEXT PRIMARY KEY, stock INTEGER, fence INTEGER NOT NULL DEFAULT 0);
         INSERT INTO shelf (item, stock) VALUES ('lamp', 10);",
    )?;
    // Two processes in one program: each client is one.
    let sleepy = fencelock::connect("memory:shop").await?;
    let awake = fencelock::connect("memory:shop").await?;

    // A short lease that is not renewed, as if its process had been stopped.
    let lease = sleepy.lock("lamp").ttl(Duration::from_millis(50)).renew(false);
    let stopped = lease.acquire().await?;
    println!("the first holder has token {} and falls asleep", stopped.token());

    let guard = awake.lock("lamp").acquire().await?;
    println!("its lease ends; the second holder gets token {}", guard.token());
    assert!(sell(&shelf, guard.token())?);

    println!("the first wakes up; its guard says held: {}", stopped.is_held());
    let sold = sell(&shelf, stopped.token())?;
    println!("and if it does not ask, the write itself answers: sold {sold}");
    assert!(!sold && !stopped.is_held());

    guard.release().await.check()?;
    Ok(())
}
