//! Families of libraries, and how each is installed.

use std::fs::{self, File};
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::{Program, Role};

/// A group of programs that is installed in one go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// `peers/rslock`, from crates.io.
    Rust,
    /// `peers/go`, from the Go module proxy.
    Go,
    /// `peers/node`, from npm.
    Node,
    /// `peers/python`, from `PyPI`.
    Python,
    /// `peers/java`, from Maven Central.
    Java,
}

/// Why a family cannot be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lack {
    /// The machine does not have the language.
    Language(String),
    /// It has, and the installation failed all the same.
    Failed(String),
}

impl std::fmt::Display for Lack {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Language(what) | Self::Failed(what) => f.write_str(what),
        }
    }
}

impl From<Error> for Lack {
    fn from(error: Error) -> Self {
        Self::Failed(error.to_string())
    }
}

impl Family {
    /// Its folder's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rust => "rslock",
            Self::Go => "go",
            Self::Node => "node",
            Self::Python => "python",
            Self::Java => "java",
        }
    }

    /// Installs the family below `target`, unless it is there, and answers the program of this role. The program's next
    /// word is the library's name.
    pub fn install(self, role: Role, target: &Path) -> Result<Program, Lack> {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join(self.name());
        let home = target.join("peers").join(self.name());
        fs::create_dir_all(&home)?;
        // Tests and benches may want the same at the same time.
        let turn = File::create(home.with_extension("turn"))?;
        turn.lock()?;
        match self {
            Self::Rust => rust(&sources, &home, role),
            Self::Go => go(&sources, &home, role),
            Self::Node => node(&sources, &home, role),
            Self::Python => python(&sources, &home, role),
            Self::Java => java(&sources, &home, role),
        }
    }
}

/// Runs a tool to its end. One that is not there is the language's absence.
fn run(command: &mut Command) -> Result<(), Lack> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().map_err(|error| match error.kind() {
        ErrorKind::NotFound => Lack::Language(format!("`{name}` is not there")),
        _ => Lack::Failed(format!("`{name}` cannot be run: {error}")),
    })?;
    if output.status.success() {
        return Ok(());
    }
    let words = [output.stdout, output.stderr].concat();
    Err(Lack::Failed(format!("`{name}` failed: {}", String::from_utf8_lossy(&words).trim())))
}

/// Runs `install` unless it was run for this very manifest.
fn once(
    manifest: &Path,
    home: &Path,
    install: impl FnOnce() -> Result<(), Lack>,
) -> Result<(), Lack> {
    let wanted = fs::read(manifest)?;
    let mark = home.join("installed");
    if fs::read(&mark).is_ok_and(|found| found == wanted) {
        return Ok(());
    }
    install()?;
    Ok(fs::write(mark, wanted)?)
}

fn rust(sources: &Path, home: &Path, role: Role) -> Result<Program, Lack> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build.args(["build", "--quiet", "--locked", "--manifest-path"]).arg(sources.join("Cargo.toml"));
    build.arg("--target-dir").arg(home);
    // Only what is measured is worth the time that optimising takes.
    let program = match role {
        Role::Bench => {
            run(build.args(["--release", "--bin=bench"]))?;
            home.join("release/bench")
        }
        Role::Actor => {
            run(build.arg("--bin=actor"))?;
            home.join("debug/actor")
        }
    };
    Ok(Program::new(program))
}

fn go(sources: &Path, home: &Path, role: Role) -> Result<Program, Lack> {
    let (package, name) = match role {
        Role::Bench => (".", "bench"),
        Role::Actor => ("./actor", "actor"),
    };
    let program = home.join(name);
    let mut build = Command::new("go");
    run(build.args(["build", "-o"]).arg(&program).arg(package).current_dir(sources))?;
    Ok(Program::new(program))
}

/// A script finds the packages beside itself only, so the scripts are copied to where those are.
fn node(sources: &Path, home: &Path, role: Role) -> Result<Program, Lack> {
    let manifest = sources.join("package.json");
    once(&manifest, home, || {
        fs::copy(&manifest, home.join("package.json"))?;
        let mut npm = Command::new("npm");
        npm.args(["install", "--silent", "--no-audit", "--no-fund", "--no-package-lock"]);
        run(npm.current_dir(home))
    })?;
    for file in files(sources, "js")? {
        fs::copy(&file, home.join(file.file_name().unwrap_or_default()))?;
    }
    let script = match role {
        Role::Bench => "peer.js",
        Role::Actor => "actor.js",
    };
    Ok(Program::new("node").with(home.join(script)))
}

fn python(sources: &Path, home: &Path, role: Role) -> Result<Program, Lack> {
    let environment = home.join("venv");
    let program = environment.join("bin/python");
    let manifest = sources.join("requirements.txt");
    once(&manifest, home, || {
        let make = ["-m", "venv", "--clear"];
        run(Command::new("python3").args(make).arg(&environment)).map_err(|lack| match lack {
            // Debian packs it apart from the language.
            Lack::Failed(words) => Lack::Language(format!("no virtual environment: {words}")),
            lack @ Lack::Language(_) => lack,
        })?;
        let mut pip = Command::new(&program);
        run(pip.args(["-m", "pip", "install", "--quiet", "-r"]).arg(&manifest))
    })?;
    let script = match role {
        Role::Bench => "peer.py",
        Role::Actor => "actor.py",
    };
    // -B: nothing is written beside the sources.
    Ok(Program::new(program).with("-B").with(sources.join(script)))
}

fn java(sources: &Path, home: &Path, role: Role) -> Result<Program, Lack> {
    const COPY: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies";
    let (libraries, classes) = (home.join("lib"), home.join("classes"));
    let manifest = sources.join("pom.xml");
    once(&manifest, home, || {
        // What another manifest has brought would be found first.
        if libraries.exists() {
            fs::remove_dir_all(&libraries)?;
        }
        let mut maven = Command::new("mvn");
        maven.args(["--quiet", "--batch-mode", COPY, "--file"]).arg(&manifest);
        run(maven.arg(format!("-DoutputDirectory={}", libraries.display())))
    })?;
    let libraries = format!("{}/*", libraries.display());
    let mut compile = Command::new("javac");
    compile.args(["-cp", &libraries, "-d"]).arg(&classes).args(files(sources, "java")?);
    run(&mut compile)?;
    let path = format!("{}:{libraries}", classes.display());
    let (flags, main): (&[_], _) = match role {
        Role::Bench => (&[], "Bench"),
        // Quick to start rather than quick in the long run.
        Role::Actor => (&["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto"], "Actor"),
    };
    let words = flags.iter().copied().chain(["-cp", &*path, main]);
    Ok(words.fold(Program::new("java"), Program::with))
}

fn files(folder: &Path, ending: &str) -> Result<Vec<PathBuf>, Lack> {
    let entries: Result<Vec<_>, _> = fs::read_dir(folder)?.collect();
    let mut files: Vec<_> = entries?.into_iter().map(|entry| entry.path()).collect();
    files.retain(|file| file.extension().is_some_and(|found| found == ending));
    files.sort();
    Ok(files)
}
