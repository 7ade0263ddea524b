//! The fence where the data lies on Redis: every write carries its token, and the server refuses an older one.
//!
//! `cargo run -p fencelock-examples --bin gate redis://127.0.0.1`

use fencelock::Code;

#[tokio::main]
async fn main() -> fencelock::Result<()> {
    let Some(url) = std::env::args().nth(1) else {
        eprintln!("give the URL of a Redis server");
        std::process::exit(64);
    };
    let (client, gate) = (fencelock::connect(&url).await?, fencelock::connect_gate(&url).await?);
    let first = client.lock("lamp").acquire().await?;
    let older = first.token();
    gate.set("stock:lamp", older, "10").await?;
    first.release().await.check()?;

    let second = client.lock("lamp").acquire().await?;
    println!("{} left", gate.increment("stock:lamp", second.token(), -1).await?);
    // The first holder wakes up and does not know that it is late.
    match gate.increment("stock:lamp", older, -1).await {
        Err(late) if late.code() == Code::Lost => println!("{late}"),
        other => {
            eprintln!("the fence is broken: {other:?}");
            std::process::exit(1);
        }
    }
    second.release().await.check()?;
    client.close().await;
    Ok(())
}
