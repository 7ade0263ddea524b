//! Which file lies under a path, and whether it can be reached by that path only.

use std::fs;
use std::path::Path;

use super::fault::Fault;
use crate::error::{Code, Error};

/// Which file it is: its device and number.
pub(super) type Identity = (u64, u64);

/// Which file lies under a path.
pub(super) fn identity(path: &Path) -> Result<Identity, Fault> {
    fs::metadata(path).map(|found| of(&found)).map_err(|_| gone())
}

/// Which file lies under a path that is its only one: under another one it would have another log beside it.
pub(super) fn only_name(path: &Path) -> Result<Identity, Fault> {
    const LINKED: &str = "the file has several hard links, and under each it would grant the same locks; leave one, or use a file of its own";
    const MOUNTED: &str = "the file is mounted by itself, and whoever reaches it by another way would be granted the same locks; mount its directory";
    const REMOTE: &str = "the file lies on a network file system, across which SQLite's shared memory does not reach; use a local disk for the processes of one machine, or a server";
    let found = fs::metadata(path).map_err(|_| gone())?;
    if is_remote(path) {
        return Err(Fault::Failed(Error::invalid("path", REMOTE)));
    }
    if names(&found) > 1 {
        return Err(Fault::Failed(Error::invalid("path", LINKED)));
    }
    if is_mounted(path) {
        return Err(Fault::Failed(Error::invalid("path", MOUNTED)));
    }
    Ok(of(&found))
}

#[cfg(unix)]
fn of(found: &fs::Metadata) -> Identity {
    use std::os::unix::fs::MetadataExt;
    (found.dev(), found.ino())
}

/// Windows neither deletes nor replaces a file that SQLite has open: under its path there is no other.
#[cfg(windows)]
fn of(_: &fs::Metadata) -> Identity {
    (0, 0)
}

#[cfg(unix)]
fn names(found: &fs::Metadata) -> u64 {
    use std::os::unix::fs::MetadataExt;
    found.nlink()
}

/// The standard library does not count the names of a file on Windows.
#[cfg(windows)]
fn names(_: &fs::Metadata) -> u64 {
    1
}

/// Whether other machines reach this file too, as far as the system tells.
#[cfg(target_os = "linux")]
fn is_remote(path: &Path) -> bool {
    rustix::fs::statfs(path).is_ok_and(|found| is_network(found.f_type as u32))
}

/// Elsewhere Windows tells, by the path without links, which begins with the server's name.
#[cfg(not(target_os = "linux"))]
fn is_remote(path: &Path) -> bool {
    use std::path::{Component, Prefix};
    let Some(Component::Prefix(prefix)) = path.components().next() else { return false };
    matches!(prefix.kind(), Prefix::UNC(..) | Prefix::VerbatimUNC(..))
}

/// Whether a type of file system, by the number that Linux gives it, is one of several machines. FUSE and 9P may be either.
#[cfg(target_os = "linux")]
fn is_network(kind: u32) -> bool {
    const AFS: u32 = 0x5346_414F;
    const CEPH: u32 = 0x00C3_6400;
    const CIFS: u32 = 0xFF53_4D42;
    const GFS2: u32 = 0x0116_1970;
    const LUSTRE: u32 = 0x0BD0_0BD0;
    const NFS: u32 = 0x6969;
    const OCFS2: u32 = 0x7461_636F;
    const SMB: u32 = 0x517B;
    const SMB2: u32 = 0xFE53_4D42;
    matches!(kind, AFS | CEPH | CIFS | GFS2 | LUSTRE | NFS | OCFS2 | SMB | SMB2)
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

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn u25_network_file_systems_are_known() {
        assert!(is_network(0x6969) && is_network(0xFF53_4D42));
        // ext4, tmpfs, overlayfs, btrfs, xfs, FUSE.
        for local in [0xEF53, 0x0102_1994, 0x794C_7630, 0x9123_683E, 0x5846_5342, 0x6573_5546] {
            assert!(!is_network(local), "{local:x}");
        }
        assert!(!is_remote(Path::new("/proc")));
    }
}
