//! The programs that need a Redis server show what they are there to show.

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use fencelock_tests::ended;
use fencelock_tests::etcd::EtcdServer;
use fencelock_tests::servers::RedisServer;

fn run(command: &mut Command) -> String {
    let output = ended::output(command);
    let words = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{words}{}", String::from_utf8_lossy(&output.stderr));
    words
}

/// How many a way of selling sold too many, of a line such as `lock sold 50, oversold 0`.
fn oversold(words: &str, way: &str) -> u32 {
    let line = words.lines().find(|line| line.starts_with(way));
    let line = line.unwrap_or_else(|| panic!("no line of `{way}` in {words}"));
    let rest = line.split("oversold").nth(1).unwrap_or_default();
    let number: String =
        rest.chars().skip_while(|c| *c == ' ').take_while(char::is_ascii_digit).collect();
    number.parse().unwrap_or_else(|_| panic!("no number in {line}"))
}

#[test]
fn gate_refuses_the_holder_that_is_late() {
    let server = RedisServer::start();
    let words = run(Command::new(env!("CARGO_BIN_EXE_gate")).arg(server.url().as_str()));
    assert!(words.starts_with("9 left\nlost: the write was refused"), "{words}");
}

#[test]
fn inventory_oversells_without_a_lock_only() {
    let server = RedisServer::start();
    sells_what_there_is(&[server.url().as_str()]);
}

/// The store of the locks need not be the store of the data.
#[test]
fn inventory_with_its_locks_on_etcd_does_the_same() {
    let (shop, locks) = (RedisServer::start(), EtcdServer::start());
    sells_what_there_is(&[shop.url().as_str(), locks.url("inventory").as_str()]);
}

fn sells_what_there_is(urls: &[&str]) {
    let words = run(Command::new(env!("CARGO_BIN_EXE_inventory")).args(urls));
    assert!(oversold(&words, "no lock") > 0, "{words}");
    for way in ["lock", "script"] {
        assert!(words.contains(&format!("{way:8} sold  50, oversold   0")), "{words}");
    }
}

/// Where programs are found, `fencelock` above all: the programs of the workspace lie beside each other.
fn path() -> OsString {
    let here = Path::new(env!("CARGO_BIN_EXE_inventory")).parent().unwrap();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = [here.to_owned()].into_iter().chain(std::env::split_paths(&path));
    std::env::join_paths(path).unwrap()
}

#[test]
fn inventory_in_the_shell_does_the_same() {
    let (shop, locks) = (RedisServer::start(), EtcdServer::start());
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/inventory/inventory.sh");
    for store in [shop.url(), locks.url("inventory")] {
        shell_sells_what_there_is(Command::new(script).args([shop.url().as_str(), store.as_str()]));
    }
}

fn shell_sells_what_there_is(script: &mut Command) {
    let words = run(script.env("PATH", path()));
    assert!(oversold(&words, "no_lock") > 0, "{words}");
    assert!(words.contains("\nlock sold 10, oversold 0\n"), "{words}");
    assert!(words.contains("\nscript sold 10, oversold 0\n"), "{words}");
}

/// A counting server; ended when dropped.
struct Counter {
    process: Child,
    address: String,
}

impl Counter {
    fn start(store: &RedisServer) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_counter"));
        let command = command.args([store.url().as_str(), "0"]).stdout(Stdio::piped());
        let mut process = command.spawn().expect("it starts");
        let mut address = String::new();
        let output = process.stdout.take().expect("its output is a pipe");
        BufReader::new(output).read_line(&mut address).expect("it tells where it listens");
        Self { process, address: address.trim().to_owned() }
    }

    /// A thousand visitors, a hundred at a time.
    fn visited(&self, page: &str) {
        let page = format!("{}{page}", self.address);
        let words = run(Command::new("ab").args(["-q", "-n", "1000", "-c", "100", &page]));
        assert!(words.contains("Complete requests:      1000\n"), "{words}");
        assert!(words.contains("Failed requests:        0\n"), "{words}");
        assert!(!words.contains("Non-2xx responses"), "{words}");
    }

    fn get(&self, page: &str) -> u64 {
        use std::io::{Read, Write};
        let host = self.address.trim_start_matches("http://").trim_end_matches('/');
        let mut stream = std::net::TcpStream::connect(host).expect("it listens");
        write!(stream, "GET /{page} HTTP/1.0\r\n\r\n").expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        let number = answer.trim().rsplit('\n').next().and_then(|line| line.trim().parse().ok());
        number.unwrap_or_else(|| panic!("no number in {answer}"))
    }
}

impl Drop for Counter {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn counter_counts_a_thousand_visitors_exactly() {
    let server = RedisServer::start();
    let counter = Counter::start(&server);
    counter.visited("");
    assert_eq!(counter.get("value"), 1000);
    assert_eq!(counter.get("reset"), 0);
    counter.visited("unlocked");
    assert!(counter.get("value") < 1000, "without a lock visitors are lost");
}

#[test]
fn counter_in_the_shell_counts_exactly() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/counter/counter.sh");
    let count = if fencelock_tests::in_full() { "1000" } else { "40" };
    let folder = tempfile::tempdir().unwrap();
    let locks = format!("sqlite:{}", folder.path().join("locks.db").display());
    let words = run(Command::new(script).args([&*locks, count]).env("PATH", path()));
    assert!(words.ends_with(&format!("\nlock counted {count} of {count}\n")), "{words}");
    assert!(!words.starts_with(&format!("no_lock counted {count} ")), "{words}");
}

#[test]
fn two_counters_of_one_number_count_exactly() {
    let server = RedisServer::start();
    let counters = [Counter::start(&server), Counter::start(&server)];
    std::thread::scope(|scope| {
        for counter in &counters {
            scope.spawn(|| counter.visited(""));
        }
    });
    assert_eq!(counters[0].get("value"), 2000);
}
