//! One worker: a process of its own that takes orders from its standard input and reports on its standard output.

use std::io::{BufRead, Write};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use fencelock::{Client, Code, Guard, Lock};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::order::{Order, Report, Setup, Way};
use super::shop::{Fenced, Number, Shop};

/// How often a holder that is kept from writing tells how long its lease still is.
const PULSE: Duration = Duration::from_millis(50);

/// Works until the standard input ends.
pub(super) fn work() -> ExitCode {
    die_with_the_conductor();
    std::panic::set_hook(Box::new(|panic| {
        report(&Report::Failed { code: Code::Internal, message: panic.to_string() });
    }));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    match runtime.map_err(Fault::from).and_then(|runtime| runtime.block_on(serve())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Fault { code, message }) => {
            report(&Report::Failed { code, message });
            ExitCode::FAILURE
        }
    }
}

/// A worker that is stopped would not see its input end; Linux kills it.
fn die_with_the_conductor() {
    #[cfg(target_os = "linux")]
    {
        let kill = Some(rustix::process::Signal::KILL);
        // An older kernel without it loses only this one convenience.
        let _ = rustix::process::set_parent_process_death_signal(kill);
    }
}

/// Lines in, until the conductor closes the pipe or ends.
fn orders() -> (mpsc::UnboundedReceiver<String>, Arc<tokio::sync::Notify>) {
    let (sender, lines) = mpsc::unbounded_channel();
    let ended = Arc::new(tokio::sync::Notify::new());
    let end = ended.clone();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            if line.is_err() || line.is_ok_and(|line| sender.send(line).is_err()) {
                break;
            }
        }
        end.notify_one();
    });
    (lines, ended)
}

async fn serve() -> Result<(), Fault> {
    let (mut lines, ended) = orders();
    let Some(first) = lines.recv().await else { return Ok(()) };
    let setup: Setup = serde_json::from_str(&first)?;
    let builder = Client::builder().app("fencelock demo").option("ttl", setup.ttl_ms);
    let client = builder.connect(&setup.url).await?;
    let lock = client.lock(&setup.lock);
    let shop = Arc::new(Mutex::new(Shop::enter(&setup.shop)?));
    let mut worker = Worker { lock, shop, lines };
    report(&Report::Ready);
    let end = tokio::select! {
        biased;
        () = ended.notified() => Ok(()),
        end = worker.carry_out() => end,
    };
    // An acquire that was given up above has left the queue when this returns.
    client.close().await;
    end
}

struct Worker {
    lock: Lock,
    /// Its calls take some 10 µs, so they run where they stand.
    shop: Arc<Mutex<Shop>>,
    lines: mpsc::UnboundedReceiver<String>,
}

impl Worker {
    async fn carry_out(&mut self) -> Result<(), Fault> {
        while let Some(order) = self.order().await? {
            match order {
                Order::Sell { buyer, browse_us, think_us, way: Way::Unlocked } => {
                    self.sell_unlocked(buyer, browse_us, think_us)?;
                    report(&Report::Done);
                }
                Order::Sell { buyer, think_us, way, .. } => {
                    report(&Report::Waiting { buyer });
                    let asked = Instant::now();
                    let guard = self.lock.acquire().await?;
                    report(&Report::Granted {
                        buyer,
                        token: guard.token().get(),
                        waited_us: asked.elapsed().as_micros() as u64,
                        left_ms: left(&guard),
                    });
                    report(&self.sell(&guard, buyer, think_us, way == Way::Poised).await?);
                    // A lock lost meanwhile was the sale's to tell, and the shop's condition covered it.
                    let _ = guard.release().await;
                    report(&Report::Done);
                }
                Order::Count { tasks, times } => {
                    let Refusals { all, while_held } = self.count(tasks, times).await?;
                    report(&Report::Counted { refused: all, refused_while_held: while_held });
                }
                Order::Proceed => return Err(Fault::order("nothing was waiting to proceed")),
            }
        }
        Ok(())
    }

    async fn order(&mut self) -> Result<Option<Order>, Fault> {
        let line = self.lines.recv().await;
        Ok(line.map(|line| serde_json::from_str(&line)).transpose()?)
    }

    /// Read, think, write: each is sound by itself, but nothing ties them together.
    fn sell_unlocked(&self, buyer: u32, browse_us: u64, think_us: u64) -> Result<(), Fault> {
        std::thread::sleep(Duration::from_micros(browse_us));
        let seen = enter(&self.shop).read(Number::Stock)?;
        if seen <= 0 {
            report(&Report::SoldOut { buyer });
            return Ok(());
        }
        std::thread::sleep(Duration::from_micros(think_us));
        enter(&self.shop).sell(buyer, seen)?;
        report(&Report::Sold { buyer, piece: seen, token: None });
        Ok(())
    }

