//! The directory of this user's locks, for when no store is named.

use std::env;
#[cfg(unix)]
use std::fs::{DirBuilder, symlink_metadata};
#[cfg(unix)]
use std::io;
#[cfg(unix)]
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
#[cfg(unix)]
use std::path::Path;
use std::path::PathBuf;

use crate::exit::Failure;

/// It is made if there is none: `$XDG_STATE_HOME/fencelock`, by default below
/// `~/.local/state`; without a home that can be written to, a directory below the temporary one.
#[cfg(unix)]
pub(crate) fn directory() -> Result<PathBuf, Failure> {
    let state = env::var_os("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let state = state.or_else(|| {
        let home = env::home_dir().filter(|home| home.is_absolute());
        home.map(|home| home.join(".local/state"))
    });
    if let Some(directory) = state.map(|state| state.join("fencelock"))
        && make(&directory).is_ok()
    {
        return Ok(directory);
    }
    let user = rustix::process::geteuid().as_raw();
    let directory = env::temp_dir().join(format!("fencelock-{user}"));
    make(&directory).map_err(|error| Failure::system(directory.display(), &error))?;
    // Others may write there too: what they prepared is not to be trusted.
    let found = symlink_metadata(&directory)
        .map_err(|error| Failure::system(directory.display(), &error))?;
    if !found.is_dir() || found.uid() != user || found.mode() & 0o077 != 0 {
        return Err(Failure::configuration(format!(
            "{} is not a directory of yours alone; name the store with --url",
            directory.display()
        )));
    }
    Ok(directory)
}

#[cfg(unix)]
fn make(directory: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory)
}

/// It is made if there is none, where Windows keeps a user's own files: others have no right there.
#[cfg(windows)]
pub(crate) fn directory() -> Result<PathBuf, Failure> {
    let local = env::var_os("LOCALAPPDATA").map(PathBuf::from).filter(|path| path.is_absolute());
    let Some(directory) = local.map(|local| local.join("fencelock")) else {
        return Err(Failure::configuration(
            "LOCALAPPDATA names no directory; name the store with --url",
        ));
    };
    std::fs::create_dir_all(&directory)
        .map_err(|error| Failure::system(directory.display(), &error))?;
    Ok(directory)
}
