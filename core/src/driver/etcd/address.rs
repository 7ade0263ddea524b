//! Where the members of a cluster are.

use crate::driver::members::{Address, Rules};
use crate::error::Error;

const PORT: u16 = 2379;

/// `etcd[s]://[user:password@]host[:port][,host[:port]...][/prefix]`.
pub(super) const RULES: &Rules =
    &Rules { scheme: "etcd", port: PORT, secure_port: PORT, check: |_| Ok(()), malformed };

/// The text before all keys: empty, or with a slash at its end.
pub(super) fn prefix(Address { path, .. }: &Address) -> String {
    if path.is_empty() { String::new() } else { format!("{path}/") }
}

fn malformed() -> Error {
    Error::invalid(
        "url",
        "the URL must look like `etcd://[user:password@]host[:port][,host[:port]...][/prefix]` (`etcds://` with TLS)",
    )
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::*;
    use crate::error::{Code, Result};

    fn read(url: &str, others: &[&str]) -> Result<Address> {
        let others: Vec<_> = others.iter().map(|&host| host.to_owned()).collect();
        Address::read(&Url::parse(url).unwrap(), &others, RULES)
    }

    #[test]
    fn members_are_many_and_a_password_shows_nowhere() {
        let address =
            read("etcd://me:hunter%2B2@a/locks%20of/x?ttl=5s", &["b:7", "[::1]"]).unwrap();
        assert_eq!(format!("{address} {address:?}"), "a:2379,b:7,[::1]:2379 a:2379,b:7,[::1]:2379");
        assert_eq!(prefix(&address), "locks of/x/");
        assert_eq!(address.user.unwrap(), ("me".to_owned(), "hunter+2".to_owned()));
        assert_eq!(prefix(&read("etcd://a:1", &[]).unwrap()), "");
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
