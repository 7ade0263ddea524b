//! Faults around a SQLite file: other writers, dead processes, damaged rows, rights that are missing.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use fencelock::options::Options;
use fencelock::port::{Action, Answer, Applied, Kind, LeaseStore, LockKey, Notice, Outcome, Step};
use fencelock::{Code, Error, Token};
use fencelock_tests::peer::Peer;
use fencelock_tests::place::{Actor, Place, check_exclusion};

const TTL: Duration = Duration::from_secs(30);
/// Nothing here takes nearly so long: what does not come by then does not come.
const PATIENCE: Duration = Duration::from_secs(20);

fn actor(does: &str, file: &Path, more: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sqlite_actor"));
    command.arg(does).arg(file).args(more);
    command
}

fn token(answer: &Answer) -> Token {
    match answer {
        Ok(Outcome::Granted { token, .. }) => *token,
        other => panic!("not granted: {other:?}"),
    }
}

fn refusal(answer: Answer) -> Error {
    let failure = answer.expect_err("the step is refused");
    assert_eq!(failure.applied, Applied::No);
    failure.error
}

async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("it comes in time")
}

#[tokio::test]
async fn two_stores_on_one_file_exclude_each_other() {
    let place = Place::new();
    let (one, two) = (place.peer().await, place.peer().await);
    let (owner, first) = one.try_take("orders:42", TTL).await;
    let (_, held) = two.try_take("orders:42", TTL).await;
    assert!(matches!(held, Ok(Outcome::Held { left: Some(_) })), "{held:?}");
    token(&two.try_take("orders:43", TTL).await.1);
    assert!(matches!(
        two.free("orders:42", fencelock::port::OwnerId::draw(&*two.runtime)).await,
        Ok(Outcome::Gone)
    ));
    assert!(matches!(one.free("orders:42", owner).await, Ok(Outcome::Freed)));
    let (_, second) = two.try_take("orders:42", TTL).await;
    assert!(token(&second) > token(&first));
    let names = two.store.names("orders:").await.unwrap();
    assert_eq!(names, [LockKey::new("orders:42"), LockKey::new("orders:43")]);
    assert!(two.store.names("orders:5").await.unwrap().is_empty());
}

#[tokio::test]
async fn a_hand_over_is_heard_through_the_socket_and_the_socket_goes_with_its_client() {
    let place = Place::new();
    let (one, two) = (place.peer().await, place.peer().await);
    let modes: Vec<_> = place.sockets().iter().map(|socket| socket.mode() & 0o777).collect();
    assert_eq!(modes, [0o600, 0o600]);
    hand_over(&one, &two).await;
    // To another lock of the same client the socket is not needed.
    hand_over(&two, &two).await;
    one.store.close().await;
    assert_eq!(refusal(one.try_take("orders:42", TTL).await.1).code(), Code::Closed);
    assert_eq!(place.sockets().len(), 1);
    drop(two);
    assert_eq!(place.sockets().len(), 0);
}

async fn hand_over<S: LeaseStore>(from: &Peer<S>, to: &Peer<S>) {
    let (owner, first) = from.try_take("heard", TTL).await;
    let mut waiting = to.join("heard", TTL).await;
    assert!(matches!(waiting.answer, Ok(Outcome::Queued { ahead: 0, .. })));
    from.free("heard", owner).await.unwrap();
    // No refresh here: only the notice can tell.
    let Notice::Granted { owner, token: second, ttl, .. } = soon(waiting.hear()).await else {
        panic!()
    };
    assert_eq!(owner, waiting.owner);
    assert!(second > token(&first) && ttl <= Duration::from_secs(5));
    assert!(matches!(to.free("heard", owner).await, Ok(Outcome::Freed)));
}

#[tokio::test]
async fn where_the_path_is_too_long_for_a_socket_the_temporary_directory_serves() {
    let mut place = Place::new();
    let deep = place.directory.path().join("d".repeat(120));
    fs::create_dir(&deep).unwrap();
    place.file = deep.join("locks.db");
    hand_over(&place.peer().await, &place.peer().await).await;
    assert!(
        fs::read_dir(&deep).unwrap().all(|entry| entry.unwrap().file_type().unwrap().is_file())
    );
}

