//! A scheduled job: every node of a fleet asks, one of them runs it.
//!
//! `cargo run -p fencelock-examples --bin job [URL]`, for instance from three terminals within one minute.

use std::time::Duration;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "memory:job".into());
    // Each client is a node.
    for node in 1..=3 {
        let client = fencelock::connect(&url).await?;
        let job = client.job("cleanup", Duration::from_hours(24)).info(format!("node-{node}"));
        let body = async |token| {
            println!("node-{node} runs, with token {token}");
            std::io::Result::Ok(())
        };
        if let Err(skipped) = job.with(|run| body(run.token())).await? {
            println!("node-{node} has nothing to do, {skipped}");
        }
        client.close().await;
    }
    let client = fencelock::connect(&url).await?;
    let job = client.job("cleanup", Duration::from_hours(24));
    let last = job.inspect().await?.expect("it was run");
    println!("the last run has {:?}", last.status);
    client.close().await;
    Ok(())
}
