//! Tests of versions and jobs on any store with sessions, as programs see them.

use std::time::Duration;

use fencelock::{Client, JobState, Reason, Released, Status, Swapped};
use futures_util::future::join_all;

use crate::session_store::{PATIENCE, SessionServer, client, clients};

const HOUR: Duration = Duration::from_hours(1);

/// No update of several clients is lost, and what was deleted comes back with a higher version.
pub async fn updates_of_everybody_are_all_counted(server: &impl SessionServer, prefix: &str) {
    let all = clients(server, prefix, 4).await;
    let count = async |client: &Client| {
        for _ in 0..25 {
            let number = client.version("stock").retries(1000);
            number.update(|old: Option<u64>| Some(old.unwrap_or(0) + 1)).await.unwrap();
        }
    };
    join_all(all.iter().map(count)).await;
    let seen = all[0].version("stock").read::<u64>().await.unwrap().expect("it was written");
    assert_eq!(seen.value, 100);
    let Swapped::Done(deleted) = all[1].version("stock").delete::<u64>(seen.version).await.unwrap()
    else {
        panic!("nobody changes it")
    };
    assert!(deleted > seen.version);
    assert!(all[0].version("stock").read::<u64>().await.unwrap().is_none());
    all[0].version("stock").update(|old: Option<u64>| old.xor(Some(1))).await.unwrap();
    let again = all[2].version("stock").read::<u64>().await.unwrap().expect("it was written");
    assert!(again.version > deleted);
}

async fn state(client: &Client) -> JobState {
    client.job("nightly", HOUR).inspect().await.unwrap().expect("it was run")
}

/// A job runs once in its period. A run whose session ended is dead. `end_session` ends that of the run of a job.
pub async fn a_job_runs_once_and_a_run_whose_session_ended_is_dead(
    server: &impl SessionServer,
    prefix: &str,
    end_session: impl AsyncFnOnce(&str),
) {
    let (one, two) = (client(server, prefix).await, client(server, prefix).await);
    let run = one.job("nightly", HOUR).start().await.unwrap().expect("nobody ran it");
    let skipped = two.job("nightly", HOUR).start().await.unwrap().err();
    assert_eq!(skipped.map(|skipped| skipped.reason), Some(Reason::Running));
    assert!(!state(&two).await.dead);
    assert!(two.names("").await.unwrap().is_empty(), "the lock of a job is nobody's business");
    // It outlasts its session's length.
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(run.is_held());
    assert_eq!(run.succeed().await, Released::Released);
    let skipped = two.job("nightly", HOUR).start().await.unwrap().err();
    assert_eq!(skipped.map(|skipped| skipped.reason), Some(Reason::Done));
    assert_eq!(state(&two).await.status, Status::Succeeded);

    let other = one.job("hourly", HOUR).start().await.unwrap().expect("nobody ran it");
    end_session("hourly").await;
    tokio::time::timeout(PATIENCE, other.lost()).await.expect("it is told");
    let hourly = two.job("hourly", HOUR);
    assert!(hourly.inspect().await.unwrap().expect("it was run").dead);
    assert!(hourly.start().await.unwrap().is_err(), "it may have done its work");
    let again = hourly.retry_dead(true).start().await.unwrap().expect("asked for");
    assert!(again.token() > other.token());
    assert_eq!(other.succeed().await, Released::AlreadyLost);
    assert_eq!(again.succeed().await, Released::Released);
}
