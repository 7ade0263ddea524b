//! An account that eight workers deduct from at once: by a version, under a lock, and with neither.
//!
//! `cargo run -p fencelock-examples --bin balance -- --how version` (or `lock`, or `none`)
//!
//! `--url` is the store of the version and of the lock, `--book` the SQLite file that the other two ways keep the account in.
//! By default both lie in a folder of their own. With both given the account stays: several such programs, in any of the
//! languages, deduct from it at once, and one that is killed leaves books that add up.
//!
//! Deducting is looking at the balance, taking a moment (a check, a payment), and writing down what is left. Whoever writes
//! in that moment has its deduction undone. A version notices that and asks again. A lock keeps the others out, and its token
//! refuses a worker that was stopped for so long that its lease has ended.

mod account;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;

use account::{Account, Books};

/// One deduction. It does not divide the balance, so in the end there is something left that covers no deduction.
const AMOUNT: i64 = 3;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// The word behind `--name`.
fn word(name: &str, default: &str) -> String {
    let mut words = std::env::args().skip_while(|word| word != name);
    words.nth(1).unwrap_or_else(|| default.into())
}

/// The amount that one worker was paid, and how often it was refused.
#[derive(Default)]
struct Tally {
    paid: i64,
    refused: i64,
}

fn work(mut account: Account, times: i64) -> Result<Tally> {
    let mut tally = Tally::default();
    for _ in 0..times {
        if account.deduct(AMOUNT)? {
            tally.paid += AMOUNT;
        } else {
            tally.refused += 1;
        }
    }
    Ok(tally)
}

/// All the work, and whether the books add up after it.
fn deduct(folder: &Path) -> Result<bool> {
    let how = word("--how", "version");
    let url = word("--url", &format!("sqlite:{}", folder.join("locks.db").display()));
    let book = PathBuf::from(word("--book", &folder.join("book.db").to_string_lossy()));
    let opened = word("--balance", "100").parse()?;
    let times = word("--times", "10").parse()?;

    let mut workers = Vec::new();
    for _ in 0..word("--workers", "8").parse()? {
        // A program of its own in real life, with its own connections.
        let account = Account::open(&how, &url, &book, opened)?;
        workers.push(thread::spawn(move || work(account, times)));
    }
    let mut all = Tally::default();
    for worker in workers {
        let tally = worker.join().expect("no worker panics")?;
        all.paid += tally.paid;
        all.refused += tally.refused;
    }

    let Books { opened, balance, paid } = Account::open(&how, &url, &book, opened)?.books()?;
    // Others may have deducted too: the books have what they were paid besides.
    let exact = balance >= 0 && paid + balance == opened && all.paid <= paid;
    let (refused, verdict) = (all.refused, if exact { "exact" } else { "not exact" });
    println!("{how}: paid out {paid}, refused {refused}, left {balance} of {opened}, {verdict}");
    Ok(exact)
}

fn main() -> Result<ExitCode> {
    let folder = std::env::temp_dir().join(format!("fencelock-balance-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let exact = deduct(&folder);
    std::fs::remove_dir_all(&folder)?;
    Ok(if exact? { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
