//! A worker: a process that takes orders from its standard input and reports on its standard output, a line each.
//!
//! An order and a report are a word and a number. The number of a report is the token, 0 without a lock.

use std::fmt::Display;
use std::io::Write as _;
use std::path::Path;
use std::process::{ExitCode, exit};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use fencelock::blocking::{Client, Lock};

use crate::Result;
use crate::shop::Shop;

/// This variable hands on the URL, which may hold a password: everybody can see arguments.
pub(crate) const URL: &str = "FENCELOCK_DEMO_URL";
const THINK: Duration = Duration::from_micros(500);

/// Works until the standard input ends. The arguments are the lock, its lease in milliseconds, and the shop's file.
pub(crate) fn work(arguments: &[String]) -> ExitCode {
    // A frozen process does not see that its input ends; Linux kills it.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
    let (sender, orders) = channel();
    thread::spawn(move || {
        let mut lines = std::io::stdin().lines().map_while(std::io::Result::ok);
        let _ = lines.try_for_each(|line| sender.send(line));
        exit(0);
    });
    let Err(error) = serve(arguments, &orders) else { return ExitCode::SUCCESS };
    report("failed:", error);
    ExitCode::FAILURE
}

fn serve(arguments: &[String], orders: &Receiver<String>) -> Result<()> {
    let [lock, ttl_ms, shop] = arguments else { return Err("a worker has three arguments".into()) };
    let builder = fencelock::Client::builder().option("ttl", ttl_ms.parse::<u64>()?);
    let client = Client::build(builder, &std::env::var(URL)?)?;
    let (lock, shop) = (client.lock(lock), Shop::open(Path::new(shop))?);
    report("ready", 0);
    while let Ok(order) = orders.recv() {
        let (word, number) = order.split_once(' ').ok_or("an order is a word and a number")?;
        match word {
            "unlocked" => unlocked(&shop, Duration::from_millis(number.parse()?))?,
            "sell" => locked(&lock, &shop, "stock", None)?,
            "pause" => locked(&lock, &shop, "stock", Some(orders))?,
            "count" => locked(&lock, &shop, "counter", None)?,
            _ => return Err(format!("there is no order `{word}`").into()),
        }
    }
    Ok(())
}

/// Reads the stock, thinks and sells. Each step is right by itself, but nothing keeps them together.
fn unlocked(shop: &Shop, think: Duration) -> Result<()> {
    let seen = shop.read("stock")?;
    if seen > 0 {
        thread::sleep(think);
        shop.sell(seen, None)?;
    }
    report(if seen > 0 { "sold" } else { "empty" }, 0);
    Ok(())
}

/// Does the same under the lock and with its token, or adds one to the counter. With `pause` it waits for a line before it writes.
fn locked(lock: &Lock, shop: &Shop, name: &str, pause: Option<&Receiver<String>>) -> Result<()> {
    let guard = lock.acquire()?;
    let token = guard.token().get().cast_signed();
    report("granted", token);
    let mut word = "refused";
    if let Some(seen) = shop.read_fenced(name, token)? {
        thread::sleep(THINK);
        // Nothing is checked from here to the write: what happens in between is what the token is for.
        if let Some(orders) = pause.filter(|_| guard.is_held()) {
            report("paused", token);
            orders.recv()?;
        }
        word = match name {
            "stock" if seen <= 0 => "empty",
            "stock" if shop.sell(seen, Some(token))? => "sold",
            "counter" if shop.write_fenced(name, seen + 1, token)? => "counted",
            _ => word,
        };
    }
    // The shop has seen a newer token. If this guard, asked after that, says "held", two hold the lock.
    if word == "refused" && guard.is_held() {
        report("held-twice", token);
    }
    // A lock that was lost meanwhile was the shop's to tell.
    let _ = guard.release();
    report(word, token);
    Ok(())
}

fn report(word: &str, rest: impl Display) {
    if writeln!(std::io::stdout(), "{word} {rest}").is_err() {
        exit(0);
    }
}
