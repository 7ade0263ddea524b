//! Every binding's `install.sh` keeps its word: where there is no cargo it ends with 2, and its last line says so.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

use crate::part::Site;

pub(crate) fn check(site: &Site) -> Result<String, String> {
    let wrong = |error: std::io::Error| error.to_string();
    let folder = env::temp_dir().join(format!("fencelock-installs-{}", std::process::id()));
    let programs = folder.join("programs");
    fs::create_dir_all(&programs).map_err(wrong)?;
    let checked = without_cargo(&programs).map_err(wrong).and_then(|()| {
        let scripts = scripts(&site.root);
        let all: Vec<_> =
            scripts.iter().filter_map(|at| complaint(at, &programs, &folder)).collect();
        if scripts.is_empty() {
            return Err("there is no bindings-*/install.sh".into());
        }
        if all.is_empty() { Ok(scripts.len()) } else { Err(all.join("\n")) }
    });
    fs::remove_dir_all(&folder).map_err(wrong)?;
    checked.map(|scripts| format!("{scripts} scripts say that there is no cargo"))
}

fn scripts(root: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(root).into_iter().flatten().flatten();
    let bindings = entries.filter(|at| at.file_name().to_string_lossy().starts_with("bindings-"));
    let mut scripts: Vec<_> = bindings.map(|at| at.path().join("install.sh")).collect();
    scripts.retain(|script| script.exists());
    scripts.sort();
    scripts
}

/// Fills a folder with all programs this machine finds but those of a Rust toolchain.
fn without_cargo(folder: &Path) -> std::io::Result<()> {
    let path = env::var_os("PATH").unwrap_or_default();
    for program in
        env::split_paths(&path).filter_map(|at| fs::read_dir(at).ok()).flatten().flatten()
    {
        let name = program.file_name();
        let link = folder.join(&name);
        let rust = ["cargo", "rust"].iter().any(|tool| name.to_string_lossy().starts_with(tool));
        // The first of a name is the one that is found.
        if !rust && link.symlink_metadata().is_err() {
            symlink(program.path(), link)?;
        }
    }
    Ok(())
}

fn complaint(script: &Path, programs: &Path, folder: &Path) -> Option<String> {
    let mut command = Command::new(script);
    command.arg(folder.join("installed")).env("PATH", programs).stdin(Stdio::null());
    let output = match command.output() {
        Ok(output) => output,
        Err(error) => return Some(format!("{}: {error}", script.display())),
    };
    let said = String::from_utf8_lossy(&output.stdout);
    let last = said.lines().last().unwrap_or_default();
    let kept = output.status.code() == Some(2) && last.contains("cargo");
    (!kept).then(|| {
        format!(
            "{} without cargo ended with {} and `{last}`; it has to end with 2 and a last line that names cargo",
            script.display(),
            output.status
        )
    })
}
