//! The columns of the grid: where locks lie, and who the actors are.

use std::collections::BTreeMap;
use std::path::Path;

use fencelock_peers::{DOORS, Door, Lack, Program, Role};

use super::case::{Case, Need};
use super::command_line;
use super::ground::Backend;
use super::incumbent::{ELSEWHERE, INCUMBENTS, Incumbent, install};
use super::leases;
use super::ready::Ready;
use super::step::{Expect, Step};
use crate::command_line::program;

/// The name of `fencelock run` in the table.
const COMMAND_LINE: &str = "command line";
/// The stores that every door is played on.
const STORES: [Backend; 7] = [
    Backend::Memory,
    Backend::Sqlite,
    Backend::Redis,
    Backend::Etcd,
    Backend::Zookeeper,
    Backend::Postgres,
    Backend::Mysql,
];

/// See the module.
#[derive(Clone, Debug)]
pub struct Column {
    /// The store.
    pub backend: Backend,
    /// The language, as the table calls it.
    pub language: &'static str,
    /// The actors' program; in this process if there is none.
    pub program: Option<Program>,
    /// The other library, and the program that is its client.
    pub incumbent: Option<(&'static Incumbent, Program)>,
    /// The thing that this column needs and the machine lacks.
    pub missing: Option<Lack>,
    /// Its actors that are between two cases, if they stay for the next one.
    pub ready: Option<Ready>,
}

/// Every backend with Rust; other languages come by [`packages`].
pub fn columns(rust: &Path) -> Vec<Column> {
    let languages = [("rust", None), ("rust program", Some(Program::new(rust)))];
    let with = |backend| {
        languages.clone().map(|(language, program)| Column::of(backend, language, program))
    };
    let ways = Backend::WAYS.map(|backend| Column::of(backend, "rust", None));
    Backend::ALL
        .into_iter()
        .flat_map(with)
        .chain(ways)
        .chain([Column::of(Backend::PostgresPooled, "rust", None)])
        .chain([Column::simulated(Backend::Queue)])
        .collect()
}

/// The packages whose language begins like this, over every store they can be played on. The command line is one of them.
pub fn packages(rust: &Path, command_line: &Path, language: &str) -> Vec<Column> {
    let wanted = DOORS.iter().filter(|door| door.language.starts_with(language));
    let packages = wanted.flat_map(|door| behind(door, &fencelock_peers::target(rust)));
    let (actor, missing) = match program(rust) {
        Ok(program) => (Program::new(command_line).with(program), None),
        Err(lack) => (Program::new(""), Some(lack)),
    };
    let runs = STORES.map(|backend| Column {
        missing: missing.clone(),
        ..Column::of(backend, COMMAND_LINE, Some(actor.clone()))
    });
    let runs = runs.into_iter().filter(|_| COMMAND_LINE.starts_with(language));
    packages.chain(runs).collect()
}

/// A language's columns: its package over every store it can be played on.
fn behind(door: &Door, target: &Path) -> impl Iterator<Item = Column> + use<> {
    let language = door.language;
    let (program, missing) = match door.install(Role::Actor, target) {
        Ok(program) => (program, None),
        Err(lack) => (Program::new(""), Some(lack)),
    };
    stores(door).iter().map(move |&backend| Column {
        missing: missing.clone(),
        ready: Some(Ready::default()),
        ..Column::of(backend, language, Some(program.clone()))
    })
}

fn stores(door: &Door) -> &'static [Backend] {
    if door.is_another_way() { &[Backend::Redis] } else { &STORES }
}

/// Redis with every other library beside the Rust actor.
pub fn neighbours(rust: &Path) -> Vec<Column> {
    let families: BTreeMap<_, _> = install(&fencelock_peers::target(rust));
    let with = |incumbent: &'static Incumbent| {
        let column = Column::of(Backend::Redis, incumbent.name, Some(Program::new(rust)));
        let (program, missing) = match &families[&incumbent.family] {
            Ok(program) => (program.clone().with(incumbent.name), None),
            Err(lack) => (Program::new(""), Some(lack.clone())),
        };
        Column { incumbent: Some((incumbent, program)), missing, ..column }
    };
    INCUMBENTS.iter().map(with).collect()
}

impl Column {
    /// The same library, while fencelock looks for its locks elsewhere.
    #[must_use]
    pub fn astray(&self) -> Self {
        let incumbent = self.incumbent.clone().map(|(_, program)| (ELSEWHERE, program));
        Self { language: ELSEWHERE.name, incumbent, ..self.clone() }
    }

    fn of(backend: Backend, language: &'static str, program: Option<Program>) -> Self {
        Self { backend, language, program, incumbent: None, missing: None, ready: None }
    }

    /// A store in virtual time.
    pub(super) fn simulated(backend: Backend) -> Self {
        Self::of(backend, "rust", None)
    }