    /// Read, think, write under the lock, and with its token. Answers how it ended.
    async fn sell(
        &mut self,
        guard: &Guard,
        buyer: u32,
        think_us: u64,
        poised: bool,
    ) -> Result<Report, Fault> {
        let token = guard.token().get();
        let refused = |newest| Report::Refused { buyer, token, newest, knew: !guard.is_held() };
        let seen = match enter(&self.shop).read_fenced(Number::Stock, token)? {
            Fenced::Passed(seen) => seen,
            Fenced::Refused { newest } => return Ok(refused(newest)),
        };
        if seen <= 0 {
            return Ok(Report::SoldOut { buyer });
        }
        tokio::time::sleep(Duration::from_micros(think_us)).await;
        if guard.check().is_err() {
            return Ok(Report::GaveUp { buyer, token });
        }
        // From here to the write there is no further look: what happens in between is what the token is for.
        if poised {
            report(&Report::Poised { buyer, token, left_ms: left(guard) });
            self.wait_to_proceed(guard).await?;
        }
        report(&Report::Writing);
        Ok(match enter(&self.shop).sell_fenced(buyer, seen, token)? {
            Fenced::Passed(()) => Report::Sold { buyer, piece: seen, token: Some(token) },
            Fenced::Refused { newest } => refused(newest),
        })
    }

    async fn wait_to_proceed(&mut self, guard: &Guard) -> Result<(), Fault> {
        loop {
            tokio::select! {
                biased;
                order = self.order() => match order? {
                    Some(Order::Proceed) => return Ok(()),
                    _ => return Err(Fault::order("expected to proceed")),
                },
                () = tokio::time::sleep(PULSE) => report(&Report::Holding { left_ms: left(guard) }),
            }
        }
    }

    async fn count(&self, tasks: u32, times: u32) -> Result<Refusals, Fault> {
        let mut running = JoinSet::new();
        for _ in 0..tasks {
            running.spawn(count(self.lock.clone(), self.shop.clone(), times));
        }
        let mut refusals = Refusals::default();
        while let Some(task) = running.join_next().await {
            let own = task.map_err(|error| Fault::order(&error.to_string()))??;
            refusals.all += own.all;
            refusals.while_held += own.while_held;
        }
        Ok(refusals)
    }
}

/// What the shop turned away.
#[derive(Default)]
struct Refusals {
    all: u32,
    /// Though the guard, asked afterwards, said that the lock is held: somebody else held it, too.
    while_held: u32,
}

/// Adds one, `times` times; what is refused is done again.
async fn count(lock: Lock, shop: Arc<Mutex<Shop>>, times: u32) -> Result<Refusals, Fault> {
    let (mut counted, mut refusals) = (0, Refusals::default());
    while counted < times {
        let guard = lock.acquire().await?;
        let token = guard.token().get();
        let read = enter(&shop).read_fenced(Number::Counter, token)?;
        let written = match read {
            Fenced::Passed(value) => {
                // Everybody else may run now, between the read and the write.
                tokio::task::yield_now().await;
                enter(&shop).write_fenced(Number::Counter, value + 1, token)?
            }
            Fenced::Refused { newest } => Fenced::Refused { newest },
        };
        match written {
            Fenced::Passed(()) => counted += 1,
            Fenced::Refused { .. } => {
                refusals.all += 1;
                refusals.while_held += u32::from(guard.is_held());
            }
        }
        let _ = guard.release().await;
    }
    Ok(refusals)
}

fn enter(shop: &Mutex<Shop>) -> std::sync::MutexGuard<'_, Shop> {
    shop.lock().unwrap_or_else(PoisonError::into_inner)
}

fn left(guard: &Guard) -> u64 {
    guard.remaining().as_millis() as u64
}

/// A conductor that is gone is noticed by the end of the input, so a failed write may be passed over.
fn report(report: &Report) {
    let mut line = serde_json::to_string(report).unwrap_or_default();
    line.push('\n');
    let _ = std::io::stdout().lock().write_all(line.as_bytes());
}

/// Why a worker cannot go on.
struct Fault {
    code: Code,
    message: String,
}

impl Fault {
    fn order(message: &str) -> Self {
        Self { code: Code::Internal, message: message.to_owned() }
    }
}

impl From<fencelock::Error> for Fault {
    fn from(error: fencelock::Error) -> Self {
        Self { code: error.code(), message: error.to_string() }
    }
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self { code: Code::Internal, message: format!("the shop's database: {error}") }
    }
}

impl From<serde_json::Error> for Fault {
    fn from(error: serde_json::Error) -> Self {
        Self::order(&format!("an order that cannot be read: {error}"))
    }
}

impl From<std::io::Error> for Fault {
    fn from(error: std::io::Error) -> Self {
        Self::order(&error.to_string())
    }
}
