//! Where the members of an ensemble are.

use super::layout::is_path;
use crate::driver::members::{Address, Rules};
use crate::error::{Error, Result};

/// `zookeeper[s]://[user:password@]host[:port][,host[:port]...][/chroot]`. The port of members that speak TLS is that of ZooKeeper's own
/// documentation.
pub(super) const RULES: &Rules =
    &Rules { scheme: "zookeeper", port: 2181, secure_port: 2281, check, malformed };

fn check(Address { hosts, user, path, .. }: &Address) -> Result<()> {
    if hosts.iter().any(|host| host.port == 0) {
        return Err(malformed());
    }
    if !path.is_empty() && !is_path(path) {
        return Err(Error::invalid(
            "url",
            "the path of the URL is no path on ZooKeeper: its parts must not be empty, `.` or `..`, nor look like an entry of a lock",
        ));
    }
    if user.as_ref().is_some_and(|(name, _)| name.contains(':')) {
        let message = "a user of ZooKeeper's `digest` has no colon in its name";
        return Err(Error::invalid("url", message));
    }
    Ok(())
}

/// The node under which all locks lie: empty, or a path.
pub(super) fn root(Address { path, .. }: &Address) -> String {
    if path.is_empty() { String::new() } else { format!("/{path}") }
}

/// `user:password`, as the scheme `digest` takes it.
/// There is no SASL: the library's DIGEST-MD5 draws its nonce from a generator that is not made for secrets.
pub(super) fn digest(address: &Address) -> Option<String> {
    address.user.as_ref().map(|(name, password)| format!("{name}:{password}"))
}

fn malformed() -> Error {
    Error::invalid(
        "url",
        "the URL must look like `zookeeper://[user:password@]host[:port][,host[:port]...][/chroot]` (`zookeepers://` with TLS)",
    )
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::*;
    use crate::error::Code;

    fn read(url: &str, others: &[&str]) -> Result<Address> {
        let others: Vec<_> = others.iter().map(|&host| host.to_owned()).collect();
        Address::read(&Url::parse(url).unwrap(), &others, RULES)
    }

    #[test]
    fn members_are_many_and_a_password_shows_nowhere() {
        let others = ["b:7", "[::1]"];
        let address = read("zookeeper://me:hunter%2B2@a/locks%20of/x?ttl=5s", &others).unwrap();
        assert_eq!(format!("{address} {address:?}"), "a:2181,b:7,[::1]:2181 a:2181,b:7,[::1]:2181");
        assert_eq!(root(&address), "/locks of/x");
        assert_eq!(digest(&address).as_deref(), Some("me:hunter+2"));
        assert_eq!(root(&read("zookeeper://a:1", &[]).unwrap()), "");
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
