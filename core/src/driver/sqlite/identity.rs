//! Which file lies under a path, and whether it can be reached by that path only.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::fault::Fault;
use crate::error::{Code, Error};

/// Which file it is: its device and number.
pub(super) type Identity = (u64, u64);

/// Which file lies under a path.
pub(super) fn identity(path: &Path) -> Result<Identity, Fault> {
    fs::metadata(path).map(|found| (found.dev(), found.ino())).map_err(|_| gone())
}

/// Which file lies under a path that is its only one: under another one it would have another log beside it.
pub(super) fn only_name(path: &Path) -> Result<Identity, Fault> {
    const LINKED: &str = "the file has several hard links, and under each it would grant the same locks; leave one, or use a file of its own";
    const MOUNTED: &str = "the file is mounted by itself, and whoever reaches it by another way would be granted the same locks; mount its directory";
    let found = fs::metadata(path).map_err(|_| gone())?;
    if found.nlink() > 1 {
        return Err(Fault::Failed(Error::invalid("path", LINKED)));
    }
    if is_mounted(path) {
        return Err(Fault::Failed(Error::invalid("path", MOUNTED)));
    }
    Ok((found.dev(), found.ino()))
}

/// Whether this very path is a mount, as far as the system tells.
#[cfg(target_os = "linux")]
fn is_mounted(path: &Path) -> bool {
    use rustix::fs::{AtFlags, CWD, StatxAttributes, StatxFlags, statx};
    statx(CWD, path, AtFlags::empty(), StatxFlags::BASIC_STATS)
        .is_ok_and(|found| found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
}

#[cfg(not(target_os = "linux"))]
fn is_mounted(_path: &Path) -> bool {
    false
}

/// The fault of a file that is not the one it was.
pub(super) fn gone() -> Fault {
    Fault::Failed(Error::new(
        Code::Conflict,
        "the database file was deleted or replaced while it was open, so its locks exclude nobody; connect again",
    ))
}
