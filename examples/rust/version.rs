//! Optimistic version: a stock that is sold from many sides without a lock, and never below zero.
//!
//! `cargo run -p fencelock-examples --bin version [URL]`

#[tokio::main]
async fn main() -> fencelock::Result<()> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "memory:".into());
    let client = fencelock::connect(&url).await?;
    let stock = client.version("stock:lamp").retries(100);
    stock.update(|_: Option<u32>| Some(10)).await?;

    let buyers: Vec<_> = (0..4)
        .map(|_| {
            let stock = stock.clone();
            tokio::spawn(async move {
                let mut sold = 0;
                for _ in 0..10 {
                    // Asked again with what is there by then, if somebody else was faster. `None`: nothing to sell.
                    let left = stock.update(|left: Option<u32>| left?.checked_sub(1)).await?;
                    sold += u32::from(left.is_some());
                }
                fencelock::Result::Ok(sold)
            })
        })
        .collect();
    let mut sold = 0;
    for buyer in buyers {
        sold += buyer.await.expect("no buyer panics")?;
    }
    println!("sold {sold} of 10, {} came too late", 40 - sold);
    client.close().await;
    Ok(())
}
