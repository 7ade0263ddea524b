//! Finding the servers and tools the tests start, or installing them where that is ours to do.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Names the redis-server to use, to us and to the tests.
pub(crate) const REDIS_SERVER: &str = "FENCELOCK_REDIS_SERVER";

/// The program `redis-server`: named by the environment, on the path, or installed now.
pub(crate) fn redis() -> Result<PathBuf, String> {
    if let Some(named) = std::env::var_os(REDIS_SERVER) {
        let named = PathBuf::from(named);
        let missing = || format!("{REDIS_SERVER} names {}, which is not there", named.display());
        return named.is_file().then(|| named.clone()).ok_or_else(missing);
    }
    found("redis-server", "redis-server").map_err(|lack| format!("{lack} or set {REDIS_SERVER}"))
}

/// A program on the path, or installed now with its Debian package.
pub(crate) fn found(program: &str, package: &str) -> Result<PathBuf, String> {
    if let Some(found) = on_path(program) {
        return Ok(found);
    }
    let advice = || format!("no {program}: install it (apt-get install {package})");
    if on_path("apt-get").is_none() || !is_root() {
        return Err(advice());
    }
    println!("        installing {package}");
    install(package);
    on_path(program).ok_or_else(advice)
}

fn on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|id| id.stdout.trim_ascii() == b"0")
}

/// Installs a Debian package without starting its service. Its success is whether the program is there afterwards.
fn install(package: &str) {
    let _policy = NoServices::declare();
    apt_get(&["update"]);
    apt_get(&["install", "--yes", "--no-install-recommends", package]);
}

fn apt_get(args: &[&str]) {
    let _ = Command::new("apt-get")
        .args(args)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status();
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
