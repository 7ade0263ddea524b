//! An election: one leader, the next one in order, and somebody who follows who leads.
//!
//! `cargo run -p fencelock-examples --bin election`

use fencelock::Leader;

fn shown(leader: Option<&Leader>) -> String {
    leader.map_or("nobody leads".into(), |leader| format!("{} leads", info(&leader.info)))
}

/// What a leader says of itself, read from the JSON that describes it.
fn info(info: &str) -> &str {
    info.split_once(r#""info":""#).map_or("?", |(_, rest)| rest.split('"').next().unwrap_or("?"))
}

#[tokio::main]
async fn main() -> fencelock::Result<()> {
    let (one, two) =
        (fencelock::connect("memory:fleet").await?, fencelock::connect("memory:fleet").await?);
    let mut observer = two.election("scheduler").option("observe", "20ms").observe();
    println!("{}", shown(observer.changed().await?.as_ref()));

    let first = one.election("scheduler").info("node-1").campaign().await?;
    println!("{}", shown(observer.changed().await?.as_ref()));

    // The second candidate waits in order, however long that takes.
    let waits = tokio::spawn(two.election("scheduler").info("node-2").campaign());
    first.release().await.check()?;
    println!("node-1 has resigned");
    let second = waits.await.expect("the task does not panic")?;
    println!("{}", shown(observer.changed().await?.as_ref()));
    second.on_lost(|| println!("node-2 stops at once"));

    second.release().await.check()?;
    Ok(())
}
