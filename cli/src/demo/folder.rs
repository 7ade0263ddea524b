//! A directory of the demo's own that goes when the demo goes.

use std::fs::DirBuilder;
use std::io::{Error, ErrorKind};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

pub(super) struct Folder(PathBuf);

impl Folder {
    /// Makes one that only this user may enter.
    pub(super) fn make() -> Result<Self, Error> {
        let all = std::env::temp_dir();
        for attempt in 0..100 {
            let path = all.join(format!("fencelock-demo-{}-{attempt}", std::process::id()));
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Self(path)),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(Error::new(
            ErrorKind::AlreadyExists,
            format!("{} is full of fencelock-demo-*; remove them", all.display()),
        ))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Whatever cannot be removed is left to the system, which clears its temporary files by itself.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
