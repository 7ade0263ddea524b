//! Other libraries that hold the same locks: how fencelock shares each one's, and what it can do.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use fencelock_peers::{Family, Lack, Program, Role};

use super::case::Need;

/// See the module.
#[derive(Debug)]
pub struct Incumbent {
    /// Its name for its family's actor and in the table.
    pub name: &'static str,
    /// The group of libraries that it is installed with.
    pub family: Family,
    /// How fencelock lays out the same lock.
    pub dialect: &'static str,
    /// The abilities of its interface, beyond taking and releasing.
    can: &'static [Need],
}

/// All of them.
pub(super) const INCUMBENTS: &[Incumbent] = {
    use Family::{Go, Java, Node, Python, Rust};
    use Need::{Extends, Kinds, LooksAgain, Renews, TellsLoss};
    &[
        row("redis-py", Python, "plain:", &[LooksAgain, Extends, TellsLoss]),
        row("redis-py-asyncio", Python, "plain:", &[LooksAgain, Extends, TellsLoss]),
        row("python-redis-lock", Python, "plain:lock:", &[LooksAgain, Extends, Renews, TellsLoss]),
        row("node-redlock", Node, "plain:", &[LooksAgain, Extends, TellsLoss]),
        row("redis-semaphore", Node, "plain:mutex:", &[LooksAgain, Renews]),
        row("redsync", Go, "plain:", &[LooksAgain, Extends, TellsLoss]),
        row("redislock", Go, "plain:", &[LooksAgain, Extends, TellsLoss]),
        row("rslock", Rust, "plain:", &[LooksAgain, Extends]),
        row("spring", Java, "plain:spring:", &[Renews, TellsLoss]),
        row("redisson", Java, "redisson", &[LooksAgain, Renews, TellsLoss, Kinds]),
    ]
};

/// A library that keeps its locks where fencelock does not look: what has to fail the cases.
pub(super) const ELSEWHERE: &Incumbent = &row("elsewhere", Family::Python, "plain:elsewhere:", &[]);

const fn row(
    name: &'static str,
    family: Family,
    dialect: &'static str,
    can: &'static [Need],
) -> Incumbent {
    Incumbent { name, family, dialect, can }
}

impl Incumbent {
    /// Why a case that needs this cannot be played with it.
    pub(super) fn lacks(&self, need: Need) -> Option<&'static str> {
        match need {
            Need::Extends if !self.can.contains(&need) => {
                Some("the library cannot make a lease longer")
            }
            Need::Renews if !self.can.contains(&need) => Some("the library does not renew"),
            Need::LooksAgain if !self.can.contains(&need) => Some(
                "the library's waiters look again only when they are told, and nobody tells of an end",
            ),
            Need::TellsLoss if !self.can.contains(&need) => {
                Some("the library does not tell what its release found")
            }
            Need::Kinds if !self.can.contains(&need) => Some("the library has mutexes only"),
            _ => None,
        }
    }
}

/// Installs the actors of all families, side by side.
pub(super) fn install(target: &Path) -> BTreeMap<Family, Result<Program, Lack>> {
    let families: BTreeSet<_> = INCUMBENTS.iter().map(|incumbent| incumbent.family).collect();
    std::thread::scope(|scope| {
        let installs: Vec<_> = families
            .into_iter()
            .map(|family| (family, scope.spawn(move || family.install(Role::Actor, target))))
            .collect();
        let done = |(family, install): (_, std::thread::ScopedJoinHandle<'_, _>)| {
            (family, install.join().expect("an installation does not panic"))
        };
        installs.into_iter().map(done).collect()
    })
}
