//! What a fresh machine may lack: how it is looked for, and how it is installed where that is ours to do.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Names the redis-server to use, to us and to the tests.
pub(crate) const REDIS_SERVER: &str = "FENCELOCK_REDIS_SERVER";

/// Something that parts need, beside the Rust toolchain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Need {
    RedisServer,
    /// Visits a page many times at once.
    ApacheBench,
    /// 3.11 or newer, with virtual environments.
    Python,
    /// 20 or newer, with npm.
    Node,
    /// A compiler for Java, and Maven.
    Java,
    /// New enough to fetch the version it is asked for.
    Go,
    Chromium,
}

/// How one is known to be there, and what brings it.
struct Source {
    /// What it is called.
    name: &'static str,
    /// Commands of the shell that succeed where it is.
    probes: &'static [&'static str],
    /// Debian's packages.
    packages: &'static [&'static str],
}

impl Need {
    fn source(self) -> Source {
        let (name, probes, packages): (_, &[_], &[_]) = match self {
            Self::RedisServer => ("redis-server", &["redis-server --version"], &["redis-server"]),
            Self::ApacheBench => ("ab", &["ab -V"], &["apache2-utils"]),
            Self::Python => (
                "Python 3.11 with virtual environments",
                &["python3 -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))'"],
                &["python3", "python3-venv"],
            ),
            Self::Node => (
                "Node.js 20 with npm",
                &[
                    "node --eval 'process.exit(process.versions.node.split(`.`)[0] >= 20 ? 0 : 1)'",
                    "npm --version",
                ],
                &["nodejs", "npm"],
            ),
            Self::Java => (
                "a JDK with Maven",
                &["javac -version", "mvn --version"],
                &["default-jdk-headless", "maven"],
            ),
            // Before 1.21 it knew no other version than itself.
            Self::Go => ("Go 1.21", &["test -n \"$(go env GOTOOLCHAIN)\""], &["golang-go"]),
            Self::Chromium => (
                "Chromium",
                &["test -n \"$FENCELOCK_CHROMIUM\" || command -v chromium"],
                &["chromium"],
            ),
        };
        Source { name, probes, packages }
    }
}

impl Source {
    fn is_there(&self) -> bool {
        self.probes.iter().all(|probe| {
            let shell = quietly(Command::new("sh").args(["-c", probe])).status();
            shell.is_ok_and(|status| status.success())
        })
    }

    /// Looked for, and installed now if it is missing. The error says what to do.
    fn find(&self) -> Result<(), String> {
        if self.is_there() {
            return Ok(());
        }
        let packages = self.packages.join(" ");
        if is_root() {
            println!("        installing {packages}");
            install(self.packages);
        }
        let advice = || format!("no {}: install it (apt-get install {packages})", self.name);
        self.is_there().then_some(()).ok_or_else(advice)
    }
}

/// What was looked for so far.
#[derive(Default)]
pub(crate) struct Machine {
    found: BTreeMap<Need, Result<(), String>>,
}

impl Machine {
    /// Whether it has this, by now. The error says what to do.
    pub(crate) fn has(&mut self, need: Need) -> Result<(), String> {
        let look = || match (need, std::env::var_os(REDIS_SERVER).map(PathBuf::from)) {
            (Need::RedisServer, Some(named)) => {
                let missing =
                    format!("{REDIS_SERVER} names {}, which is not there", named.display());
                named.is_file().then_some(()).ok_or(missing)
            }
            (Need::RedisServer, None) => {
                need.source().find().map_err(|lack| format!("{lack} or set {REDIS_SERVER}"))
            }
            _ => need.source().find(),
        };
        self.found.entry(need).or_insert_with(look).clone()
    }
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|id| id.stdout.trim_ascii() == b"0")
}

fn quietly(command: &mut Command) -> &mut Command {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null())
}

/// Installs Debian packages without starting their services. Its success is whether they are there afterwards.
fn install(packages: &[&str]) {
    let _policy = NoServices::declare();
    apt_get(&["update"]);
    apt_get(&[&["install", "--yes", "--no-install-recommends"], packages].concat());
}

fn apt_get(args: &[&str]) {
    let mut command = Command::new("apt-get");
    let _ = quietly(command.args(args).env("DEBIAN_FRONTEND", "noninteractive")).status();
}

/// While it lives, packages do not start their services: the tests start servers of their own, and stop them.
struct NoServices(Option<&'static Path>);

impl NoServices {
    fn declare() -> Self {
        let policy = Path::new("/usr/sbin/policy-rc.d");
        let ours = !policy.exists()
            && fs::write(policy, "#!/bin/sh\nexit 101\n").is_ok()
            && Command::new("chmod").arg("755").arg(policy).status().is_ok();
        Self(ours.then_some(policy))
    }
}

impl Drop for NoServices {
    fn drop(&mut self) {
        if let Some(policy) = self.0 {
            let _ = fs::remove_file(policy);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Source;

    #[test]
    fn all_probes_have_to_succeed() {
        let source = |probes| Source { name: "it", probes, packages: &[] };
        assert!(source(&["true", "test 1 = 1"]).is_there());
        assert!(!source(&["true", "exit 3"]).is_there());
        assert!(!source(&["there-is-no-such-program"]).is_there());
    }
}
