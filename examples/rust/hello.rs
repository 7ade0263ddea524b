//! The shortest use: take a lock, do something with its token, give it back.
//!
//! `cargo run -p fencelock-examples --bin hello [URL]`, for instance `redis://127.0.0.1` or `sqlite:locks.db`. Start it
//! twice on the same store: the second waits.

use std::time::Duration;

#[tokio::main]
async fn main() -> fencelock::Result<()> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "memory:".into());
    let client = fencelock::connect(&url).await?;

    let lock = client.lock("greeting").ttl(Duration::from_secs(10));
    let guard = lock.acquire_within(Duration::from_secs(5)).await?;
    println!("hello, with fencing token {}", guard.token());
    guard.release().await.check()?;

    client.close().await;
    Ok(())
}
