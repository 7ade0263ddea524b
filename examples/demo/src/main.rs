//! `cargo demo`: a shop that oversells without a lock, and sells exactly what it has with one.
//!
//! This process gives orders to workers (this program again). The verdict counts the rows of a SQLite database.

mod acts;
mod shop;
mod worker;
mod workers;

use std::error::Error;
use std::fs::{DirBuilder, remove_dir_all};
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use acts::{Demo, WORKERS};
use shop::Shop;
use workers::Workers;

/// The demo gives up after so long without progress. A slow machine needs a small part of it.
const PATIENCE: Duration = Duration::from_secs(60);

const HELP: &str = "\
cargo demo: a shop oversells without a lock, and sells exactly what it has with one.
Some workers sell under the lock while one that holds it is killed and another one is frozen.
The last lines say what held; the exit code is 0 if all of it did, else 1.

  cargo demo                  the lock is in a SQLite file
  cargo demo -- --url URL     the lock is on another store; the shop stays in SQLite
  cargo demo --features redis -- --url redis://127.0.0.1
The features are redis, etcd, zookeeper, postgres, mysql and tls.";

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    let text = |argument: std::ffi::OsString| argument.to_string_lossy().into_owned();
    let arguments: Vec<String> = std::env::args_os().skip(1).map(text).collect();
    let words: Vec<&str> =
        arguments.iter().flat_map(|word| word.split_inclusive("--url=")).collect();
    let url = match words[..] {
        ["worker", ..] => return worker::work(&arguments[1..]),
        ["--help" | "-h"] => {
            println!("{HELP}");
            return ExitCode::SUCCESS;
        }
        [] => None,
        ["--url" | "--url=", url] => Some(url),
        ["--url" | "--url=", _, word, ..] | [word, ..] => {
            eprintln!(
                "cargo demo: unknown or incomplete option `{word}`; see `cargo demo -- --help`"
            );
            return ExitCode::from(2);
        }
    };
    match prepare(url) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("cargo demo: {error}");
            let by_signal = |error: &io::Error| error.kind() == ErrorKind::Interrupted;
            ExitCode::from(if error.downcast_ref().is_some_and(by_signal) { 130 } else { 1 })
        }
    }
}

/// Plays the demo in a folder that only this user may enter; answers whether everything held.
fn prepare(url: Option<&str>) -> Result<bool> {
    let store = url.map_or(Ok("sqlite"), store)?;
    let nanos = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.subsec_nanos();
    // No other demo has this name, so it names the lock too.
    let name = format!("fencelock-demo-{}-{nanos}", std::process::id());
    let folder = std::path::absolute(std::env::temp_dir().join(&name))?;
    DirBuilder::new().mode(0o700).create(&folder)?;
    let played = play(&folder, url, name, store);
    let _ = remove_dir_all(&folder);
    played
}

fn play(folder: &Path, url: Option<&str>, lock: String, store: &str) -> Result<bool> {
    if url.is_none() {
        // Here the file's URL is short, and needs no encoding.
        std::env::set_current_dir(folder)?;
    }
    // An ensemble of ZooKeeper gives no shorter session, unless it is configured.
    let lease = Duration::from_secs(if store == "zookeeper" { 4 } else { 2 });
    let file = folder.join("shop.db");
    let shop = Shop::create(&file)?;
    let arguments = [lock, lease.as_millis().to_string(), file.to_string_lossy().into_owned()];
    let workers = Workers::start(url.unwrap_or("sqlite:locks.db"), arguments, WORKERS)?;
    Demo::play(workers, shop, store, lease)
}

/// Reaches the store once before the workers do, so that its error is told once. Answers its name.
fn store(url: &str) -> Result<&'static str> {
    let client = fencelock::blocking::connect(url)?;
    let store = client.as_async().guarantees().store;
    if store == "memory" {
        return Err("`memory:` works inside one process, and the demo has several".into());
    }
    // Some stores are not asked before somebody wants something of them.
    client.lock("fencelock-demo").inspect()?;
    client.close()?;
    Ok(store)
}
