//! The names in a step: the lock, and the attempt that wants it.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::runtime::Runtime;

/// How what lies under a lock's key is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Layout {
    /// The store's own way.
    #[default]
    Own,
    /// Redis: a string key with the owner id, as many libraries write their locks.
    Plain,
    /// Redis: as Redisson writes its locks.
    Redisson,
    /// ZooKeeper: as kazoo writes its locks.
    Kazoo,
    /// A database: as `ShedLock` writes its locks.
    Shedlock,
    /// A database: as Spring Integration writes its locks.
    Spring,
}

/// A lock as the store sees it: the dialect's prefix and the name, as one key, and its layout. Cheap to clone. Two keys of
/// the same text and layout are the same, whichever prefix they come from.
#[derive(Clone)]
pub struct LockKey {
    text: Arc<str>,
    /// How many bytes of it are the dialect's.
    prefix: u32,
    layout: Layout,
}

impl LockKey {
    /// The key under which the store keeps the lock.
    pub fn new(key: impl Into<Arc<str>>) -> Self {
        Self { text: key.into(), prefix: 0, layout: Layout::Own }
    }

    /// The key of this name where it is laid out like this.
    pub fn laid_out(layout: Layout, name: impl Into<Arc<str>>) -> Self {
        Self { layout, ..Self::new(name) }
    }

    /// The key of this name in a plain dialect, which puts a prefix before it.
    pub fn plain(prefix: &str, name: &str) -> Self {
        let length = u32::try_from(prefix.len()).expect("a dialect's prefix is short");
        Self { prefix: length, ..Self::laid_out(Layout::Plain, [prefix, name].concat()) }
    }

    /// The key as text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// How it is laid out.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// The dialect's prefix and the name.
    pub fn split(&self) -> (&str, &str) {
        self.text.split_at(self.prefix as usize)
    }
}

impl PartialEq for LockKey {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text && self.layout == other.layout
    }
}

impl Eq for LockKey {}

impl PartialOrd for LockKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for LockKey {
    fn cmp(&self, other: &Self) -> Ordering {
        self.text.cmp(&other.text).then(self.layout.cmp(&other.layout))
    }
}

impl Hash for LockKey {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.text.hash(hasher);
        self.layout.hash(hasher);
    }
}

impl fmt::Debug for LockKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.layout {
            Layout::Own => self.text.fmt(f),
            layout => write!(f, "{:?} ({layout:?})", self.text),
        }
    }
}

/// An unguessable 128-bit value that proves a hold. Every remote attempt draws a new one, so late packets of older
/// attempts change nothing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct OwnerId(uuid::Uuid);

impl OwnerId {
    /// No attempt has this one.
    pub const NOBODY: Self = Self(uuid::Uuid::nil());

    /// Draws a new one.
    pub fn draw(runtime: &dyn Runtime) -> Self {
        let mut bytes = [0; 16];
        runtime.random(&mut bytes);
        Self(uuid::Builder::from_random_bytes(bytes).into_uuid())
    }

    /// Reads the text form back, as a store returns it.
    pub fn parse(text: &str) -> Option<Self> {
        uuid::Uuid::try_parse(text).ok().map(Self)
    }

    /// Writes the 32 hexadecimal digits every dialect stores into `buffer`.
    pub fn encode(self, buffer: &mut [u8; 32]) -> &str {
        self.0.as_simple().encode_lower(buffer)
    }

    /// The form with hyphens, in which Java writes it.
    #[cfg(any(feature = "redis", feature = "host"))]
    pub(crate) fn hyphenated(self) -> impl fmt::Display {
        self.0.hyphenated()
    }
}

impl fmt::Display for OwnerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_simple().fmt(f)
    }
}

/// Shows the first eight digits only: whoever has the whole value can release the lock.
impl fmt::Debug for OwnerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}..", self.0.as_fields().0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_differ_look_different() {
        let (own, other) = (LockKey::new("a"), LockKey::laid_out(Layout::Redisson, "a"));
        assert_ne!(own, other);
        assert_eq!(format!("{own:?}, {other:?}"), r#""a", "a" (Redisson)"#);
        // Where the dialect's part ends makes no other lock of it.
        assert_eq!(LockKey::plain("a:", "b"), LockKey::plain("", "a:b"));
    }
}
