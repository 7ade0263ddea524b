//! The parts of a database's URL: servers, a user and a database.

use percent_encoding::percent_decode_str;
use url::Url;

use super::host::Host;
use crate::driver::{hosts, socket_file};
use crate::error::{Error, Result};

/// The servers, the user and the database to connect to. The driver reads the password, as its protocol says what it may be.
pub(in crate::driver) struct Place {
    pub(in crate::driver) hosts: Vec<Host>,
    pub(in crate::driver) user: String,
    pub(in crate::driver) database: String,
}

/// The rules for URLs that differ from one kind of database to the other.
pub(in crate::driver) struct Rules {
    pub(in crate::driver) schemes: &'static [&'static str],
    /// The port, where a URL has none.
    pub(in crate::driver) port: u16,
    /// The socket file that a path and a port stand for.
    pub(in crate::driver) socket: fn(String, u16) -> String,
    pub(in crate::driver) malformed: fn() -> Error,
}

impl Place {
    /// Reads `scheme://user[:password]@host[:port][,host[:port]...]/database`. `others` are the hosts behind the first, which a URL
    /// cannot hold.
    pub(in crate::driver) fn read(url: &Url, others: &[String], rules: &Rules) -> Result<Self> {
        if !rules.schemes.contains(&url.scheme()) {
            return Err((rules.malformed)());
        }
        let hosts = hosts::each(url, others, rules.malformed, |url| host(url, rules))?;
        let (user, database) =
            (decoded(url.username(), rules)?, decoded(url.path().trim_start_matches('/'), rules)?);
        let scheme = url.scheme();
        for (part, named) in [("user", &user), ("database", &database)] {
            if named.is_empty() {
                let message = format!(
                    "the URL names no {part}; write `{scheme}://user[:password]@host/database`"
                );
                return Err(Error::invalid("url", message));
            }
        }
        // The protocols end each of these with a zero.
        if format!("{user}{database}").contains('\0') {
            return Err((rules.malformed)());
        }
        Ok(Self { hosts, user, database })
    }
}

/// A part of a URL as text.
pub(in crate::driver) fn decoded(text: &str, rules: &Rules) -> Result<String> {
    let decoded = percent_decode_str(text).decode_utf8().map_err(|_| (rules.malformed)())?;
    Ok(decoded.into_owned())
}

fn host(url: &Url, rules: &Rules) -> Result<Host> {
    let port = url.port().unwrap_or(rules.port);
    let name = match url.host() {
        Some(url::Host::Ipv6(address)) => address.to_string(),
        Some(host) => host.to_string(),
        None => String::new(),
    };
    match decoded(&name, rules)? {
        name if name.is_empty() => Err((rules.malformed)()),
        path if path.starts_with('/') => {
            socket_file::check()?;
            Ok(Host::Unix((rules.socket)(path, port)))
        }
        name => Ok(Host::Tcp(hosts::Host { name, port })),
    }
}
