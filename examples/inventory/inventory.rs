//! The last lamps of a shop, sold by eight clerks at once: with no lock, under a lock, and by one script on the server.
//!
//! `cargo run -p fencelock-examples --bin inventory -- redis://127.0.0.1 etcd://127.0.0.1`
//!
//! The first URL is the shop's, a Redis server. The second is the store of the locks, by default the same.
//!
//! Selling is looking at the stock, taking a moment (a price, a payment), and writing it down. Whoever else looks in that
//! moment sells the same lamp again. The lock keeps the others out for as long as a sale takes, whatever is in it. Where
//! all of a sale fits into one script on one server, no lock is needed: the third way, for comparison.

use std::time::{Duration, Instant};

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, RedisResult, Script, cmd};

const LAMPS: i64 = 50;
const CUSTOMERS: usize = 80;
const CLERKS: usize = 8;
/// The time a sale takes between reading the stock and writing it.
const MOMENT: Duration = Duration::from_millis(2);

const STOCK: &str = "fencelock-example:lamps:stock";
const SOLD: &str = "fencelock-example:lamps:sold";

/// The whole deduction in one step of the server.
const DEDUCT: &str = "
local stock = tonumber(redis.call('GET', KEYS[1]))
if stock < 1 then return 0 end
redis.call('DECR', KEYS[1])
redis.call('INCR', KEYS[2])
return 1";

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

#[derive(Clone, Copy, Debug)]
enum Way {
    NoLock,
    Lock,
    Script,
}

/// One clerk: a program of its own in a real shop, with its own connections.
struct Clerk {
    locks: fencelock::Client,
    shop: MultiplexedConnection,
}

impl Clerk {
    async fn sell(&mut self, way: Way) -> Result<()> {
        match way {
            Way::NoLock => self.look_and_write().await?,
            Way::Lock => {
                let guard = self.locks.lock("fencelock-example:lamps").acquire().await?;
                self.look_and_write().await?;
                guard.release().await.check()?;
            }
            Way::Script => {
                let _: i64 =
                    Script::new(DEDUCT).key(STOCK).key(SOLD).invoke_async(&mut self.shop).await?;
            }
        }
        Ok(())
    }

    async fn look_and_write(&mut self) -> RedisResult<()> {
        let stock: i64 = cmd("GET").arg(STOCK).query_async(&mut self.shop).await?;
        if stock < 1 {
            return Ok(());
        }
        tokio::time::sleep(MOMENT).await;
        let () = cmd("SET").arg(STOCK).arg(stock - 1).query_async(&mut self.shop).await?;
        cmd("INCR").arg(SOLD).query_async(&mut self.shop).await
    }
}

async fn day(shop: &str, locks: &str, way: Way) -> Result<i64> {
    let server = redis::Client::open(shop)?;
    // A busy machine can take longer for an answer than the half second this crate waits for one.
    let patient = AsyncConnectionConfig::new().set_response_timeout(None);
    let mut shop = server.get_multiplexed_async_connection_with_config(&patient).await?;
    let () = cmd("MSET").arg(STOCK).arg(LAMPS).arg(SOLD).arg(0).query_async(&mut shop).await?;
    let mut clerks = Vec::new();
    for _ in 0..CLERKS {
        let mut clerk = Clerk { locks: fencelock::connect(locks).await?, shop: shop.clone() };
        clerks.push(tokio::spawn(async move {
            for _ in 0..CUSTOMERS / CLERKS {
                clerk.sell(way).await?;
            }
            clerk.locks.close().await;
            Result::Ok(())
        }));
    }
    for clerk in clerks {
        clerk.await??;
    }
    let sold: i64 = cmd("GET").arg(SOLD).query_async(&mut shop).await?;
    let () = cmd("DEL").arg(STOCK).arg(SOLD).query_async(&mut shop).await?;
    Ok(sold)
}

#[tokio::main]
async fn main() -> Result<()> {
    let shop = std::env::args().nth(1).unwrap_or_else(|| "redis://127.0.0.1".into());
    let locks = std::env::args().nth(2).unwrap_or_else(|| shop.clone());
    println!("{LAMPS} lamps, {CUSTOMERS} customers, {CLERKS} clerks");
    for (name, way) in [("no lock", Way::NoLock), ("lock", Way::Lock), ("script", Way::Script)] {
        let begin = Instant::now();
        let sold = day(&shop, &locks, way).await?;
        let (over, took) = ((sold - LAMPS).max(0), begin.elapsed().as_millis());
        println!("{name:8} sold {sold:3}, oversold {over:3}, {took} ms");
    }
    Ok(())
}