#[tokio::test]
async fn a_waiter_that_was_killed_is_passed_over_once_it_has_been_silent() {
    let place = Place::new();
    let peer = place.peer().await;
    let (owner, _) = peer.try_take("queue", TTL).await;
    let mut dead = Actor::start(&mut actor("wait", &place.file, &["queue", "30000"]));
    assert_eq!(dead.line(), "queued");
    dead.kill();
    let behind = peer.join("queue", TTL).await;
    assert!(matches!(behind.answer, Ok(Outcome::Queued { ahead: 1, .. })));
    let owners = [behind.owner; 3];
    for owner in owners {
        tokio::time::sleep(Duration::from_millis(800)).await;
        let answer = peer.step("queue", owner, Action::Refresh { ttl: TTL }).await;
        assert!(matches!(answer, Ok(Outcome::Queued { .. })));
    }
    peer.free("queue", owner).await.unwrap();
    let (granted, _) = soon(peer.wait("queue", TTL, behind)).await;
    assert!(matches!(peer.free("queue", granted).await, Ok(Outcome::Freed)));
}

#[tokio::test]
async fn the_lock_of_a_killed_holder_is_free_after_its_ttl_and_the_file_is_sound() {
    let place = Place::new();
    let peer = place.peer().await;
    let mut holder = Actor::start(&mut actor("wait", &place.file, &["crash", "700"]));
    let told = holder.line();
    let first: u64 = told.strip_prefix("granted ").unwrap().parse().unwrap();
    let waiting = peer.join("crash", TTL).await;
    assert!(matches!(waiting.answer, Ok(Outcome::Queued { .. })));
    holder.kill();
    let (_, second) = soon(peer.wait("crash", TTL, waiting)).await;
    assert!(second.get() > first);
    place.check_integrity();
}

#[tokio::test]
async fn processes_killed_in_the_middle_of_their_steps_leave_the_file_sound() {
    let place = Place::new();
    let peer = place.peer().await;
    let mut last = Token::default();
    for round in 0..12_u32 {
        let mut pair = [(); 2].map(|()| Actor::start(&mut actor("churn", &place.file, &["churn"])));
        for victim in &mut pair {
            for _ in 0..=round {
                assert_eq!(victim.line(), "true");
            }
        }
        tokio::time::sleep(Duration::from_micros(u64::from(round) * 137)).await;
        pair.into_iter().for_each(Actor::kill);
        place.check_integrity();
        let (owner, token) = soon(peer.acquire("churn", TTL)).await;
        assert!(token > last, "{token} after {last}");
        last = token;
        assert!(matches!(peer.free("churn", owner).await, Ok(Outcome::Freed)));
    }
}

#[tokio::test]
async fn a_writer_that_is_slow_is_waited_for() {
    let place = Place::new();
    let peer = place.peer().await;
    let other = place.plain();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let step = peer.try_take("busy", TTL);
    let release = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        other.execute_batch("COMMIT").unwrap();
    };
    // Both run on this one thread: a step that blocked it would never see the end of the other.
    let ((_, answer), ()) = soon(futures_util::future::join(step, release)).await;
    token(&answer);
}

#[tokio::test]
async fn a_writer_that_stays_makes_the_step_fail_with_nothing_done() {
    let place = Place::new();
    let mut options = Options::default();
    options.timeout = Duration::from_millis(150);
    let peer = Peer::open(&place.file, &options).await.unwrap();
    let other = place.plain();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    // A batch of several transactions waits once, not once for each.
    let owner = fencelock::port::OwnerId::draw(&*peer.runtime);
    let free = |at| Step {
        lock: LockKey::new(format!("busy{at}")),
        owner,
        kind: Kind::Mutex,
        action: Action::Renew { ttl: TTL },
    };
    let before = peer.runtime.now();
    let answers = peer.store.step(&(0..300).map(free).collect::<Vec<_>>()).await;
    // One wait for each would be 45 s.
    assert!(peer.runtime.now().since(before) < Duration::from_secs(20));
    assert_eq!(answers.len(), 300);
    for answer in answers {
        assert_eq!(refusal(answer).code(), Code::Unavailable);
    }
    let error = refusal(peer.try_take("busy", TTL).await.1);
    assert!(error.retryable() && error.message().contains("locked by another writer"), "{error}");
    other.execute_batch("COMMIT").unwrap();
    assert!(peer.store.names("").await.unwrap().is_empty());
    // Looking waits for no writer.
    token(&peer.try_take("busy", TTL).await.1);
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let Ok(Outcome::State(state)) = peer.step("busy", owner, Action::Read).await else { panic!() };
    assert!(!state.holders.is_empty());
}

