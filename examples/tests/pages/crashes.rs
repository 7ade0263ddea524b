//! The programs that are right also when a process is killed: the account's books add up, and the job is run again.

use std::collections::HashMap;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use fencelock_tests::ended;
use fencelock_tests::servers::RedisServer;

fn balance(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_balance"));
    command.args(words);
    command
}

/// Whether a program ended well, and what it said.
fn run(command: &mut Command) -> (bool, String) {
    let output = ended::output(command);
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&said).into_owned())
}

#[test]
fn balance_is_exact_by_version_and_under_a_lock() {
    for how in ["version", "lock"] {
        let books = format!("{how}: paid out 30, refused 14, left 1 of 31, exact\n");
        let small = ["--how", how, "--balance", "31", "--times", "3"];
        assert_eq!(run(&mut balance(&small)), (true, books));
    }
}

#[test]
fn balance_without_either_pays_out_what_is_not_there() {
    let (well, said) = run(&mut balance(&["--how", "none", "--balance", "31", "--workers", "4"]));
    assert!(!well && said.ends_with(" of 31, not exact\n"), "{said}");
    let paid = said.split("paid out ").nth(1).and_then(|rest| rest.split(',').next());
    assert!(paid.and_then(|paid| paid.parse().ok()) > Some(31), "{said}");
}

/// Killed, and waited for, when dropped.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits until something is there, as long as the process lives that is to bring it.
fn until(process: &mut Killed, mut is_there: impl FnMut() -> bool) {
    while !is_there() {
        assert!(process.0.try_wait().unwrap().is_none(), "it has ended");
        sleep(Duration::from_millis(5));
    }
}

fn payments(book: &Path) -> rusqlite::Result<i64> {
    let book = rusqlite::Connection::open(book)?;
    book.query_row("SELECT count(*) FROM payments", [], |row| row.get(0))
}

/// One that would deduct for hours is killed, wherever it is; the next one deducts from the same account.
fn killed_in_the_middle(how: &str, has_paid: impl Fn(&str, &Path) -> bool) {
    let folder = tempfile::tempdir().unwrap();
    // What a killed holder held is free after a second.
    let url = format!("sqlite:{}?ttl=1s", folder.path().join("locks.db").display());
    let book = folder.path().join("book.db");
    let account = ["--how", how, "--url", &url, "--book", book.to_str().unwrap()];
    let mut endless = balance(&account);
    endless.args(["--workers", "1", "--balance", "900000000", "--times", "100000000"]);
    endless.env("TMPDIR", folder.path());
    let mut endless = Killed(endless.stdout(Stdio::null()).spawn().unwrap());
    until(&mut endless, || has_paid(&url, &book));
    drop(endless);

    let (well, said) = run(balance(&account).args(["--times", "3"]));
    assert!(well && said.ends_with(" of 900000000, exact\n"), "{said}");
}

#[test]
fn balance_by_version_stays_exact_when_a_process_is_killed() {
    killed_in_the_middle("version", |url, _| {
        let client = fencelock::blocking::connect(url).unwrap();
        let account = client.version("fencelock-example:balance");
        let books = account.read::<HashMap<String, i64>>().unwrap();
        books.is_some_and(|books| books.value["paid"] != 0)
    });
}

#[test]
fn balance_under_a_lock_stays_exact_when_a_process_is_killed() {
    // Before the book is made, and while it is being written, there is no answer.
    killed_in_the_middle("lock", |_, book| payments(book).is_ok_and(|count| count > 0));
}

#[test]
fn one_of_ten_nodes_runs_in_each_period_also_after_a_kill() {
    let server = RedisServer::start();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/scheduled-job/scheduled-job.sh");
    let node = env!("CARGO_BIN_EXE_scheduled_job");
    let (well, said) = run(Command::new(script).args([server.url().as_str(), node]));
    assert!(well && said.ends_with(" runs, one in each period\n"), "{said}");
}
