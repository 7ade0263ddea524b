//! Where the clients of one database listen: sockets beside the file, named after it, or in the temporary directory
//! where that cannot be.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::socket::{is_dead, made_at};
use crate::port::RuntimeHandle;

const MARK: &str = "fencelock-";
const END: &str = ".sock";
const DIGITS: usize = 16;
/// A socket's file exists a moment before it can be reached: a young one is left alone.
const YOUNG: u64 = 10;

/// The addresses of one database's clients.
///
/// A socket beside the file is written into tickets by its file name alone, so that processes which see the directory
/// under different paths (containers with a shared volume) reach each other; one elsewhere by its whole path.
pub(super) struct Addresses {
    directory: PathBuf,
    /// The prefix of the names beside the file; `None` if the file's name is not UTF-8, which tickets are.
    prefix: Option<String>,
    runtime: RuntimeHandle,
}

impl Addresses {
    /// Those of the database at `path`, an absolute path without links.
    pub(super) fn of(path: &Path, runtime: RuntimeHandle) -> Self {
        let name = path.file_name().and_then(|name| name.to_str());
        Self {
            directory: path.parent().unwrap_or(Path::new("/")).to_owned(),
            prefix: name.map(|name| format!("{name}.{MARK}")),
            runtime,
        }
    }

    /// Places to bind a new socket, best first, each as channel and path.
    pub(super) fn draw(&self) -> Vec<(Arc<str>, PathBuf)> {
        let mut bytes = [0; 8];
        self.runtime.random(&mut bytes);
        let end = format!("{:0DIGITS$x}{END}", u64::from_le_bytes(bytes));
        let beside = self.prefix.as_ref().map(|prefix| {
            let name = format!("{prefix}{end}");
            let path = self.directory.join(&name);
            (name.into(), path)
        });
        let path = std::env::temp_dir().join(format!("{MARK}{end}"));
        let elsewhere = path.to_str().filter(|_| path.is_absolute()).map(Arc::from);
        beside.into_iter().chain(elsewhere.map(|channel| (channel, path))).collect()
    }

    /// The path a ticket's channel stands for, if it is one of ours.
    pub(super) fn path(&self, channel: &str) -> Option<PathBuf> {
        let path = Path::new(channel);
        if !is_ours(path) {
            return None;
        }
        (path.is_absolute() || !channel.contains('/')).then(|| self.directory.join(path))
    }

    /// Removes the sockets beside `own` that nobody listens on any more.
    pub(super) fn clean(&self, own: &Path) {
        let Some(directory) = own.parent() else { return };
        // In the temporary directory they are not named after the database.
        let prefix = match &self.prefix {
            Some(prefix) if directory == self.directory => prefix,
            _ => MARK,
        };
        let now = i64::try_from(self.runtime.wall() / 1_000_000).unwrap_or(i64::MAX);
        let is_stale = |path: &Path| {
            made_at(path).is_some_and(|at| at.saturating_add_unsigned(YOUNG) < now) && is_dead(path)
        };
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let named = entry.file_name().to_str().is_some_and(|name| name.starts_with(prefix));
            let path = entry.path();
            if named && is_ours(&path) && is_stale(&path) {
                // Somebody else may have been faster.
                let _ = fs::remove_file(path);
            }
        }
    }
}

/// Whether a file is named as our sockets are.
fn is_ours(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let digits = name.strip_suffix(END).and_then(|name| Some(name.rsplit_once(MARK)?.1));
    digits.is_some_and(|digits| {
        digits.len() == DIGITS && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}