#[tokio::test]
async fn a_row_that_is_no_lock_is_a_conflict_and_spoils_no_other() {
    let damages = [
        "owner = 'me'",
        "token = 'x'",
        "token = NULL",
        "token = 9007199254740992",
        "expires_at = -1",
        "last_token = 'many'",
        "last_token = -5",
        "kind = 'x'",
        "rest = '[{]'",
        "rest = x'00'",
        "rest = '{\"tombstones\":[1]}'",
        "rest = '{\"open_since\":1.5}'",
        "holder = x'ff'",
    ];
    let place = Place::new();
    let peer = place.peer().await;
    for damage in damages {
        let (owner, answer) = peer.try_take("torn", TTL).await;
        token(&answer);
        let statement = format!("UPDATE fencelock_lock SET {damage} WHERE name = 'torn'");
        assert_eq!(place.plain().execute(&statement, []).unwrap(), 1, "{damage}");
        let renew = |name| Step {
            lock: LockKey::new(name),
            owner,
            kind: Kind::Mutex,
            action: Action::Free { open: false },
        };
        let mut answers = peer.store.step(&[renew("torn"), renew("whole")]).await;
        assert!(matches!(answers.pop(), Some(Ok(Outcome::Gone))), "{damage}");
        let error = refusal(answers.remove(0));
        assert_eq!((error.code(), &*error.fields()["name"]), (Code::Conflict, "torn"), "{damage}");
        assert_eq!(Some(&*error.fields()["column"]), damage.split(' ').next(), "{damage}");
        place.plain().execute("DELETE FROM fencelock_lock", []).unwrap();
    }
}

#[tokio::test]
async fn files_that_cannot_serve_are_refused_with_their_reason() {
    let place = Place::new();
    let directory = place.directory.path();
    let open = async |path: &Path| {
        Peer::open(path, &Options::default()).await.err().expect("it is refused")
    };
    let told = |error: &Error, code, words: &str| {
        assert_eq!(error.code(), code, "{error}");
        assert!(error.message().contains(words), "{error}");
    };
    told(&open(directory).await, Code::Invalid, "is a directory");
    told(&open(Path::new("")).await, Code::Invalid, "memory:");
    told(&open(Path::new("/dev/null")).await, Code::Invalid, "not a regular file");
    told(&open(&directory.join("no/locks.db")).await, Code::Invalid, "does not exist");
    let letter = directory.join("letter");
    fs::write(&letter, "Dear database, I am none. ".repeat(100)).unwrap();
    told(&open(&letter).await, Code::Invalid, "not a SQLite database");
    told(&open(&letter.join("locks.db")).await, Code::Invalid, "does not exist");
    assert!(fs::read_to_string(&letter).unwrap().starts_with("Dear database"));

    drop(place.peer().await);
    let ours: i64 =
        place.plain().pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    for other in [ours - 1, ours + 1] {
        place.plain().pragma_update(None, "user_version", other).unwrap();
        let refused = open(&place.file).await;
        told(&refused, Code::Conflict, "another version");
        assert_eq!(refused.fields()["layout"], other.to_string());
    }
    place.plain().pragma_update(None, "user_version", ours).unwrap();
    place
        .plain()
        .execute_batch("DROP TABLE fencelock_lock; CREATE TABLE fencelock_lock (name)")
        .unwrap();
    told(&open(&place.file).await, Code::Conflict, "not as fencelock made them");
}

