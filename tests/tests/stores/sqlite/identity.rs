//! A lock file that is no longer the one it was, under somebody who holds a lock in it.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use fencelock_tests::place::{Actor, Place, check_exclusion, read_files};
use tokio::time::timeout;

const ACTOR: &str = env!("CARGO_BIN_EXE_sqlite_actor");
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

fn delete_log(file: &Path) {
    for end in ["-wal", "-shm"] {
        delete(Path::new(&format!("{}{end}", file.display())));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_is_deleted_is_told_to_its_holders() {
    assert!(is_told_at_the_next_renewal(TTL * 3 / 4, delete).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_that_is_deleted_is_told_to_its_holders() {
    assert!(is_told_at_the_next_renewal(TTL * 3 / 4, delete_log).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_is_replaced_is_told_to_its_holders() {
    let replace = |file: &Path| {
        fs::rename(file, file.with_extension("old")).unwrap();
        fs::write(file, "").unwrap();
    };
    assert!(is_told_at_the_next_renewal(TTL * 3 / 4, replace).await);
}

fn actor(does: &str, place: &Place, more: &[&str]) -> Actor {
    let mut command = Command::new(ACTOR);
    Actor::start(command.arg(does).arg(&place.file).args(more))
}

/// The answer to another process that comes, asks for a lock and goes.
fn asked_elsewhere(place: &Place, lock: &str) -> String {
    let mut other = actor("try", place, &[lock]);
    let answer = other.line();
    other.wait();
    answer
}

/// POSIX drops all locks of a process on a file as soon as the process closes the file anywhere.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_reads_the_files_still_excludes_others() {
    let place = Place::new();
    let client = fencelock::connect(&format!("sqlite:{}", place.file.display())).await.unwrap();
    let first = client.lock("first").ttl(TTL).acquire().await.unwrap();
    for round in 0..3 {
        read_files(&place.file).unwrap();
        assert_eq!(asked_elsewhere(&place, "first"), "held", "round {round}");
        // Granted after somebody came and went, who may have believed to be the last one.
        let later = client.lock(&format!("later {round}")).ttl(TTL).acquire().await.unwrap();
        let answer = asked_elsewhere(&place, &format!("later {round}"));
        assert_eq!(answer, "held", "round {round}: it is held here, says {}", later.is_held());
        later.release().await.check().unwrap();
    }
    assert!(first.is_held());
    first.release().await.check().unwrap();
    assert_eq!(asked_elsewhere(&place, "first"), "granted");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_another_process_wrote_is_there_after_a_process_that_read_the_files_has_left() {
    let place = Place::new();
    let client = fencelock::connect(&format!("sqlite:{}", place.file.display())).await.unwrap();
    client.lock("x").acquire().await.unwrap().release().await.check().unwrap();
    read_files(&place.file).unwrap();
    asked_elsewhere(&place, "x");
    let mut other = actor("fill", &place, &["3000"]);
    assert_eq!(other.line(), "filled");
    read_files(&place.file).unwrap();
    client.close().await;
    let rows: i64 =
        place.plain().query_row("SELECT count(*) FROM item", [], |row| row.get(0)).unwrap();
    assert_eq!(rows, 3000);
    place.check_integrity();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_that_read_the_files_all_the_time_never_hold_one_lock_at_once() {
    const ROUNDS: usize = 300;
    let place = Place::new();
    let rounds = ROUNDS.to_string();
    let mut pair = [(); 2].map(|()| actor("read", &place, &["hammer", "4", &rounds]));
    check_exclusion(&mut pair, 4 * ROUNDS);
    place.check_integrity();
}

/// The error when connecting to a path.
async fn refused(path: &Path) -> String {
    let error = fencelock::connect(&format!("sqlite:{}", path.display())).await.unwrap_err();
    assert_eq!(error.code(), fencelock::Code::Invalid);
    error.to_string()
}

#[tokio::test]
async fn a_file_with_two_names_is_refused_under_both() {
    let place = Place::new();
    drop(place.peer().await);
    let other = place.directory.path().join("other.db");
    fs::hard_link(&place.file, &other).unwrap();
    for path in [&place.file, &other] {
        assert!(refused(path).await.contains("several hard links"));
    }
    fs::remove_file(&other).unwrap();
    place.peer().await;
}

/// As it is given to a container alone, without its directory.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_file_that_is_mounted_by_itself_is_refused() {
    let apart = |program: &str| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", program]);
        command
    };
    if !apart("true").output().is_ok_and(|done| done.status.success()) {
        return eprintln!("skipped: this machine lets nobody make a mount namespace");
    }
    let place = Place::new();
    drop(place.peer().await);
    let mounted = place.directory.path().join("mounted.db");
    fs::write(&mounted, "").unwrap();
    let script = r#"mount --bind "$1" "$2" && exec "$3" try "$2" x"#;
    let mut actor = Actor::start(
        apart("sh").args(["-c", script, "sh"]).args([&place.file, &mounted]).arg(ACTOR),
    );
    assert!(actor.line().contains("mounted by itself"));
}
