//! The measured side: this program again, as a child that runs one course and prints one line of figures.
//!
//! The protocol, the same for the peers in `peers/`: `program contestant course name=value...`; it prints `ready` when it
//! is connected and warm, waits for a line, runs, prints one JSON object and ends.

mod course;
mod fencelock;
mod metered;
mod mysql_bare;
mod postgres_bare;
mod raw;
mod redis_rs;
mod zookeeper_client;

use course::Course;

/// The word on the command line that makes this program a measured one.
pub(crate) const WORD: &str = "subject";

/// Runs what the words after [`WORD`] say.
pub(crate) fn run(mut words: impl Iterator<Item = String>) {
    let contestant = words.next().expect("a contestant");
    let workload = words.next().expect("a course");
    let course = Course::parse(words);
    match (contestant.as_str(), workload.as_str()) {
        ("raw", _) => return raw::run(&workload, &course),
        ("fencelock-blocking", "pair") => return fencelock::blocking_pair(&course),
        _ => {}
    }
    // One thread, for every Rust contestant alike: the clients have one core.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        match (contestant.as_str(), workload.as_str()) {
            ("redis-rs", _) => {
                course::run(redis_rs::RedisRs::connect(&course).await, &workload, &course).await;
            }
            ("postgres-bare", _) => {
                course::run(postgres_bare::PostgresBare::new(&course), &workload, &course).await;
            }
            ("mysql-bare", _) => {
                course::run(mysql_bare::MysqlBare::new(&course), &workload, &course).await;
            }
            ("zookeeper-client", _) => {
                let contestant = zookeeper_client::ZookeeperClient::connect(&course).await;
                course::run(contestant, &workload, &course).await;
            }
            ("fencelock", "metered") => metered::run(&course).await,
            ("fencelock", "leases") => fencelock::leases(&course).await,
            ("fencelock", "rest") => fencelock::rest(&course).await,
            ("fencelock", "hold") => fencelock::hold(&course).await,
            ("fencelock", "wait") => fencelock::wait(&course).await,
            ("fencelock", _) => {
                course::run(fencelock::Fencelock::connect(&course).await, &workload, &course).await;
            }
            _ => panic!("there is no contestant `{contestant}`"),
        }
    });
    // Tasks may still wait for a lock; nobody is interested any more.
    std::process::exit(0);
}
