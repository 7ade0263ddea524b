//! The project's own commands. `cargo test-all`: everything, ending in one table.

mod build;
mod check;
mod conclusion;
mod descendants;
mod features;
mod need;
mod others;
mod part;
mod quiet;
mod run;
mod schedule;
mod script;
#[macro_use]
mod steps;
mod stores;
mod table;
mod tail;
mod target;
mod versions;

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Instant;

use build::Built;
use conclusion::{Conclusion, seconds};
use need::{Machine, Need};
use others::Others;
use part::{Part, Site, Targets, Verdict};
use quiet::{Watch, processors};
use run::Runner;
use schedule::News;
use table::PARTS;

const USAGE: &str = "\
usage: cargo test-all [--strict] [--full] [--no-install] [--only NAME]... [--list]

  --strict      a part that is skipped counts as failed
  --full        faults and figures in full instead of a tenth, one part after the other
  --no-install  installs nothing with apt-get and rustup: what is missing is named, and its parts are skipped
  --only NAME   only the parts of this name or tag; may be repeated. `quick`: what finds most in four minutes
  --list        the parts, what they show, and their tags";

/// What a run does to the machine, said before it does.
const INSTALLS: &str = "\
`cargo test-all` installs what its parts need. Into the target folder and the caches of their tools: npm, PyPI, Maven and Go packages, servers. As root where
there is apt-get, into the system: redis-server, etcd-server, etcd-client, zookeeper, postgresql, pgbouncer, mariadb-server, apache2-utils, chromium and language toolchains, if they are missing. A target
for wasm joins the Rust toolchain, or a compiler for it the system. `--no-install` leaves the system and the toolchain alone.
";

/// Set while the parts run, to this process: a `cargo test-all` inside (the README's) must not start over.
const INSIDE: &str = "FENCELOCK_INSIDE_TEST_ALL";

#[expect(clippy::struct_excessive_bools, reason = "each is an option of the command line")]
struct Request {
    strict: bool,
    full: bool,
    install: bool,
    list: bool,
    only: Vec<String>,
}

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    if words.next().as_deref() != Some("test-all") {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    }
    let request = match Request::read(words) {
        Ok(request) => request,
        Err(complaint) => {
            eprintln!("{complaint}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    if request.list || std::env::var_os(INSIDE).is_some() {
        list();
        return ExitCode::SUCCESS;
    }
    test_all(&request)
}

impl Request {
    fn read(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut request =
            Self { strict: false, full: false, install: true, list: false, only: Vec::new() };
        while let Some(word) = words.next() {
            match word.as_str() {
                "--strict" => request.strict = true,
                "--full" => request.full = true,
                "--no-install" => request.install = false,
                "--list" => request.list = true,
                "--only" => {
                    let name = words.next().ok_or("--only wants the name of a part")?;
                    if !PARTS.iter().any(|part| part.answers_to(&name)) {
                        return Err(format!("there is no part `{name}`; see --list"));
                    }
                    request.only.push(name);
                }
                _ => return Err(format!("there is no option `{word}`")),
            }
        }
        Ok(request)
    }

    fn wants(&self, part: &Part) -> bool {
        self.only.is_empty() || self.only.iter().any(|word| part.answers_to(word))
    }
}

fn list() {
    for part in PARTS {
        println!("{:<12}  {}  [{}]", part.name, part.shows, part.tags.join(" "));
    }
}

fn test_all(request: &Request) -> ExitCode {
    let interrupted = as_a_terminal_would();
    let watch = Watch::begin();
    let others = Others::watch(format!("{INSIDE}={}", std::process::id()));
    let begin = Instant::now();
    let parts: Vec<&Part> = PARTS.iter().filter(|part| request.wants(part)).collect();
    let site = Site::find(request.full, request.strict);
    if request.install {
        println!("{INSTALLS}");
    }
    let (machine, built) = prepare(&parts, &site, request.install);
    println!("ready after {}", seconds(begin.elapsed()));
    let install = request.install;
    let slower = watch.slower();
    let runner = Runner { site, machine, built, slower, others, install, interrupted };
    let left = || room().saturating_sub(runner.others.share());
    let room = (!request.full).then_some(&left as &dyn Fn() -> u32);
    let reports = schedule::run(
        &parts,
        room,
        slower,
        |part| runner.run(part),
        |news| match news {
            News::Begins(part) => {
                println!("{:>8}  {} begins: {}", seconds(begin.elapsed()), part.name, part.shows);
            }
            News::Ended(part, report) => {
                let word = report.verdict.word();
                println!(
                    "{:>8}  {} {word} after {}",
                    seconds(begin.elapsed()),
                    part.name,
                    seconds(report.took)
                );
                if let Verdict::Failed(_) = report.verdict {
                    println!("{}", runner.failure(part));
                }
            }
        },
    );
    let (quiet, why) = watch.end();
    let conclusion = Conclusion { reports, took: begin.elapsed(), quiet, why };
    println!("{}", conclusion.table());
    if conclusion.is_good(request.strict, request.full) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// What may run at once if nothing else does: as much as the machine has cores, in hundredths, and a tenth more, since nothing is busy all
/// the time.
fn room() -> u32 {
    processors() * 110
}

/// Looks for what the parts need and installs it, while their tests are built.
fn prepare(parts: &[&Part], site: &Site, may_install: bool) -> (Machine, Result<Built, String>) {
    let mut needs = BTreeSet::<Need>::new();
    for part in parts {
        let own = part.needs(site);
        needs.extend(own.all.into_iter().chain(own.some));
    }
    let targets: Vec<Targets> = parts.iter().flat_map(|part| part.targets(site.full)).collect();
    thread::scope(|scope| {
        let machine = scope.spawn(|| Machine::prepare(needs, may_install));
        let log = run::log(site, "build");
        let built = run::create(&log).and_then(|file| Built::make(&targets, &site.root, file));
        if let Err(why) = &built {
            println!("{why}\n{}", tail::lines(&log, 60));
        }
        (machine.join().unwrap_or_default(), built)
    })
}

/// Gives children the signals a terminal would: whoever started this may have ignored them, as `nohup` and cron do, and a program
/// begins with what its parent ignored. A signal that is handled begins anew in a child. Answers what is set by one, unless this
/// process was to ignore it; the second one ends this process.
fn as_a_terminal_would() -> Arc<AtomicBool> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
    let interrupted = Arc::new(AtomicBool::new(false));
    let ignored = ignored();
    for signal in [SIGINT, SIGQUIT, SIGHUP, SIGTERM] {
        let set = if ignored >> (signal - 1) & 1 == 1 {
            signal_hook::flag::register(signal, Arc::default())
        } else {
            signal_hook::flag::register_conditional_shutdown(signal, 130, interrupted.clone())
                .and_then(|_| signal_hook::flag::register(signal, interrupted.clone()))
        };
        if let Err(error) = set {
            eprintln!("signal {signal} stays as it is: {error}");
        }
    }
    interrupted
}

/// The signals this process was started to ignore, a bit each. Where the system does not tell: none.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
