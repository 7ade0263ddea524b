//! The members of a cluster, as a URL names them.

use std::fmt;

use percent_encoding::percent_decode_str;
use url::Url;

use crate::error::{Error, Result};

/// Where one member listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Host {
    pub(super) name: String,
    pub(super) port: u16,
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, port } = self;
        if name.contains(':') { write!(f, "[{name}]:{port}") } else { write!(f, "{name}:{port}") }
    }
}

/// The members, as they are shown.
pub(super) fn shown(hosts: &[Host]) -> String {
    hosts.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

/// What a URL says of a cluster.
pub(super) struct Members {
    pub(super) hosts: Vec<Host>,
    /// A name and a password.
    pub(super) user: Option<(String, String)>,
    /// Without the slashes at its ends.
    pub(super) path: String,
}

impl Members {
    /// Reads `scheme://[user:password@]host[:port][,host[:port]...][/path]`. `others` are the hosts behind the first, which a URL
    /// cannot hold; `port` is that of a host without one.
    pub(super) fn read(
        url: &Url,
        others: &[String],
        port: u16,
        malformed: fn() -> Error,
    ) -> Result<Self> {
        let mut hosts = vec![host(url, port).ok_or_else(malformed)?];
        for other in others {
            let url =
                Url::parse(&format!("{}://{other}", url.scheme())).map_err(|_| malformed())?;
            if !url.username().is_empty() || url.password().is_some() || !url.path().is_empty() {
                return Err(malformed());
            }
            hosts.push(host(&url, port).ok_or_else(malformed)?);
        }
        let decode = |text| percent_decode_str(text).decode_utf8().map_err(|_| malformed());
        let user = match (url.username(), url.password()) {
            ("", None) => None,
            ("", Some(_)) | (_, None) => return Err(malformed()),
            (name, Some(password)) => {
                Some((decode(name)?.into_owned(), decode(password)?.into_owned()))
            }
        };
        let path = decode(url.path().trim_matches('/'))?.into_owned();
        Ok(Self { hosts, user, path })
    }
}

fn host(url: &Url, port: u16) -> Option<Host> {
    let name = match url.host()? {
        url::Host::Ipv6(address) => address.to_string(),
        host => host.to_string(),
    };
    let port = url.port().unwrap_or(port);
    (!name.is_empty()).then_some(Host { name, port })
}
