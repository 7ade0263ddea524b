//! The hosts of a URL, which may be several, and the errors of one that does not answer.

use std::fmt;

use url::Url;

#[cfg(any(
    feature = "etcd",
    feature = "mysql",
    feature = "postgres",
    feature = "tls",
    feature = "zookeeper"
))]
use crate::error::Code;
use crate::error::{Error, Result};

/// Where one server listens.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(unreachable_pub, reason = "the dialects of SQL have it in their signatures")]
pub struct Host {
    pub(super) name: String,
    pub(super) port: u16,
}

#[cfg(any(feature = "etcd", feature = "redis", feature = "zookeeper"))]
impl Host {
    /// The host of a URL, or `None` if it names none.
    pub(super) fn of(url: &Url, port: u16) -> Option<Self> {
        let name = match url.host()? {
            url::Host::Ipv6(address) => address.to_string(),
            host => host.to_string(),
        };
        let port = url.port().unwrap_or(port);
        (!name.is_empty()).then_some(Self { name, port })
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, port } = self;
        if name.contains(':') { write!(f, "[{name}]:{port}") } else { write!(f, "{name}:{port}") }
    }
}

/// Says that a request may have been carried out or not.
#[cfg(any(feature = "etcd", feature = "mysql", feature = "postgres", feature = "zookeeper"))]
pub(super) fn unanswered(server: &impl fmt::Display, reason: &str) -> Error {
    let message = "the server did not answer, so whether it acted is unknown; what it did for a lock is taken back: look at the server and the way to it";
    Error::new(Code::Unavailable, message).with("server", server.to_string()).with("reason", reason)
}

/// Says that nobody is there.
#[cfg(any(feature = "etcd", feature = "mysql", feature = "postgres", feature = "tls"))]
pub(super) fn absent(server: &impl fmt::Display, reason: &str) -> Error {
    let message = "the server cannot be reached; is it running, and is the address right?";
    Error::new(Code::Unavailable, message).with("server", server.to_string()).with("reason", reason)
}

/// Several of them, as they are shown.
pub(super) fn shown(hosts: &[impl fmt::Display]) -> String {
    hosts.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

/// Calls `host` with the URL, and with a URL made for each of the other hosts; answers the results in order.
pub(super) fn each<H>(
    url: &Url,
    others: &[String],
    malformed: fn() -> Error,
    host: impl Fn(&Url) -> Result<H>,
) -> Result<Vec<H>> {
    let mut hosts = vec![host(url)?];
    for other in others {
        let url = Url::parse(&format!("{}://{other}", url.scheme())).map_err(|_| malformed())?;
        if !url.username().is_empty() || url.password().is_some() || !url.path().is_empty() {
            return Err(malformed());
        }
        hosts.push(host(&url)?);
    }
    Ok(hosts)
}
