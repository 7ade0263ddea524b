//! `fencelock demo`: a shop that oversells without a lock, and does not with one.
//!
//! A conductor (this process) starts twelve workers (this program again) and plays three acts with them: the race, the
//! sale under the lock with its misfortunes, and a counter. Nothing is acted: stock and orders are rows of a real SQLite
//! database, and the verdict counts those.

mod chance;
mod conductor;
mod count;
mod crew;
mod draw;
mod event;
mod folder;
mod lease;
mod misfortune;
mod order;
mod output;
mod proxy;
mod race;
mod sale;
mod scene;
mod shop;
mod stall;
mod terminal;
mod verdict;
mod waits;
mod words;
mod worker;

use std::process::ExitCode;
use std::time::{Instant, SystemTime};

use fencelock::Code;

use self::conductor::{Conductor, End};
use self::crew::Crew;
use self::event::Event;
use self::folder::Folder;
use self::lease::Lease;
use self::order::Setup;
use self::output::Output;
use self::shop::Shop;
use self::stall::Stall;
use self::verdict::Verdict;
use crate::store::sqlite_url;
use crate::{exit, secret};

const PIECES: u32 = 1_000;
const BUYERS: u32 = 1_400;
const WORKERS: usize = 12;

/// Show what a lock is for: a shop oversells without it, and does not with it.
#[derive(clap::Args)]
#[allow(clippy::struct_excessive_bools)] // Each is a flag of the command line.
pub(crate) struct Demo {
    /// The store of the locks, such as `redis://127.0.0.1`. Default: a SQLite file that the demo deletes at its end. The demo
    /// stalls the store only if that disturbs no other program: a file, or the connection to one `redis://`, `etcd://`,
    /// `zookeeper://`, `postgres://` or `mysql://` server.
    #[arg(long)]
    url: Option<String>,
    /// Print one JSON object per event, the verdict last.
    #[arg(long, conflicts_with = "plain")]
    json: bool,
    /// Print plain lines. This is the default without a terminal.
    #[arg(long)]
    plain: bool,
    /// Repeat a show: the order of the customers, how long they think, and which worker is struck.
    #[arg(long)]
    seed: Option<u64>,
    /// Break the lock: the first worker takes another lock than the rest. The verdict reports it, and the exit code is 1.
    #[arg(long)]
    sabotage: bool,
    /// Be one of the workers.
    #[arg(long, hide = true)]
    worker: bool,
}

impl Demo {
    pub(crate) fn execute(self) -> ExitCode {
        if self.worker {
            return worker::work();
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let played = runtime.map_err(End::from).and_then(|runtime| runtime.block_on(self.play()));
        match played {
            Ok(true) => ExitCode::SUCCESS,
            Ok(false) => ExitCode::FAILURE,
            Err(End::Quit) => ExitCode::from(130),
            Err(End::Failed { exit, message }) => {
                exit::say(message);
                ExitCode::from(exit)
            }
        }
    }

    /// Plays the show; answers whether everything held.
    async fn play(self) -> Result<bool, End> {
        let folder = Folder::make()?;
        // FENCELOCK_URL is not read: what is used every day should not see a show by mistake.
        let url = match self.url.or_else(|| std::env::var(secret::VARIABLE).ok()) {
            Some(url) => url,
            None => sqlite_url(&folder.path().join("locks.db").to_string_lossy()),
        };
        let (store, lease) = reach(&url).await?;
        let seed = self.seed.unwrap_or_else(any_seed);
        let path = folder.path().join("shop.db");
        let shop = Shop::build(&path)?;
        let (stall, url) = Stall::of(&url)?;
        // A name that no other demo on the same store has.
        let lock = format!("fencelock-demo:{}:{}", std::process::id(), any_seed());
        let setup = Setup { url, shop: path, lock, ttl_ms: lease.ttl_ms };
        let crew = Crew::start(setup, WORKERS, self.sabotage).await?;
        let output = if self.json {
            Output::Json { began: Instant::now() }
        } else if self.plain {
            Output::Plain
        } else {
            Output::best()
        };
        let verdict = Verdict { seed, lease, pieces: PIECES, ..Verdict::default() };
        let mut conductor = Conductor::new(crew, shop, stall, output, verdict)?;
        let end = acts(&mut conductor, store).await;
        conductor.finish(end).await
    }
}

async fn acts(show: &mut Conductor, store: String) -> Result<(), End> {
    show.muster().await?;
    show.show(&Event::Opened {
        pieces: PIECES,
        buyers: BUYERS,
        workers: WORKERS,
        seed: show.verdict.seed,
        ttl_ms: show.verdict.lease.ttl_ms,
        store: store.clone(),
    })?;
    race::race(show, BUYERS).await?;
    sale::sell(show, BUYERS, store).await?;
    count::count(show).await
}

/// Reaches the store once from here, where its error is told best. Answers its name and how long holds last there.
async fn reach(url: &str) -> Result<(String, Lease), End> {
    if url.starts_with("memory:") {
        return Err(End::of(
            Code::Invalid,
            "the demo has twelve worker processes, and `memory:` works inside one process only; use sqlite:, redis://, etcd://, zookeeper://, postgres:// or mysql://",
        ));
    }
    let client = fencelock::connect(url).await?;
    let store = client.guarantees().store;
    // Some stores are not asked before somebody wants something of them.
    let looked = client.lock("fencelock-demo").inspect().await;
    client.close().await;
    looked?;
    let name = match store {
        "sqlite" => "SQLite",
        "redis" => "Redis",
        "zookeeper" => "ZooKeeper",
        "postgres" => "PostgreSQL",
        "mysql" => "MySQL",
        other => other,
    };
    Ok((name.to_owned(), Lease::on(store)))
}

fn any_seed() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.map_or(0, |now| now.as_micros() as u64 % 1_000_000)
}
