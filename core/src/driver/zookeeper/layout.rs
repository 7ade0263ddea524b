//! Where locks lie: the path of each name, and back.

use std::fmt::Write;

use percent_encoding::percent_decode_str;

use super::node::{Child, Names};
use crate::port::{CellKey, LockKey, Mode};

/// The child of the root under which cells lie. No part of a lock's path is written so.
pub(super) const CELLS: &str = "%cells";
/// The number of folders in which cells lie, so that no list is too long.
const FOLDERS: u64 = 64;

/// The child of a lock's node in which its permits lie.
pub(super) const LEASES: &str = "leases";

/// The paths behind one chroot.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    /// Empty, or a path.
    root: String,
}

impl Layout {
    pub(super) fn new(root: &str) -> Self {
        Self { root: root.to_owned() }
    }

    /// Where all locks lie.
    pub(super) fn root(&self) -> &str {
        if self.root.is_empty() { "/" } else { &self.root }
    }

    /// The node of a lock: its entries but for permits are children of it.
    pub(super) fn folder(&self, lock: &LockKey) -> String {
        let mut path = self.root.clone();
        for (place, part) in lock.as_str().split('/').enumerate() {
            path.push('/');
            path.push_str(&written(part, place == 0 && self.root.is_empty()));
        }
        path
    }

    /// The node whose children are the permits of a lock.
    pub(super) fn leases(&self, lock: &LockKey) -> String {
        format!("{}/{LEASES}", self.folder(lock))
    }

    /// The node whose children are the entries of this mode.
    pub(super) fn folder_of(&self, lock: &LockKey, mode: Mode) -> String {
        if mode == Mode::Permit { self.leases(lock) } else { self.folder(lock) }
    }

    /// The node under which cells lie.
    pub(super) fn cells(&self) -> String {
        format!("{}/{CELLS}", self.root)
    }

    /// The folder of a cell, and its node there.
    pub(super) fn cell(&self, key: &CellKey) -> (String, String) {
        let CellKey { family, name, .. } = key;
        let mut text = String::new();
        for letter in name.chars() {
            if matches!(letter, '%' | '/') || is_refused(letter) {
                escape(&mut text, letter);
            } else {
                text.push(letter);
            }
        }
        let folder = format!("{}/{:02}", self.cells(), remainder(&text));
        let path = format!("{folder}/{}:{text}", family.word());
        (folder, path)
    }

    /// The lock that lies at a path, if one can.
    pub(super) fn lock_at(&self, path: &str) -> Option<LockKey> {
        let parts = path.strip_prefix(&*self.root)?.strip_prefix('/')?.split('/');
        let read: Option<Vec<_>> = parts.map(read).collect();
        let lock = LockKey::new(read?.join("/"));
        // Others may write a name in another way. That is another path.
        (self.folder(&lock) == path).then_some(lock)
    }
}

/// The remainder of a name's number (FNV-1a in 64 bits) after division by the number of folders.
fn remainder(name: &str) -> u64 {
    let more = |sum: u64, byte: u8| (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    name.bytes().fold(0xcbf2_9ce4_8422_2325, more) % FOLDERS
}

/// Whether no part of a path may contain this letter. Letters beyond 16 bits are two of Java's, which are refused.
fn is_refused(letter: char) -> bool {
    matches!(letter, '\0'..='\x1f' | '\x7f'..='\u{9f}' | '\u{e000}'..='\u{f8ff}' | '\u{fff0}'..)
}

/// A part of a name as a part of a path. What the server refuses, and what would be taken for something else, is written by `%`.
fn written(part: &str, first: bool) -> String {
    let mut text = String::new();
    for letter in part.chars() {
        if letter == '%' || is_refused(letter) {
            escape(&mut text, letter);
        } else {
            text.push(letter);
        }
    }
    let reserved = first && text == "zookeeper";
    if matches!(&*text, "." | "..")
        || reserved
        || Child::read(&text, Names::Curator) != Child::Other
    {
        let last = text.pop().unwrap_or_default();
        escape(&mut text, last);
    }
    if text.is_empty() { "%".to_owned() } else { text }
}

fn escape(text: &mut String, letter: char) {
    for byte in letter.encode_utf8(&mut [0; 4]).bytes() {
        let _ = write!(text, "%{byte:02X}");
    }
}

fn read(part: &str) -> Option<String> {
    if part == "%" {
        return Some(String::new());
    }
    percent_decode_str(part).decode_utf8().ok().map(std::borrow::Cow::into_owned)
}

/// Whether a path can be a chroot.
pub(super) fn is_path(path: &str) -> bool {
    let plain = |part: &str| {
        !matches!(part, "" | "." | "..")
            && !part.contains(is_refused)
            && Child::read(part, Names::Curator) == Child::Other
    };
    path.split('/').all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::port::Family;

    #[test]
    fn each_name_has_a_path_of_its_own() {
        let layout = Layout::new("/locks");
        let names = [
            "orders/42",
            "",
            "/",
            "//",
            "a/",
            ".",
            "..",
            "...",
            "a/./b",
            "%",
            "%25",
            "%2E",
            "ü/\u{7f}",
            "zookeeper",
            "leases",
            "a/leases",
            "\0",
            "\u{e000}",
            "\u{ffff}",
            "\u{1f600}",
            "lock-0000000001",
            "lock-000000000%31",
            "x/_c_y-lease-0000000001",
            "a__lock__-2147483648",
        ];
        let mut paths = Vec::new();
        for name in names {
            let lock = LockKey::new(name);
            let path = layout.folder(&lock);
            assert_eq!(layout.lock_at(&path), Some(lock), "{path}");
            let parts = path.strip_prefix('/').expect("it is absolute");
            assert!(is_path(parts), "{path}");
            assert!(!paths.contains(&path), "{path}");
            paths.push(path);
        }
        assert_eq!(paths[0], "/locks/orders/42");
        assert_eq!(Layout::new("").folder(&LockKey::new("zookeeper")), "/zookeepe%72");
    }

    #[test]
    fn each_cell_has_a_node_of_its_own_where_no_lock_lies() {
        let layout = Layout::new("/locks");
        let mut paths = Vec::new();
        for name in ["stock", "stock/7", "stock%2F7", "", ".", "\0", "lock-0000000001"] {
            for family in Family::ALL {
                let (folder, path) = layout.cell(&CellKey::new(family, name));
                assert!(
                    path.starts_with(&folder) && folder.starts_with("/locks/%cells/"),
                    "{path}"
                );
                assert_eq!(path.matches('/').count(), 4, "{path}");
                assert_eq!(layout.lock_at(&path), None);
                assert!(!paths.contains(&path), "{path}");
                paths.push(path);
            }
        }
        assert_eq!(paths[0], "/locks/%cells/53/version:stock");
    }

    #[test]
    fn a_path_that_is_written_otherwise_is_no_lock() {
        let layout = Layout::new("/locks");
        for path in ["/locks", "/other/x", "/locks/%41", "/locks/%zz", "/locks/%FF"] {
            assert_eq!(layout.lock_at(path), None, "{path}");
        }
        for chroot in ["a//b", ".", "a/..", "a\u{1}", "lock-0000000001", ""] {
            assert!(!is_path(chroot), "{chroot:?}");
        }
    }
}
