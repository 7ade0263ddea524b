//! Where the database is, and the credentials. The password goes to the server only.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use percent_encoding::percent_decode_str;
use url::Url;

use super::host::{Host, is_encrypted};
use crate::driver::password_file::PasswordFile;
use crate::driver::{hosts, socket_file};
use crate::error::{Error, Result};
use crate::options::Options;

/// The rules for URLs that differ from one kind of database to the other.
pub struct Rules {
    pub(in crate::driver) schemes: &'static [&'static str],
    /// The port, where a URL has none.
    pub(in crate::driver) port: u16,
    /// The socket file that a path and a port stand for.
    pub(in crate::driver) socket: fn(String, u16) -> String,
    pub(in crate::driver) malformed: fn() -> Error,
}

/// The servers, of which one that takes writes is used, our credentials and the database.
#[derive(Clone)]
pub struct Address<T> {
    pub(in crate::driver) hosts: Vec<Host>,
    /// Which of them was used last.
    pub(in crate::driver) used: Arc<AtomicUsize>,
    pub(in crate::driver) user: String,
    pub(in crate::driver) database: String,
    password: Option<Vec<u8>>,
    password_file: Option<PasswordFile>,
    pub(in crate::driver) tls: Option<T>,
}

impl<T> fmt::Debug for Address<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<T> fmt::Display for Address<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hosts::shown(&self.hosts))
    }
}

impl<T> Address<T> {
    /// Reads `scheme://user[:password]@host[:port][,host[:port]...]/database`. `others` are the hosts behind the first, which a URL
    /// cannot hold.
    pub(in crate::driver) fn parse(
        url: &Url,
        others: &[String],
        options: &Options,
        rules: &Rules,
        tls: impl FnOnce(&Options) -> Result<T>,
    ) -> Result<Self> {
        let address = Self::read(url, others, rules)?;
        let tls = is_encrypted(&address.hosts, options)?.then(|| tls(options)).transpose()?;
        let password_file = PasswordFile::of(options, url.password().is_some())?;
        Ok(Self { password_file, tls, ..address })
    }

    /// The same without what TLS takes, which lies in files.
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
        let password = url.password().map(|text| percent_decode_str(text).collect());
        let used = Arc::default();
        Ok(Self { hosts, used, user, database, password, password_file: None, tls: None })
    }

    /// The password as it is now.
    pub(in crate::driver) fn password(&self) -> Option<Vec<u8>> {
        let of_file = self.password_file.as_ref().map(|file| file.now().into_bytes());
        of_file.or_else(|| self.password.clone())
    }
}

/// A part of a URL as text.
fn decoded(text: &str, rules: &Rules) -> Result<String> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Code;

    const RULES: Rules = Rules {
        schemes: &["db", "database"],
        port: 5432,
        socket: |folder, port| format!("{folder}/.s.{port}"),
        malformed: || Error::invalid("url", "the URL must look like this"),
    };

    fn read(url: &str, others: &[&str]) -> Result<Address<()>> {
        let others: Vec<_> = others.iter().map(|&host| host.to_owned()).collect();
        Address::read(&Url::parse(url).unwrap(), &others, &RULES)
    }

    #[test]
    fn servers_are_many_and_a_password_shows_nowhere() {
        let address = read("db://me:hunter%2B2@a/locks%20x?ttl=5s", &["b:7", "[::1]"]).unwrap();
        assert_eq!(format!("{address} {address:?}"), "a:5432,b:7,[::1]:5432 a:5432,b:7,[::1]:5432");
        assert_eq!((&*address.user, &*address.database), ("me", "locks x"));
        assert_eq!(address.password().unwrap(), b"hunter+2");
        let socket = read("database://me@%2Frun%2Fpg:5433/db", &[]).unwrap();
        assert_eq!(socket.hosts, [Host::Unix("/run/pg/.s.5433".to_owned())]);
        assert_eq!(socket.password(), None);
    }

    #[test]
    fn what_leaves_the_machine_is_encrypted_unless_said_otherwise() {
        for (host, here) in [
            ("localhost", true),
            ("127.8.0.1", true),
            ("[::1]", true),
            ("%2Frun", true),
            ("db", false),
            ("10.0.0.1", false),
        ] {
            let address = read(&format!("db://me@{host}/db"), &[]).unwrap();
            assert_eq!(address.hosts[0].is_here(), here, "{host}");
        }
    }

    #[test]
    fn what_cannot_be_connected_to_is_refused_without_being_repeated() {
        for (url, others) in [
            ("http://a", &[][..]),
            ("db:///x", &[]),
            ("db://me:hunter2@a", &[]),
            ("db://:hunter2@a/x", &[]),
            ("db://me:hunter2@a/%00", &[]),
            ("db://me:hunter2@a/x", &["b:port"]),
            ("db://me:hunter2@a/x", &["you:hunter2@b"]),
            ("db://me:hunter2@a/x", &[""]),
        ] {
            let error = read(url, others).unwrap_err();
            assert_eq!(error.code(), Code::Invalid, "{url}");
            assert!(!format!("{error} {error:?}").contains("hunter2"), "{url}");
        }
    }
}
