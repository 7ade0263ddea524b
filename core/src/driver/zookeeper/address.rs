//! Where the members of an ensemble are, and the credentials. The password never leaves this file but to them.

use std::fmt;
use std::sync::Arc;

use url::Url;

use super::layout::is_path;
use crate::driver::hosts::{Host, shown};
use crate::driver::members::Members;
use crate::driver::tls::Tls;
use crate::error::{Error, Result};
use crate::options::Options;

const PORT: u16 = 2181;
/// That of members that speak TLS, in ZooKeeper's own documentation.
const SECURE_PORT: u16 = 2281;

/// The members, our credentials there, and the node under which all locks lie.
#[derive(Clone)]
pub(super) struct Address {
    pub(super) hosts: Vec<Host>,
    /// Empty, or a path.
    pub(super) root: String,
    /// `user:password`, as the scheme `digest` takes it.
    /// There is no SASL: the library's DIGEST-MD5 draws its nonce from a generator that is not made for secrets.
    pub(super) digest: Option<String>,
    pub(super) tls: Option<Arc<Tls>>,
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
    /// Reads `zookeeper[s]://[user:password@]host[:port][,host[:port]...][/chroot]`. `others` are the hosts behind the first, which a
    /// URL cannot hold.
    pub(super) fn parse(url: &Url, others: &[String], options: &Options) -> Result<Self> {
        let address = Self::read(url, others)?;
        let secure = url.scheme() == "zookeepers";
        Ok(Self { tls: secure.then(|| Tls::new(options).map(Arc::new)).transpose()?, ..address })
    }

    /// The same without what TLS takes, which lies in files.
    pub(super) fn read(url: &Url, others: &[String]) -> Result<Self> {
        let port = match url.scheme() {
            "zookeeper" => PORT,
            "zookeepers" => SECURE_PORT,
            _ => return Err(malformed()),
        };
        let Members { hosts, user, path } = Members::read(url, others, port, malformed)?;
        if hosts.iter().any(|host| host.port == 0) {
            return Err(malformed());
        }
        if !path.is_empty() && !is_path(&path) {
            return Err(Error::invalid(
                "url",
                "the path of the URL is no path on ZooKeeper: its parts must not be empty, `.` or `..`, nor look like an entry of a lock",
            ));
        }
        let digest = match user {
            Some((name, _)) if name.contains(':') => {
                let message = "a user of ZooKeeper's `digest` has no colon in its name";
                return Err(Error::invalid("url", message));
            }
            user => user.map(|(name, password)| format!("{name}:{password}")),
        };
        let root = if path.is_empty() { String::new() } else { format!("/{path}") };
        Ok(Self { hosts, root, digest, tls: None })
    }
}

fn malformed() -> Error {
    Error::invalid(
        "url",
        "the URL must look like `zookeeper://[user:password@]host[:port][,host[:port]...][/chroot]` (`zookeepers://` with TLS)",
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
        let others = ["b:7", "[::1]"];
        let address = read("zookeeper://me:hunter%2B2@a/locks%20of/x?ttl=5s", &others).unwrap();
        assert_eq!(format!("{address} {address:?}"), "a:2181,b:7,[::1]:2181 a:2181,b:7,[::1]:2181");
        assert_eq!(address.root, "/locks of/x");
        assert_eq!(address.digest.as_deref(), Some("me:hunter+2"));
        assert_eq!(read("zookeeper://a:1", &[]).unwrap().root, "");
        assert_eq!(read("zookeepers://a", &["b:7"]).unwrap().to_string(), "a:2281,b:7");
    }

    #[test]
    fn what_cannot_be_connected_to_is_refused_without_being_repeated() {
        for (url, others) in [
            ("http://a", &[][..]),
            ("zookeeper:///x", &[]),
            ("zookeeper://me@a", &[]),
            ("zookeeper://:hunter2@a", &[]),
            ("zookeeper://m%3Ae:hunter2@a", &[]),
            ("zookeeper://me:hunter2@a:0", &[]),
            ("zookeeper://me:hunter2@a/x//y", &[]),
            ("zookeeper://me:hunter2@a/x%00", &[]),
            ("zookeeper://me:hunter2@a", &["b:port"]),
            ("zookeeper://me:hunter2@a", &["you:hunter2@b"]),
            ("zookeeper://me:hunter2@a", &[""]),
        ] {
            let error = read(url, others).unwrap_err();
            assert_eq!(error.code(), Code::Invalid, "{url}");
            assert!(!format!("{error} {error:?}").contains("hunter2"), "{url}");
        }
    }
}
