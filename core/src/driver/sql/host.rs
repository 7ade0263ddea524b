//! Where one server of a database listens, and whether the way there is encrypted.

use std::fmt;

use crate::driver::hosts;
use crate::error::{Error, Result};
use crate::options::{Options, SslMode};

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
