//! Our own doors: the packages of other languages, built and installed as a user would, and the programs over them.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::{Lack, Program, Role};

/// One language's way in.
#[derive(Debug)]
pub struct Door {
    /// Its name in the tables.
    pub language: &'static str,
    /// Its folder is `bindings-` and this.
    pub folder: &'static str,
    /// The actor and the bench's contestant: a program and the words it is given first. `$installed` is the folder the
    /// package was installed into, `$here` the binding's own.
    actor: &'static [&'static str],
    bench: &'static [&'static str],
}

impl Door {
    /// Whether it reaches files and sockets only through its host: no SQLite, no URLs.
    pub fn is_hosted(&self) -> bool {
        self.folder == "wasm"
    }

    /// Whether it is the same package as another row's, with another way to Redis.
    pub fn is_another_way(&self) -> bool {
        self.language.contains(" over ")
    }
}

/// The class path of the bench's program.
const JAVA: &str = "$installed/java/*:$installed/kotlin/*:$installed/bench";

/// All of them. A language with a new package is one more row here.
pub const DOORS: &[Door] = &[
    Door {
        language: "python",
        folder: "python",
        actor: &["$installed/venv/bin/python", "-B", "$here/actor/actor.py", "sync"],
        bench: &["$installed/venv/bin/python", "-B", "$here/bench/bench.py", "sync"],
    },
    Door {
        language: "python asyncio",
        folder: "python",
        actor: &["$installed/venv/bin/python", "-B", "$here/actor/actor.py", "asyncio"],
        bench: &["$installed/venv/bin/python", "-B", "$here/bench/bench.py", "asyncio"],
    },
    Door {
        language: "node",
        folder: "node",
        actor: &["node", "$installed/actor.js"],
        bench: &["node", "$installed/bench.js"],
    },
    Door {
        language: "java",
        folder: "jvm",
        actor: &["$installed/actor-java"],
        bench: &["java", "-cp", JAVA, "FencelockBench", "java"],
    },
    Door {
        language: "kotlin",
        folder: "jvm",
        actor: &["$installed/actor-kotlin"],
        bench: &["java", "-cp", JAVA, "FencelockBench", "kotlin"],
    },
    Door {
        language: "ruby",
        folder: "uniffi/ruby",
        actor: &["$installed/ruby", "$here/actor/actor.rb"],
        bench: &[],
    },
    Door {
        language: "jna kotlin",
        folder: "uniffi/kotlin",
        actor: &["$installed/actor"],
        bench: &[],
    },
    Door {
        language: "wasm",
        folder: "wasm",
        actor: &["node", "$installed/actor.js"],
        bench: &["node", "$installed/bench.js"],
    },
    Door {
        language: "wasm over node-redis",
        folder: "wasm",
        actor: &["node", "$installed/actor.js", "node-redis"],
        bench: &[],
    },
    Door {
        language: "wasm over http",
        folder: "wasm",
        actor: &["node", "$installed/actor.js", "http"],
        bench: &[],
    },
];

impl Door {
    /// Installs the package below `target`, unless it is there, and answers the program of this role.
    pub fn install(&self, role: Role, target: &Path) -> Result<Program, Lack> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize()?;
        let here = root.join(format!("bindings-{}", self.folder));
        std::fs::create_dir_all(target.join("doors"))?;
        let installed = target.canonicalize()?.join("doors").join(self.folder);
        let mut install = Command::new(here.join("install.sh"));
        install.arg(&installed).env("CARGO_TARGET_DIR", target).stdin(Stdio::null());
        let ended = install.output()?;
        let said = String::from_utf8_lossy(&[ended.stderr, ended.stdout].concat()).into_owned();
        match ended.status.code() {
            Some(0) => {}
            Some(2) => {
                return Err(Lack::Language(said.lines().last().unwrap_or_default().to_owned()));
            }
            _ => return Err(Lack::Failed(format!("{}: {}", self.folder, said.trim()))),
        }
        let word = |word: &&str| {
            let placed = word.replace("$installed", &installed.to_string_lossy());
            placed.replace("$here", &here.to_string_lossy())
        };
        let words = match role {
            Role::Actor => self.actor,
            Role::Bench => self.bench,
        };
        let mut words = words.iter().map(word);
        let program = Program::new(words.next().unwrap_or_default());
        Ok(words.fold(program, Program::with))
    }
}
