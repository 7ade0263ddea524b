//! A lock file that is no longer the one it was, under somebody who holds a lock in it.

use std::fs;
use std::path::Path;
use std::time::Duration;

use tokio::time::timeout;

const TTL: Duration = Duration::from_secs(12);

/// Whether a loss is told with the next renewal, a third of the lease later, long before the deadline.
async fn is_told_at_the_next_renewal(within: Duration, happens: impl FnOnce(&Path)) -> bool {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let file = folder.path().join("locks.db");
    let client = fencelock::connect(&format!("sqlite:{}", file.display())).await.unwrap();
    let guard = client.lock("x").ttl(TTL).acquire().await.unwrap();
    happens(&file);
    let told = timeout(within, guard.claim().lost()).await.is_ok();
    assert_eq!(told, !guard.is_held());
    told
}

fn delete(file: &Path) {
    fs::remove_file(file).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_is_deleted_is_told_to_its_holders() {
    assert!(is_told_at_the_next_renewal(TTL * 3 / 4, delete).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_is_replaced_is_told_to_its_holders() {
    let replace = |file: &Path| {
        fs::rename(file, file.with_extension("old")).unwrap();
        fs::write(file, "").unwrap();
    };
    assert!(is_told_at_the_next_renewal(TTL * 3 / 4, replace).await);
}
