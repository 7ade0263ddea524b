//! How a hold stands beside others: alone, shared among readers, or one of so many permits.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The way of holding a lock: it decides what the holder may do, and who may hold beside it.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// The only holder of a mutex.
    #[default]
    Exclusive,
    /// One of any number of readers.
    Read,
    /// The writer: nobody beside it.
    Write,
    /// One of a limited number of permits.
    Permit,
}

impl Mode {
    /// The kind of lock that is held in this mode.
    pub const fn kind(self) -> Kind {
        match self {
            Self::Exclusive => Kind::Mutex,
            Self::Read | Self::Write => Kind::ReadWrite,
            Self::Permit => Kind::Semaphore,
        }
    }

    /// Whether nobody may hold beside it, so that a hold can pass from waiter to waiter inside a client.
    pub const fn is_exclusive(self) -> bool {
        matches!(self, Self::Exclusive | Self::Write)
    }
}

/// The kind that a name is used as. While it is in use as one kind, it cannot be taken as another.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// One holder.
    #[default]
    Mutex,
    /// Readers, or one writer.
    ReadWrite,
    /// So many permits.
    Semaphore,
}

impl Kind {
    /// The kind in words, for errors.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Mutex => "mutex",
            Self::ReadWrite => "read-write lock",
            Self::Semaphore => "semaphore",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}
