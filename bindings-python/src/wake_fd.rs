//! A file descriptor that an event loop watches, and any thread may ring.

use std::io;
#[cfg(not(target_os = "linux"))]
use std::io::{Read, Write};
#[cfg(windows)]
use std::net::{Ipv4Addr, TcpListener, TcpStream as Stream};
#[cfg(unix)]
use std::os::fd::{AsRawFd, RawFd as RawDescriptor};
#[cfg(all(unix, not(target_os = "linux")))]
use std::os::unix::net::UnixStream as Stream;
#[cfg(windows)]
use std::os::windows::io::{AsRawSocket, RawSocket as RawDescriptor};

#[cfg(target_os = "linux")]
use rustix::event::{EventfdFlags, eventfd};
#[cfg(target_os = "linux")]
use std::os::fd::OwnedFd;

/// The number by which an event loop knows it.
pub(crate) type Descriptor = RawDescriptor;

/// See the module.
#[cfg(target_os = "linux")]
pub(crate) struct WakeFd(OwnedFd);

#[cfg(target_os = "linux")]
impl WakeFd {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    /// The socket that the loop watches.
    pub(crate) fn descriptor(&self) -> Descriptor {
        self.0.as_raw_fd()
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
    rope: Stream,
    clapper: Stream,
}

#[cfg(all(unix, not(target_os = "linux")))]
fn pair() -> io::Result<(Stream, Stream)> {
    Stream::pair()
}

/// Windows has no pairs, and its event loop watches sockets only.
#[cfg(windows)]
fn pair() -> io::Result<(Stream, Stream)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let rope = Stream::connect(listener.local_addr()?)?;
    let (clapper, from) = listener.accept()?;
    // Another program may have come first.
    if from != rope.local_addr()? {
        return Err(io::ErrorKind::ConnectionRefused.into());
    }
    rope.set_nodelay(true)?;
    Ok((rope, clapper))
}

#[cfg(not(target_os = "linux"))]
impl WakeFd {
    pub(crate) fn new() -> io::Result<Self> {
        let (rope, clapper) = pair()?;
        rope.set_nonblocking(true)?;
        clapper.set_nonblocking(true)?;
        Ok(Self { rope, clapper })
    }

    /// The socket that the loop watches.
    #[cfg(unix)]
    pub(crate) fn descriptor(&self) -> Descriptor {
        self.clapper.as_raw_fd()
    }

    /// The socket that the loop watches.
    #[cfg(windows)]
    pub(crate) fn descriptor(&self) -> Descriptor {
        self.clapper.as_raw_socket()
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
