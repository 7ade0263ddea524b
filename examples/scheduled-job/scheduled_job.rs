//! A node of a fleet that writes a report: of all nodes, one writes it in each period.
//!
//! `cargo run -p fencelock-examples --bin scheduled_job -- --name node-1 --period 10 --for 60`, from several terminals.
//!
//! `--url` is the store, by default a SQLite file in this folder. Each run appends a line to `--output`: its instant in
//! milliseconds since 1970, its token, the node. `--work` is how long a run takes. All times are seconds. The same program
//! is there in other languages, and their nodes are one fleet; scheduled-job.sh starts ten of them and kills one.

use std::fs::File;
use std::io::Write;
use std::time::{Duration, Instant, UNIX_EPOCH};

use fencelock::RunClaim;
use tokio::time::sleep;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// The word behind `--name`.
fn word(name: &str, default: &str) -> String {
    let mut words = std::env::args().skip_while(|word| word != name);
    words.nth(1).unwrap_or_else(|| default.into())
}

fn time(name: &str, default: &str) -> Result<Duration> {
    Ok(Duration::try_from_secs_f64(word(name, default).parse()?)?)
}

/// The run: a line in the output, and what it takes besides.
async fn report(run: RunClaim, node: &str, output: &str, work: Duration) -> std::io::Result<()> {
    let since = run.instant().duration_since(UNIX_EPOCH).unwrap_or_default();
    let line = format!("{} {} {node}\n", since.as_millis(), run.token());
    // In one write, so that lines of several nodes never mix.
    File::options().create(true).append(true).open(output)?.write_all(line.as_bytes())?;
    sleep(work).await;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<()> {
    let node = word("--name", &format!("node-{}", std::process::id()));
    let period = time("--period", "10")?;
    let part = time("--for", "60")?;
    let work = time("--work", "0")?;
    let output = word("--output", "runs.txt");

    let client = fencelock::connect(&word("--url", "sqlite:jobs.db")).await?;
    // A run that has died counts as dead after this time: well before the next one is due.
    let ttl = Duration::from_secs(30).min(period / 4);
    let job = client.job("fencelock-example:report", period).ttl(ttl).info(&node);
    println!("{node} takes part");

    let end = Instant::now() + part;
    let mut runs = 0;
    while Instant::now() < end {
        match job.with(|run| report(run, &node, &output, work)).await {
            Ok(Ok(())) => runs += 1,
            // Another node runs it, or it was run in this period.
            Ok(Err(_skipped)) => {}
            // The run failed or was lost, or the store is away. The next one is due all the same.
            Err(error) => eprintln!("{node}: {error}"),
        }
        // The store's clock says when a run is due, so no node has to know: it only asks often enough.
        sleep(period / 10).await;
    }
    println!("{node} had {runs} runs");
    client.close().await;
    Ok(())
}
