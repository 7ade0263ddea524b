//! The project's own commands. `cargo test-all`: everything, ending in one table.

mod check;
mod need;
mod part;
mod run;
mod table;
mod tail;
mod versions;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use part::{Part, Report, Site, Verdict};
use run::Runner;
use table::PARTS;

const USAGE: &str = "\
usage: cargo test-all [--strict] [--full] [--only NAME]... [--list]

  --strict     a part that is skipped counts as failed
  --full       faults and figures in full instead of a tenth
  --only NAME  only the parts of this name or tag; may be repeated
  --list       the parts, what they show, and their tags";

/// Set while the parts run: a `cargo test-all` inside (the README's) must not start over.
const INSIDE: &str = "FENCELOCK_INSIDE_TEST_ALL";

struct Request {
    strict: bool,
    full: bool,
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
        let mut request = Self { strict: false, full: false, list: false, only: Vec::new() };
        while let Some(word) = words.next() {
            match word.as_str() {
                "--strict" => request.strict = true,
                "--full" => request.full = true,
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
    let wanted: Vec<&Part> = PARTS.iter().filter(|part| request.wants(part)).collect();
    let mut runner = Runner::new(Site::find(request.full, request.strict));
    let begin = Instant::now();
    let reports: Vec<Report> = wanted
        .iter()
        .enumerate()
        .map(|(index, part)| {
            println!("[{:>2}/{}] {}: {}", index + 1, wanted.len(), part.name, part.shows);
            let report = runner.run(part);
            println!("        {} after {}", report.verdict.word(), seconds(report.took));
            if let Verdict::Failed(_) = report.verdict {
                println!("{}", runner.failure(part));
            }
            report
        })
        .collect();
    conclude(&reports, begin.elapsed(), request.strict)
}

/// Prints the table and decides.
fn conclude(reports: &[Report], took: Duration, strict: bool) -> ExitCode {
    println!("\n{:<12}  {:<7}  {:>8}  what", "part", "result", "time");
    let mut counts = [0; 3];
    for Report { name, verdict, took } in reports {
        let (column, words) = match verdict {
            Verdict::Passed(words) => (0, words),
            Verdict::Failed(words) => (1, words),
            Verdict::Skipped(words) => (2, words),
        };
        counts[column] += 1;
        println!("{name:<12}  {:<7}  {:>8}  {words}", verdict.word(), seconds(*took));
    }
    let [passed, failed, skipped] = counts;
    println!("{:<12}  {:<7}  {:>8}\n", "all", "", seconds(took));
    println!("{passed} passed, {failed} failed, {skipped} skipped");
    if failed > 0 || (strict && skipped > 0) { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn seconds(took: Duration) -> String {
    format!("{:.1} s", took.as_secs_f64())
}

impl Verdict {
    fn word(&self) -> &'static str {
        match self {
            Self::Passed(_) => "passed",
            Self::Failed(_) => "failed",
            Self::Skipped(_) => "skipped",
        }
    }
}