/// A whole other database, or an empty one that says whose it is.
#[tokio::test]
async fn a_database_of_another_program_is_refused_and_left_as_it_is() {
    for makes in ["CREATE TABLE item (name TEXT)", "PRAGMA application_id = 7"] {
        let place = Place::new();
        let shop = place.plain();
        shop.execute_batch(makes).unwrap();
        let before = fs::read(&place.file).unwrap();
        let error =
            Peer::open(&place.file, &Options::default()).await.err().expect("it is refused");
        assert_eq!((error.code(), &*error.fields()["argument"]), (Code::Invalid, "path"));
        assert!(error.message().contains("tables of another program"), "{error}");
        assert!(fs::read(&place.file).unwrap() == before, "{makes}");
    }
}

#[tokio::test]
async fn a_file_deleted_or_replaced_under_a_client_is_noticed() {
    let place = Place::new();
    let peer = place.peer().await;
    token(&peer.try_take("moved", TTL).await.1);
    fs::rename(&place.file, place.directory.path().join("old.db")).unwrap();
    assert_eq!(refusal(peer.try_take("moved", TTL).await.1).code(), Code::Conflict);
    fs::write(&place.file, "").unwrap();
    assert_eq!(refusal(peer.try_take("moved", TTL).await.1).code(), Code::Conflict);
}

/// The actor as a user with few rights: the superuser would be stopped by none of them.
fn unprivileged(place: &Place, does: &str, more: &[&str]) -> Command {
    let copy = place.directory.path().join("actor");
    fs::copy(env!("CARGO_BIN_EXE_sqlite_actor"), &copy).unwrap();
    fs::set_permissions(place.directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = Command::new(copy);
    command.arg(does).arg(&place.file).args(more);
    if fs::metadata(&place.file).or_else(|_| fs::metadata(place.directory.path())).unwrap().uid()
        == 0
    {
        command.uid(65_534);
    }
    command
}

fn make_unwritable(directory: &Path) {
    fs::set_permissions(directory, fs::Permissions::from_mode(0o555)).unwrap();
}

#[tokio::test]
async fn missing_rights_are_told_as_such() {
    let place = Place::new();
    let mut nothing_there = unprivileged(&place, "wait", &["rights", "1000"]);
    make_unwritable(place.directory.path());
    assert!(Actor::start(&mut nothing_there).line().starts_with("auth: "));
    fs::set_permissions(place.directory.path(), fs::Permissions::from_mode(0o755)).unwrap();

    drop(place.peer().await);
    fs::set_permissions(&place.file, fs::Permissions::from_mode(0o444)).unwrap();
    let mut only_readable = unprivileged(&place, "wait", &["rights", "1000"]);
    make_unwritable(place.directory.path());
    assert!(Actor::start(&mut only_readable).line().starts_with("auth: "));
    fs::set_permissions(place.directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
}

#[tokio::test]
async fn without_any_socket_a_waiter_lives_by_its_refreshes() {
    let place = Place::new();
    let peer = place.peer().await;
    let (owner, answer) = peer.try_take("deaf", TTL).await;
    for end in ["", "-wal", "-shm"] {
        let file = place.directory.path().join(format!("locks.db{end}"));
        fs::set_permissions(file, fs::Permissions::from_mode(0o666)).unwrap();
    }
    let mut deaf = unprivileged(&place, "wait", &["deaf", "30000"]);
    make_unwritable(place.directory.path());
    let mut deaf = Actor::start(deaf.env("TMPDIR", "/nowhere"));
    assert_eq!(deaf.line(), "queued");
    assert_eq!(place.sockets().len(), 1);
    // Longer than a waiter that cannot be reached may be silent: this one is not.
    tokio::time::sleep(Duration::from_millis(2300)).await;
    peer.free("deaf", owner).await.unwrap();
    let told = deaf.line();
    let second: u64 = told.strip_prefix("granted ").unwrap().parse().unwrap();
    assert!(second > token(&answer).get());
    fs::set_permissions(place.directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_of_four_tasks_never_hold_one_lock_at_once() {
    const ROUNDS: usize = 150;
    let place = Place::new();
    let rounds = ROUNDS.to_string();
    let arguments = ["hammer", "4", &rounds];
    let mut pair = [(); 2].map(|()| Actor::start(&mut actor("hammer", &place.file, &arguments)));
    check_exclusion(&mut pair, 4 * ROUNDS);
    place.check_integrity();
}
