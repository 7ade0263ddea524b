//! Where one server of a database listens, whether the way there is encrypted, and of several servers the one that takes writes.

use std::fmt;
use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::fault::absent;
use crate::driver::hosts;
use crate::driver::within::within;
use crate::error::{Error, Result};
use crate::options::{Options, SslMode};
use crate::port::RuntimeHandle;

/// Where one server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Host {
    Tcp(hosts::Host),
    /// The path of a socket.
    Unix(String),
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(host) => host.fmt(f),
            Self::Unix(path) => f.write_str(path),
        }
    }
}

impl Host {
    /// Whether what is sent there stays on this machine.
    pub(in crate::driver) fn is_here(&self) -> bool {
        match self {
            Self::Unix(_) => true,
            Self::Tcp(hosts::Host { name, .. }) => {
                name.parse().map_or(name == "localhost", |ip: std::net::IpAddr| ip.is_loopback())
            }
        }
    }
}

/// Whether connections to these hosts are encrypted, by `sslmode`.
pub(in crate::driver) fn is_encrypted(hosts: &[Host], options: &Options) -> Result<bool> {
    let wanted = match options.sslmode {
        SslMode::Disable => false,
        SslMode::Auto => !hosts.iter().all(Host::is_here),
        SslMode::VerifyFull | SslMode::VerifyCa
            if hosts.iter().any(|host| matches!(host, Host::Unix(_))) =>
        {
            let message = "a socket file has no TLS; leave `sslmode` out";
            return Err(Error::invalid("sslmode", message));
        }
        SslMode::VerifyFull | SslMode::VerifyCa => true,
    };
    if let (false, Some(option)) = (wanted, options.of_tls()) {
        let message = format!(
            "nothing is encrypted here, so `{option}` would change nothing; leave it out, or add `sslmode=verify-full`"
        );
        return Err(Error::invalid(option, message));
    }
    Ok(wanted)
}

/// Tries the hosts in turn until `open` succeeds at one, and begins with the one that was `used` last. Each has an equal share of the time
/// that is left of `limit`, so one that is silent does not keep the others from being asked. Fails with the first error that does not go by
/// itself, otherwise with the last.
pub(in crate::driver) async fn first_host<T, F: Future<Output = Result<T>>>(
    hosts: &[Host],
    used: &AtomicUsize,
    runtime: &RuntimeHandle,
    limit: Duration,
    mut open: impl FnMut(Host) -> F,
) -> Result<(T, Host)> {
    let (end, first) = (runtime.now() + limit, used.load(Ordering::Relaxed));
    let mut refusal: Option<Error> = None;
    for tried in 0..hosts.len() {
        let at = (first + tried) % hosts.len();
        let host = &hosts[at];
        let left = end.since(runtime.now());
        let share = left / u32::try_from(hosts.len() - tried).unwrap_or(u32::MAX);
        let opened = within(runtime, share, open(host.clone())).await;
        match opened.unwrap_or_else(|| Err(absent(host, "it took too long"))) {
            Ok(opened) => {
                used.store(at, Ordering::Relaxed);
                return Ok((opened, host.clone()));
            }
            Err(error) if refusal.as_ref().is_none_or(Error::retryable) => refusal = Some(error),
            Err(_) => {}
        }
    }
    Err(refusal.unwrap_or_else(Error::closed))
}
