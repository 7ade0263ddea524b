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
    /// With `etcdctl`.
    EtcdServer,
    /// With a Java that runs it.
    ZookeeperServer,
    /// With `mariadb-install-db` and `mariadb`.
    Mariadb,
    /// With `initdb`, `psql` and `PgBouncer`.
    Postgres,
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
            Self::EtcdServer => (
                "etcd with etcdctl",
                &["etcd --version", "command -v etcdctl"],
                &["etcd-server", "etcd-client"],
            ),
            Self::ZookeeperServer => (
                "ZooKeeper with Java",
                &["java -version", "test -f /usr/share/java/zookeeper.jar"],
                &["zookeeper", "default-jre-headless"],
            ),
            Self::Mariadb => (
                "mariadbd with mariadb",
                &["ls /usr/sbin/mariadbd || mariadbd --version", "mariadb --version"],
                &["mariadb-server"],
            ),
            Self::Postgres => (
                "postgres with initdb, psql and pgbouncer",
                &[
                    "ls /usr/lib/postgresql/*/bin/initdb || initdb --version",
                    "psql --version",
                    "test -x /usr/sbin/pgbouncer || pgbouncer --version",
                ],
                &["postgresql", "postgresql-client", "pgbouncer"],
            ),
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
}

/// What was looked for, with what to do about what is missing.
#[derive(Default)]
pub(crate) struct Machine {
    found: BTreeMap<Need, Result<(), String>>,
}

impl Machine {
    /// Looks for all of these, and installs what is missing if that is allowed and possible: with apt, as root.
    pub(crate) fn prepare(needs: impl IntoIterator<Item = Need>, may_install: bool) -> Self {
        let needs: Vec<Need> = needs.into_iter().collect();
        let mut machine = Self::default();
        machine.look(&needs);
        let missing = machine.missing();
        if may_install && !missing.is_empty() && is_root() && has_apt() {
            println!(
                "installing with apt-get (--no-install leaves this out): {}",
                missing.join(" ")
            );
            install(&missing);
            machine.look(&needs);
        }
        machine
    }

    /// Whether this was found. The error says what to do.
    pub(crate) fn has(&self, need: Need) -> Result<(), String> {
        self.found.get(&need).cloned().unwrap_or(Ok(()))
    }

    fn look(&mut self, needs: &[Need]) {
        for need in needs {
            self.found.insert(*need, find(*need));
        }
    }

    /// The packages of what was not found.
    fn missing(&self) -> Vec<&'static str> {
        let missing = self.found.iter().filter(|(_, found)| found.is_err());
        let mut packages: Vec<_> =
            missing.flat_map(|(need, _)| need.source().packages).copied().collect();
        packages.sort_unstable();
        packages.dedup();
        packages
    }
}

fn find(need: Need) -> Result<(), String> {
    let source = need.source();
    let named = std::env::var_os(REDIS_SERVER).filter(|_| need == Need::RedisServer);
    if let Some(named) = named.map(PathBuf::from) {
        let missing = format!("{REDIS_SERVER} names {}, which is not there", named.display());
        return named.is_file().then_some(()).ok_or(missing);
    }
    let packages = source.packages.join(" ");
    let or =
        if need == Need::RedisServer { format!(" or set {REDIS_SERVER}") } else { String::new() };
    let advice = || format!("no {}: install it (apt-get install {packages}){or}", source.name);
    source.is_there().then_some(()).ok_or_else(advice)
}

fn has_apt() -> bool {
    quietly(Command::new("apt-get").arg("--version")).status().is_ok_and(|status| status.success())
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
