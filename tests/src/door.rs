//! Doors: the bindings as a user installs them, and their actors.

use std::io::{Error, ErrorKind};
use std::path::Path;
use std::process::{Command, Stdio};

use fencelock_peers::{Lack, Program};

/// Installs the binding of a language below `target`, unless that was done, and answers its actor.
pub fn install(language: &str, target: &Path) -> Result<Program, Lack> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let folder = target.join("doors").join(language);
    let script = root.join(format!("bindings-{language}/install.sh"));
    let mut install = Command::new("sh");
    install.arg(script).arg(&folder).env("CARGO_TARGET_DIR", target).stdin(Stdio::null());
    let output = install.output().map_err(|error: Error| match error.kind() {
        ErrorKind::NotFound => Lack::Language("`sh` is not there".to_owned()),
        _ => Lack::Failed(error.to_string()),
    })?;
    let words = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    let last = words.trim().lines().last().unwrap_or_default().to_owned();
    match output.status.code() {
        Some(0) => Ok(Program::new("node").with(folder.join("actor.js"))),
        Some(2) => Err(Lack::Language(last)),
        _ => Err(Lack::Failed(words)),
    }
}
