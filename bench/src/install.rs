//! Builds the peers from their registries, below `target/bench`. Who cannot be had is left out, and the tables say why.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Result;
use crate::contender::Contender;

/// The peers, and why some are missing.
pub(crate) fn peers(directory: &Path) -> (Vec<Contender>, Vec<String>) {
    let families = [("rslock", rust as Install), ("go", go), ("node", node), ("python", python)];
    let (mut peers, mut missing) = (Vec::new(), Vec::new());
    for (family, install) in families {
        eprintln!("installing the peers of bench/peers/{family}");
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers").join(family);
        match install(&sources, &directory.join(family)) {
            Ok(some) => peers.extend(some),
            Err(error) => missing.push(format!("without the peers of {family}: {error}")),
        }
    }
    (peers, missing)
}

type Install = fn(&Path, &Path) -> Result<Vec<Contender>>;

fn run(command: &mut Command) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let status = command.status().map_err(|error| format!("`{name}` cannot be run: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("`{name}` failed ({status})").into()) }
}

fn rust(sources: &Path, target: &Path) -> Result<Vec<Contender>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build.args(["build", "--quiet", "--locked", "--release", "--manifest-path"]);
    run(build.arg(sources.join("Cargo.toml")).arg("--target-dir").arg(target))?;
    let program = target.join("release/fencelock-bench-rslock");
    Ok(vec![Contender::peer("rslock", program, None)])
}

fn go(sources: &Path, target: &Path) -> Result<Vec<Contender>> {
    let program = target.join("peers");
    run(Command::new("go").arg("build").arg("-o").arg(&program).arg(".").current_dir(sources))?;
    let peer = |name| Contender::peer(name, program.clone(), None);
    Ok(["redislock", "redsync", "rueidislock"].map(peer).to_vec())
}

/// Copies the named files where the package manager may write beside them.
fn copy(sources: &Path, target: &Path, names: [&str; 2]) -> Result<PathBuf> {
    std::fs::create_dir_all(target)?;
    for name in names {
        std::fs::copy(sources.join(name), target.join(name))?;
    }
    Ok(target.join(names[1]))
}

fn node(sources: &Path, target: &Path) -> Result<Vec<Contender>> {
    let script = copy(sources, target, ["package.json", "peer.js"])?;
    let mut npm = Command::new("npm");
    npm.args(["install", "--silent", "--no-audit", "--no-fund", "--no-package-lock"]);
    run(npm.current_dir(target))?;
    Ok(vec![Contender::peer("redis-semaphore", "node".into(), Some(script))])
}

fn python(sources: &Path, target: &Path) -> Result<Vec<Contender>> {
    let script = copy(sources, target, ["requirements.txt", "peer.py"])?;
    let environment = target.join("venv");
    let program = environment.join("bin/python");
    if !program.exists() {
        run(Command::new("python3").args(["-m", "venv"]).arg(&environment))?;
    }
    let mut pip = Command::new(&program);
    pip.args(["-m", "pip", "install", "--quiet", "-r", "requirements.txt"]);
    run(pip.current_dir(target))?;
    let peer = |name| Contender::peer(name, program.clone(), Some(script.clone()));
    Ok(["redis-py", "python-redis-lock"].map(peer).to_vec())
}