    /// Whether another language than Rust plays here.
    pub fn is_door(&self) -> bool {
        self.language == COMMAND_LINE || self.door().is_some()
    }

    fn door(&self) -> Option<&'static Door> {
        DOORS.iter().find(|door| door.language == self.language)
    }

    /// Whether `cargo test-all` plays it without `--full`: a package is played on Redis, in one way to it, and Rust in this
    /// process.
    pub fn is_of_the_first_length(&self) -> bool {
        let another_way = self.door().is_some_and(Door::is_another_way);
        self.is_door() && !another_way && self.backend == Backend::Redis || self.program.is_none()
    }

    /// Whether it plays a case without `--full`. Cases that wait for long, kill, or burden the machine are played in virtual time.
    /// Locks by row differ from those of sessions in their statements only, so they play the basic cases.
    pub(super) fn plays_in_the_first_length(&self, case: &Case) -> bool {
        let by_row = matches!(self.backend, Backend::PostgresRows | Backend::MysqlRows);
        case.basic || !self.is_door() && !by_row && (self.backend.is_simulated() || !case.is_long())
    }

    /// Why nothing at all can be played here.
    fn beyond(&self) -> Option<&'static str> {
        if self.language == COMMAND_LINE && self.backend == Backend::Memory {
            return Some("a run and whoever looks at it have no memory in common");
        }
        let hosted = self.door().is_some_and(Door::is_hosted);
        match self.backend {
            Backend::Sqlite if hosted => Some("the language reaches no files"),
            Backend::Etcd if hosted => Some("the language reaches no etcd"),
            Backend::Zookeeper if hosted => Some("the language reaches no ZooKeeper"),
            Backend::Postgres if hosted => Some("the language reaches no PostgreSQL"),
            Backend::Mysql if hosted => Some("the language reaches no MySQL"),
            _ => None,
        }
    }

    /// Whether a case can be played here.
    pub fn plays(&self, case: &Case) -> bool {
        self.lacks(case).is_none()
    }

    /// Why a case cannot be played here.
    pub(super) fn lacks(&self, case: &Case) -> Option<&'static str> {
        let program = self.program.is_some();
        if program && self.backend.is_simulated() {
            return Some("virtual time does not reach into another program");
        }
        if Backend::WAYS.contains(&self.backend) && !case.anywhere {
            return Some("it does not depend on how Redis is reached");
        }
        if let Some(why) = self.beyond() {
            return Some(why);
        }
        if self.language == COMMAND_LINE
            && let Some(why) = command_line::lacks(case)
        {
            return Some(why);
        }
        let runs_on_etcd = self.language == COMMAND_LINE && self.backend == Backend::Etcd;
        if runs_on_etcd && leases::are_asked_with_part_seconds(&case.steps) {
            return self.backend.lacks(Need::PartSeconds);
        }
        let unconfirmed = |step: &Step| match step {
            Step::Release(release) => matches!(release.expect, Some(Expect::Unconfirmed)),
            _ => false,
        };
        if runs_on_etcd && case.steps.iter().any(unconfirmed) {
            return Some(
                "a run that has ended repeats nothing, and etcd drops what came over its connection",
            );
        }
        let door = self.door();
        if door.is_some_and(Door::is_another_way) && !case.anywhere {
            return Some("it does not depend on how Redis is reached");
        }
        if self.language == "python" && case.needs().contains(&Need::Abort) {
            return Some(
                "Python cannot end a thread's wait from outside; tests/test_signals.py ends the main thread's",
            );
        }
        case.needs().into_iter().find_map(|need| match need {
            Need::Kill if !program && !self.backend.is_simulated() => {
                Some("actors in one process cannot be killed or stopped one by one")
            }
            Need::Urls if door.is_some_and(Door::is_hosted) => {
                Some("a client of the host's connects, by its own means")
            }
            Need::Gates if door.is_some_and(Door::is_hosted) => {
                Some("a gate needs a connection of fencelock's own")
            }
            Need::Cron if door.is_some_and(Door::is_hosted) => {
                Some("the package has no time zones")
            }
            Need::Untyped if door.is_some() => {
                Some("the language's interface has no way to say it")
            }
            Need::SharedStore if program && self.backend == Backend::Memory => {
                Some("two programs have no memory in common")
            }
            need => match &self.incumbent {
                Some((incumbent, _)) => incumbent.lacks(need),
                None => self.backend.lacks(need),
            },
        })
    }

    /// Whether it is wrong that this column cannot be played: an installation failed, or even a language should be there.
    pub fn lacks_wrongly(&self, strict: bool) -> bool {
        match &self.missing {
            Some(Lack::Failed(_)) => true,
            Some(Lack::Language(_)) => strict,
            None => false,
        }
    }

    /// Its name in the table.
    pub fn name(&self) -> String {
        format!("{} / {}", self.backend.name(), self.language)
    }
}
