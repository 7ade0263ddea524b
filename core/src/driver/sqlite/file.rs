//! The file: a path that can serve, and a database of fencelock's own.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use rusqlite::Connection;

use super::fault::Fault;
use super::{cell, row};
use crate::error::{Code, Error};

/// SQLite's `application_id` of our files: "fenc".
const APPLICATION: i64 = 0x6665_6E63;
/// The layout of our tables. A file of another one is not touched.
const LAYOUT: i64 = 5;

/// The device and number of a file.
pub(super) type Identity = (u64, u64);

/// Says what is wrong with a path before SQLite says less.
pub(super) fn check_path(path: &Path) -> Result<(), Fault> {
    let invalid = |message| Err(Error::invalid("path", message).into());
    if path.as_os_str().is_empty() || path.ends_with(":memory:") {
        return invalid("give the path of a file; locks in memory are `memory:`");
    }
    let place = match fs::metadata(path) {
        Ok(found) if found.is_dir() => {
            return invalid("the path is a directory; give the path of a file in it");
        }
        Ok(found) if !found.is_file() => return invalid("the path is not a regular file"),
        Ok(_) => path,
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            let message = "this user may not look into the file's directory";
            return Err(Error::new(Code::Auth, message).into());
        }
        Err(_) => match path.parent() {
            Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
            Some(parent) if parent.is_dir() => parent,
            _ => return invalid("the file's directory does not exist; make it first"),
        },
    };
    if is_remote(place) {
        return invalid(
            "the file lies on a network file system, across which SQLite's shared memory does not reach; use a local disk for the processes of one machine, or a server",
        );
    }
    Ok(())
}

/// Whether other machines reach this place too, as far as the system tells.
#[cfg(target_os = "linux")]
fn is_remote(place: &Path) -> bool {
    rustix::fs::statfs(place).is_ok_and(|found| is_network(found.f_type as u32))
}

/// Elsewhere it is not asked.
#[cfg(not(target_os = "linux"))]
fn is_remote(_: &Path) -> bool {
    false
}

/// Whether a type of file system, by the number that Linux gives it, is one of several machines. FUSE and 9P may be either.
#[cfg(target_os = "linux")]
fn is_network(kind: u32) -> bool {
    // In this order: AFS, Ceph, CIFS, GFS2, Lustre, NFS, OCFS2, SMB, SMB2.
    matches!(
        kind,
        0x5346_414F
            | 0x00C3_6400
            | 0xFF53_4D42
            | 0x0116_1970
            | 0x0BD0_0BD0
            | 0x6969
            | 0x7461_636F
            | 0x517B
            | 0xFE53_4D42
    )
}

/// Which file lies under a path.
pub(super) fn identity(path: &Path) -> Result<Identity, Fault> {
    fs::metadata(path).map(|found| identity_of(&found)).map_err(|_| gone())
}

#[cfg(unix)]
fn identity_of(found: &fs::Metadata) -> Identity {
    use std::os::unix::fs::MetadataExt;
    (found.dev(), found.ino())
}

/// Windows neither deletes nor replaces a file that SQLite has open: under its path there is no other.
#[cfg(windows)]
fn identity_of(_: &fs::Metadata) -> Identity {
    (0, 0)
}

/// The fault of a file that is not the one it was.
pub(super) fn gone() -> Fault {
    let message = "the database file was deleted or replaced while it was open, so its locks exclude nobody; connect again";
    Error::new(Code::Conflict, message).into()
}

/// Whether our tables are in it; `false` for a new file. Refuses the database of somebody else.
fn is_ours(connection: &Connection) -> Result<bool, Fault> {
    const TABLES: &str = "SELECT EXISTS (SELECT 1 FROM sqlite_schema)";
    const FOREIGN: &str = "the file is a database with tables of another program; locks need a file that only fencelock opens, since a long transaction in it would stop every lock, and SQLite drops its file locks when another library in this process closes the file; give another path, as `locks.db`";
    // Before the id: another client may make a new file ours, in one commit, between these two looks.
    let has_tables: bool = connection.query_row(TABLES, [], |row| row.get(0))?;
    let id = number(connection, "application_id")?;
    if id == APPLICATION {
        let layout = number(connection, "user_version")?;
        if layout != LAYOUT {
            let message = "the file's locks were laid out by another version of fencelock; use that version, or another file";
            let error = Error::new(Code::Conflict, message);
            return Err(error.with("layout", layout.to_string()).into());
        }
        return Ok(true);
    }
    if id != 0 || has_tables {
        return Err(Error::invalid("path", FOREIGN).into());
    }
    Ok(false)
}

/// Refuses the database of somebody else, before anything in it is changed.
pub(super) fn check_ours(connection: &Connection) -> Result<(), Fault> {
    is_ours(connection).map(drop)
}

/// Makes our tables in a new file, and makes sure that they are the ones our statements need.
pub(super) fn make_ours(connection: &Connection) -> Result<(), Fault> {
    if !is_ours(connection)? {
        connection.execute_batch("BEGIN IMMEDIATE")?;
        // Another client may have been faster.
        if !is_ours(connection)? {
            connection.execute_batch(row::TABLES)?;
            connection.execute_batch(cell::TABLE)?;
            connection.pragma_update(None, "application_id", APPLICATION)?;
            connection.pragma_update(None, "user_version", LAYOUT)?;
        }
        connection.execute_batch("COMMIT")?;
    }
    cell::check(connection)?;
    row::check(connection)
}

fn number(connection: &Connection, pragma: &str) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, pragma, |row| row.get(0))
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_another_client_makes_between_two_looks_is_ours() {
        use rusqlite::hooks::{AuthAction, AuthContext, Authorization};

        let folder = std::env::temp_dir().join(format!("fencelock-made-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("locks.db");
        let mut connection = Connection::open(&path).unwrap();
        let (mut id, mut tables, mut made) = (false, false, false);
        let between = move |asked: AuthContext<'_>| {
            id |= matches!(asked.action, AuthAction::Pragma { pragma_name: "application_id", .. });
            tables |= matches!(asked.action, AuthAction::Read { .. });
            // The second of the two looks is about to begin.
            if id && tables && !std::mem::replace(&mut made, true) {
                make_ours(&Connection::open(&path).unwrap()).ok().unwrap();
            }
            Authorization::Allow
        };
        connection.authorizer(Some(between)).unwrap();
        assert!(matches!(is_ours(&connection), Ok(true)));
        fs::remove_dir_all(folder).unwrap();
    }

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
