//! The tools that a fresh machine may lack: how each is found, and how it is installed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Stdio};

/// Something that parts need beside the Rust toolchain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Need {
    Redis,
    Etcd,
    Zookeeper,
    Postgres,
    Mariadb,
    Python,
    Node,
    Java,
    Ruby,
    // Only parts of `--full` need these.
    Pgbouncer,
    ApacheBench,
    Go,
    Chromium,
}

/// Its name, a command of the shell that succeeds where it is, and Debian's packages of it.
struct Source {
    name: &'static str,
    probe: &'static str,
    packages: &'static [&'static str],
}

impl Need {
    fn source(self) -> Source {
        let (name, probe, packages): (_, _, &[_]) = match self {
            Self::Redis => (
                "redis-server",
                "test -n \"$FENCELOCK_REDIS_SERVER\" || redis-server --version",
                &["redis-server"],
            ),
            Self::Etcd => (
                "etcd with etcdctl",
                "etcd --version && command -v etcdctl",
                &["etcd-server", "etcd-client"],
            ),
            Self::Zookeeper => (
                "ZooKeeper with Java",
                "java -version && test -f /usr/share/java/zookeeper.jar",
                &["zookeeper", "default-jre-headless"],
            ),
            Self::Postgres => (
                "PostgreSQL with initdb and psql",
                "(ls /usr/lib/postgresql/*/bin/initdb || initdb --version) && psql --version",
                &["postgresql", "postgresql-client"],
            ),
            Self::Mariadb => (
                "mariadbd with mariadb",
                "(ls /usr/sbin/mariadbd || mariadbd --version) && mariadb --version",
                &["mariadb-server"],
            ),
            Self::Python => (
                "Python 3.11 with virtual environments",
                "python3 -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))'",
                &["python3", "python3-venv"],
            ),
            Self::Node => (
                "Node.js 20 with npm",
                "node --eval 'process.exit(process.versions.node.split(`.`)[0] >= 20 ? 0 : 1)' && npm --version",
                &["nodejs", "npm"],
            ),
            Self::Java => (
                "a JDK with Maven",
                "javac -version && mvn --version",
                &["default-jdk-headless", "maven"],
            ),
            Self::Ruby => (
                "Ruby 3.1 with ffi, minitest and Puma",
                "ruby -e 'exit RUBY_VERSION >= %q(3.1) && !!require(%q(ffi)) && !!require(%q(minitest))' && gem --version && puma --version",
                &["ruby", "ruby-ffi", "ruby-minitest", "puma"],
            ),
            Self::Pgbouncer => {
                ("PgBouncer", "ls /usr/sbin/pgbouncer || pgbouncer --version", &["pgbouncer"])
            }
            Self::ApacheBench => ("ab", "ab -V", &["apache2-utils"]),
            // Before 1.21 it knew no other version than itself.
            Self::Go => ("Go 1.21", "test -n \"$(go env GOTOOLCHAIN)\"", &["golang-go"]),
            Self::Chromium => (
                "Chromium",
                "test -n \"$FENCELOCK_CHROMIUM\" || command -v chromium",
                &["chromium"],
            ),
        };
        Source { name, probe, packages }
    }

    fn is_there(self) -> bool {
        succeeds(Command::new("sh").args(["-c", self.source().probe]))
    }
}

/// The tools that were looked for, and whether each is there.
pub(crate) struct Machine(BTreeMap<Need, bool>);

impl Machine {
    /// Looks for all of these. Installs what is missing if that is allowed and possible: with apt-get, as root.
    pub(crate) fn prepare(needs: &BTreeSet<Need>, may_install: bool) -> Self {
        let look = || Self(needs.iter().map(|need| (*need, need.is_there())).collect());
        let machine = look();
        let missing = machine.0.iter().filter(|(_, there)| !**there);
        let packages: BTreeSet<_> =
            missing.flat_map(|(need, _)| need.source().packages).copied().collect();
        let able = || is_root() && succeeds(Command::new("apt-get").arg("--version"));
        if packages.is_empty() || !may_install || !able() {
            return machine;
        }
        let packages: Vec<_> = packages.into_iter().collect();
        println!("installing with apt-get (--no-install leaves this out): {}", packages.join(" "));
        install(&packages);
        look()
    }

    /// Names the first of these that is missing, and says what to do.
    pub(crate) fn lacks(&self, needs: &[Need]) -> Option<String> {
        let need = needs.iter().find(|need| !self.0.get(need).copied().unwrap_or(false))?;
        let Source { name, packages, .. } = need.source();
        Some(format!("no {name}: install it (apt-get install {})", packages.join(" ")))
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn succeeds(command: &mut Command) -> bool {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

/// Installs packages without starting their services: the tests start servers of their own.
fn install(packages: &[&str]) {
    let policy = Path::new("/usr/sbin/policy-rc.d");
    let ours = !policy.exists()
        && std::fs::write(policy, "#!/bin/sh\nexit 101\n").is_ok()
        && succeeds(Command::new("chmod").arg("755").arg(policy));
    let apt = |words: &[&str]| {
        let mut command = Command::new("apt-get");
        command.args(words).env("DEBIAN_FRONTEND", "noninteractive").stdin(Stdio::null());
        let Ok(output) = command.output() else { return };
        if !output.status.success() {
            print!("{}", String::from_utf8_lossy(&output.stderr));
        }
    };
    apt(&["update"]);
    apt(&[&["install", "--yes", "--no-install-recommends"], packages].concat());
    if ours {
        let _ = std::fs::remove_file(policy);
    }
}
