//! The crates as they leave the house, read from the packed files.

use std::path::Path;
use std::process::Command;

use super::{output, read};
use crate::part::Site;
use crate::run::cargo;

/// What is published.
const CRATES: &[&str] = &["fencelock", "fencelock-cli"];
const LICENCES: &[&str] = &["LICENSE-APACHE", "LICENSE-MIT"];
/// What a crate has beside its sources. All but the first are cargo's own.
const FILES: &[&str] =
    &["README.md", ".cargo_vcs_info.json", "Cargo.lock", "Cargo.toml", "Cargo.toml.orig"];
/// What the manifest has to say.
const FIELDS: &[&str] = &[
    "authors",
    "categories",
    "changelog",
    "description",
    "documentation",
    "homepage",
    "issues",
    "keywords",
    "license",
    "readme",
    "repository",
    "rust-version",
];

pub(crate) fn check(site: &Site) -> Result<String, String> {
    let folder = site.target.join("crates");
    let mut pack = cargo(&["package", "--allow-dirty", "--quiet"]);
    if !site.full {
        // In full it is seen that what is packed compiles by itself.
        pack.arg("--no-verify");
    }
    pack.arg("--target-dir").arg(&folder).args(CRATES.iter().flat_map(|name| ["--package", name]));
    output(pack.current_dir(&site.root))?;
    let mut complaints = Vec::new();
    let mut sizes = Vec::new();
    for name in CRATES {
        let full = format!("{name}-{}", env!("CARGO_PKG_VERSION"));
        let packed = folder.join("package").join(format!("{full}.crate"));
        let size = packed.metadata().map_err(|error| format!("{}: {error}", packed.display()))?;
        sizes.push(format!("{name} {} KiB", size.len() / 1024));
        let found = wrong(&packed, &full, &site.root)?;
        complaints.extend(found.into_iter().map(|what| format!("{name}: {what}")));
    }
    if complaints.is_empty() { Ok(sizes.join(", ")) } else { Err(complaints.join("\n")) }
}

/// What is wrong with a packed crate.
fn wrong(packed: &Path, full: &str, root: &Path) -> Result<Vec<String>, String> {
    let file = |name: &str| {
        let mut tar = Command::new("tar");
        output(tar.arg("-xzOf").arg(packed).arg(format!("{full}/{name}")))
    };
    let list = output(Command::new("tar").arg("-tzf").arg(packed))?;
    let names: Vec<&str> =
        list.lines().filter_map(|line| line.split_once('/')).map(|it| it.1).collect();
    let known =
        |name: &str| name.starts_with("src/") || LICENCES.contains(&name) || FILES.contains(&name);
    let mut complaints: Vec<String> = Vec::new();
    complaints.extend(names.iter().filter(|name| !known(name)).map(|name| format!("has {name}")));
    for licence in LICENCES {
        if !names.contains(licence) || file(licence)? != read(&root.join(licence))? {
            complaints.push(format!("has no {licence}, or another one than the project"));
        }
    }
    let manifest = file("Cargo.toml")?;
    for field in FIELDS {
        let value = manifest.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(" = "));
        if value.is_none_or(|value| matches!(value, "" | r#""""#)) {
            complaints.push(format!("its manifest has no {field}"));
        }
    }
    Ok(complaints)
}
