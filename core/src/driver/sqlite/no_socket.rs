//! A stand-in for the sockets on Windows, which has none that take datagrams: waiters are polled for.

use std::convert::Infallible;
use std::io::{self, ErrorKind};
use std::path::Path;

/// There is none.
pub(super) struct Socket(Infallible);

impl Socket {
    pub(super) fn unbound() -> io::Result<Self> {
        Err(ErrorKind::Unsupported.into())
    }

    pub(super) fn bind(_: &Path) -> io::Result<Self> {
        Self::unbound()
    }

    pub(super) fn send_to(&self, _: &[u8], _: &Path) -> io::Result<()> {
        match self.0 {}
    }

    pub(super) fn listen(self) -> io::Result<Ear> {
        match self.0 {}
    }
}

/// There is none.
pub(super) struct Ear(Infallible);

impl Ear {
    #[allow(clippy::unused_async)] // As its counterpart, which does hear.
    pub(super) async fn hear(&self, _: &mut [u8]) -> io::Result<usize> {
        match self.0 {}
    }
}

/// That cannot be told: others may listen where this system has no way to look.
pub(super) fn is_dead(_: &Path) -> bool {
    false
}

pub(super) fn is_refusal(_: ErrorKind) -> bool {
    false
}

pub(super) fn made_at(_: &Path) -> Option<i64> {
    None
}
