//! The acts: the shop without a lock, the shop with it and two accidents, the counter, and the verdict.

use std::collections::BTreeSet;
use std::fmt::Arguments;
use std::io::{self, Write as _};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::Result;
use crate::shop::Shop;
use crate::workers::Workers;

pub(crate) const WORKERS: usize = 6;
const PIECES: i64 = 200;
const CUSTOMERS: i64 = 300;
/// If no two workers met in the first act, it is played again with longer thinking.
const THINK_MS: [u64; 4] = [1, 4, 16, 64];
/// An accident happens to this worker, after so many sales.
const KILLED: (usize, i64) = (1, 60);
const FROZEN: (usize, i64) = (3, 120);
/// The workers add one to the counter so many times.
const COUNT: i64 = 300;
/// After each so many sales a line says how far they are.
const MILESTONE: i64 = 50;

/// Writes a line with the time since the first one. It fails if nobody reads any more.
fn write(text: Arguments<'_>) -> io::Result<()> {
    static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);
    writeln!(io::stdout(), "{:5.1} s  {text}", BEGAN.elapsed().as_secs_f32())
}

macro_rules! say {
    ($($text:tt)*) => { write(format_args!($($text)*))? };
}
macro_rules! tell {
    ($worker:expr, $($text:tt)*) => {
        say!("   Worker {} {}", $worker + 1, format_args!($($text)*))
    };
}

pub(crate) struct Demo {
    workers: Workers,
    shop: Shop,
    /// A worker gets this order with each customer. So many customers still wait.
    order: String,
    customers: i64,
    /// These workers serve a customer.
    busy: BTreeSet<usize>,
    /// This worker is to stop before the write of its next sale.
    victim: Option<usize>,
    /// They sold or counted so many times, and two held the lock at once so many times.
    done: i64,
    held_twice: u32,
}

impl Demo {
    /// Plays all acts; answers whether everything held.
    pub(crate) fn play(workers: Workers, shop: Shop, store: &str, lease: Duration) -> Result<bool> {
        let (order, busy, victim) = (String::new(), BTreeSet::new(), None);
        let mut demo =
            Self { workers, shop, order, customers: 0, busy, victim, done: 0, held_twice: 0 };
        say!("A shop has {PIECES} pieces, {CUSTOMERS} customers and {WORKERS} worker processes.");
        say!("The workers share a lock on {store}. Its lease is {lease:?}.");
        let unlocked = demo.without_lock()?;
        say!("2. With the lock: a worker sells only while it holds the lock.");
        demo.open("sell 0", CUSTOMERS)?;
        demo.kill_a_holder()?;
        let refused = demo.freeze_a_holder()?;
        while demo.serve()?.is_some() {}
        let (sold, pieces, stale) = demo.shop.sales()?;
        say!("{sold} sold of {PIECES}; {} customers came too late.", CUSTOMERS - sold);
        say!("3. With the lock: the workers add one to a counter, {COUNT} times.");
        demo.open("count 0", COUNT)?;
        while demo.serve()?.is_some() {}
        let (counter, twice, mut held) = (demo.shop.read("counter")?, demo.held_twice, true);
        for (good, fact) in [
            (unlocked > PIECES, format!("without the lock {unlocked} of {PIECES} were sold")),
            (sold == PIECES, format!("with the lock {sold} of {PIECES} were sold")),
            (sold == pieces, "no piece was sold twice".to_owned()),
            (refused, "the late write of the frozen worker was refused".to_owned()),
            (stale == 0, "every sale had a newer token than all before it".to_owned()),
            (twice == 0, "no two workers held the lock at once".to_owned()),
            (counter == COUNT, format!("the counter stands at {counter} of {COUNT}")),
        ] {
            held &= good;
            writeln!(io::stdout(), "{}  {fact}", if good { "ok" } else { "failed" })?;
        }
        Ok(held)
    }

    /// The machine decides which workers meet: the demo arranges nothing. Answers how many pieces were sold.
    fn without_lock(&mut self) -> Result<i64> {
        for ms in THINK_MS {
            say!("1. Without a lock: read the stock, think for {ms} ms, write the stock less one.");
            self.open(&format!("unlocked {ms}"), CUSTOMERS)?;
            while self.serve()?.is_some() {}
            let sold = self.shop.sales()?.0;
            if sold > PIECES {
                say!("{sold} sold of {PIECES}: who read the same stock sold the same piece.");
                return Ok(sold);
            }
            say!("{sold} sold of {PIECES}: no two workers met. Once more.");
        }
        Ok(PIECES)
    }

