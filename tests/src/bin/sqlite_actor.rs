//! A process of its own for the tests of the SQLite driver: does what its arguments say, tells it line by line.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use fencelock::options::Options;
use fencelock::port::{LeaseStore, Outcome};
use fencelock_tests::peer::Peer;

#[tokio::main(worker_threads = 2)]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let number = |at: usize| arguments[at].parse::<u64>().expect("a number");
    let (path, name) = (Path::new(arguments[1]), arguments[2]);
    let peer = match Peer::open(path, &Options::default()).await {
        Ok(peer) => Arc::new(peer),
        Err(error) => return println!("{error}"),
    };
    match arguments[0] {
        // wait FILE NAME TTL: queue, be granted, hold for ever.
        "wait" => {
            let ttl = Duration::from_millis(number(3));
            let place = peer.join(name, ttl).await;
            if matches!(place.answer, Ok(Outcome::Queued { .. })) {
                println!("queued");
            }
            let (_, token) = peer.wait(name, ttl, place).await;
            println!("granted {token}");
            std::future::pending::<()>().await;
        }
        // churn FILE NAME: take and free without an end.
        "churn" => loop {
            let (owner, _) = peer.acquire(name, Duration::from_millis(100)).await;
            println!("{}", peer.free(name, owner).await.is_ok());
        },
        // hammer FILE NAME TASKS ROUNDS: each task takes and frees; then every hold with its interval, in ns.
        "hammer" => {
            let tasks: Vec<_> = (0..number(3))
                .map(|_| {
                    let (peer, name) = (peer.clone(), name.to_owned());
                    tokio::spawn(hammer(peer, name, number(4)))
                })
                .collect();
            for task in tasks {
                print!("{}", task.await.expect("the task ends"));
            }
            peer.store.close().await;
        }
        other => panic!("{other} is nothing this actor does"),
    }
}

async fn hammer<S: LeaseStore>(peer: Arc<Peer<S>>, name: String, rounds: u64) -> String {
    use std::fmt::Write;
    let mut told = String::new();
    for _ in 0..rounds {
        let (owner, token) = peer.acquire(&name, Duration::from_secs(30)).await;
        let from = peer.runtime.now().as_nanos();
        let to = peer.runtime.now().as_nanos();
        assert!(matches!(peer.free(&name, owner).await, Ok(Outcome::Freed)));
        writeln!(told, "{token} {from} {to}").expect("text takes it");
    }
    told
}
