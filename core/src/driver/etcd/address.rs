//! Where the members of a cluster are, and the credentials. The password never leaves this file but to them.

use std::fmt;

use url::Url;

use super::message::Authenticate;
pub(super) use crate::driver::hosts::Host;
use crate::driver::hosts::shown;
use crate::driver::members::Members;
use crate::driver::tls::Tls;
use crate::error::{Error, Result};
use crate::options::Options;

const PORT: u16 = 2379;

/// The members, our credentials there, and what stands before all keys.
#[derive(Clone)]
pub(super) struct Address {
    pub(super) hosts: Vec<Host>,
    /// Empty, or with a slash at its end.
    pub(super) prefix: String,
    pub(super) tls: Option<Tls>,
    pub(super) user: Option<Authenticate>,
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&shown(&self.hosts))
    }
}

impl Address {
    /// Reads `etcd[s]://[user:password@]host[:port][,host[:port]...][/prefix]`. `others` are the hosts behind the first, which a URL
    /// cannot hold.
    pub(super) fn parse(url: &Url, others: &[String], options: &Options) -> Result<Self> {
        let address = Self::read(url, others)?;
        let secure = url.scheme() == "etcds";
        let tls = secure.then(|| Tls::new(options)).transpose()?;
        Ok(Self { tls: tls.map(|tls| tls.speaking(b"h2")), ..address })
    }

    /// The same without what TLS takes, which lies in files.
    pub(super) fn read(url: &Url, others: &[String]) -> Result<Self> {
        if !matches!(url.scheme(), "etcd" | "etcds") {
            return Err(malformed());
        }
        let Members { hosts, user, path } = Members::read(url, others, PORT, malformed)?;
        let user = user.map(|(name, password)| Authenticate { name, password });
        let prefix = if path.is_empty() { String::new() } else { format!("{path}/") };
        Ok(Self { hosts, prefix, tls: None, user })
    }
}

fn malformed() -> Error {
    Error::invalid(
        "url",
        "the URL must look like `etcd://[user:password@]host[:port][,host[:port]...][/prefix]` (`etcds://` with TLS)",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Code;

    fn read(url: &str, others: &[&str]) -> Result<Address> {
        let others: Vec<_> = others.iter().map(|&host| host.to_owned()).collect();
        Address::read(&Url::parse(url).unwrap(), &others)
    }

    #[test]
    fn members_are_many_and_a_password_shows_nowhere() {
        let address =
            read("etcd://me:hunter%2B2@a/locks%20of/x?ttl=5s", &["b:7", "[::1]"]).unwrap();
        assert_eq!(format!("{address} {address:?}"), "a:2379,b:7,[::1]:2379 a:2379,b:7,[::1]:2379");
        assert_eq!(address.prefix, "locks of/x/");
        let user = address.user.unwrap();
        assert_eq!((&*user.name, &*user.password), ("me", "hunter+2"));
        assert!(!format!("{user:?}").contains("hunter"));
        assert_eq!(read("etcd://a:1", &[]).unwrap().prefix, "");
    }

    #[test]
    fn what_cannot_be_connected_to_is_refused_without_being_repeated() {
        for (url, others) in [
            ("http://a", &[][..]),
            ("etcd:///x", &[]),
            ("etcd://me@a", &[]),
            ("etcd://:hunter2@a", &[]),
            ("etcd://me:hunter2@a", &["b:port"]),
            ("etcd://me:hunter2@a", &["you:hunter2@b"]),
            ("etcd://me:hunter2@a", &[""]),
        ] {
            let error = read(url, others).unwrap_err();
            assert_eq!(error.code(), Code::Invalid, "{url}");
            assert!(!format!("{error} {error:?}").contains("hunter2"), "{url}");
        }
    }
}