    fn kill_a_holder(&mut self) -> Result<()> {
        let (victim, token) = self.pause(KILLED)?;
        tell!(victim, "holds the lock with token {token}, and is killed (kill -9).");
        let since = Instant::now();
        self.workers.kill_and_replace(victim)?;
        tell!(victim, "has a new process, for the customer of the dead one.");
        self.next_holder(token, since)
    }

    /// Freezes a worker before its write, until another one has sold. Answers whether the late write was refused.
    fn freeze_a_holder(&mut self) -> Result<bool> {
        let (victim, token) = self.pause(FROZEN)?;
        // By then the renewal behind a hand-over has ended: a process frozen inside a commit keeps SQLite's file locked for everybody.
        std::thread::sleep(Duration::from_millis(200));
        tell!(victim, "holds the lock with token {token}, and is frozen (SIGSTOP) in its sale.");
        let since = Instant::now();
        self.workers.signal(victim, Signal::STOP)?;
        self.next_holder(token, since)?;
        let (next, newer) = self.until("sold", token)?;
        tell!(next, "has sold with token {newer}.");
        tell!(victim, "is thawed (SIGCONT), and writes with its old token {token}.");
        // The order lies in its pipe when it wakes, so writing is the first thing it does.
        self.workers.order(victim, "write 0");
        self.workers.signal(victim, Signal::CONT)?;
        let refused = loop {
            let (worker, word, _) = self.serve()?.ok_or("the frozen worker did not write")?;
            if worker == victim && word != "held-twice" {
                break word == "refused";
            }
        };
        tell!(
            victim,
            "{}",
            if refused { "is refused: the shop saw a newer one." } else { "wrote!" }
        );
        Ok(refused)
    }

    fn next_holder(&mut self, token: i64, since: Instant) -> Result<()> {
        let (next, newer) = self.until("granted", token)?;
        tell!(next, "has the lock {:.1?} later, with token {newer}.", since.elapsed());
        Ok(())
    }

    /// Fills the shop, and lets customers in, each with this order.
    fn open(&mut self, order: &str, customers: i64) -> Result<()> {
        (self.order, self.customers, self.done) = (order.to_owned(), customers, 0);
        Ok(self.shop.restock(PIECES)?)
    }

    /// Sells until this worker stands before its write, after so many sales. Answers it and its token.
    fn pause(&mut self, (victim, after): (usize, i64)) -> Result<(usize, i64)> {
        while self.done < after {
            self.until("sold", 0)?;
        }
        self.victim = Some(victim);
        self.until("paused", 0)
    }

    /// Sells until somebody reports this, with a newer token. Answers who, and the token.
    fn until(&mut self, awaited: &str, older: i64) -> Result<(usize, i64)> {
        loop {
            let (worker, word, token) = self.serve()?.ok_or("the sale was over too early")?;
            if word == awaited && token > older {
                return Ok((worker, token));
            }
        }
    }

    /// Gives customers to idle workers, and takes the next report; `None` if all customers are served.
    fn serve(&mut self) -> Result<Option<(usize, String, i64)>> {
        for worker in 0..WORKERS {
            if self.customers > 0 && self.busy.insert(worker) {
                self.customers -= 1;
                let pauses = self.victim == Some(worker);
                self.workers.order(worker, if pauses { "pause 0" } else { &self.order });
            }
        }
        if self.busy.is_empty() {
            return Ok(None);
        }
        let (worker, word, token) = self.workers.next()?;
        if word == "held-twice" {
            self.held_twice += 1;
            tell!(worker, "holds the lock with token {token}, and so does another one!");
        } else if word == "paused" {
            self.victim = None;
        } else if word != "granted" {
            self.busy.remove(&worker);
        }
        // A worker that starts anew or was refused has a customer still to be served.
        self.customers += i64::from(word == "ready" || word == "refused");
        if word == "sold" || word == "counted" {
            self.done += 1;
            if token > 0 && self.done % MILESTONE == 0 {
                tell!(worker, "has {word} with token {token}; {} times in all.", self.done);
            }
        }
        Ok(Some((worker, word, token)))
    }
}
