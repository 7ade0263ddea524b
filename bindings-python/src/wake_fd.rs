//! A file descriptor that an event loop watches, and any thread may ring.

use std::io;
#[cfg(not(target_os = "linux"))]
use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd, RawFd};

#[cfg(target_os = "linux")]
use rustix::event::{EventfdFlags, eventfd};
#[cfg(target_os = "linux")]
use std::os::fd::OwnedFd;
#[cfg(not(target_os = "linux"))]
use std::os::unix::net::UnixStream;

/// See the module.
#[cfg(target_os = "linux")]
pub(crate) struct WakeFd(OwnedFd);

#[cfg(target_os = "linux")]
impl WakeFd {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    /// What the loop watches.
    pub(crate) fn descriptor(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }

    /// Wakes the loop. A descriptor that is readable already stays so.
    pub(crate) fn ring(&self) {
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }

    /// Stills it.
    pub(crate) fn hush(&self) {
        let _ = rustix::io::read(&self.0, &mut [0; 8]);
    }
}

/// See the module.
#[cfg(not(target_os = "linux"))]
pub(crate) struct WakeFd {
    rope: UnixStream,
    clapper: UnixStream,
}

#[cfg(not(target_os = "linux"))]
impl WakeFd {
    pub(crate) fn new() -> io::Result<Self> {
        let (rope, clapper) = UnixStream::pair()?;
        rope.set_nonblocking(true)?;
        clapper.set_nonblocking(true)?;
        Ok(Self { rope, clapper })
    }

    /// What the loop watches.
    pub(crate) fn descriptor(&self) -> RawFd {
        self.clapper.as_fd().as_raw_fd()
    }

    /// Wakes the loop. A descriptor that is readable already stays so.
    pub(crate) fn ring(&self) {
        let _ = (&self.rope).write(&[1]);
    }

    /// Stills it.
    pub(crate) fn hush(&self) {
        let _ = (&self.clapper).read(&mut [0; 64]);
    }
}
