//! The members of a cluster, as a URL names them, and what locks on all such clusters survive.

use percent_encoding::percent_decode_str;
use url::Url;

use super::hosts::{Host, each};
use crate::error::{Code, Error, Result};
use crate::port::{Failure, Guarantee};

pub(super) const WAITERS: Guarantee = Guarantee::new(
    "waiters die too",
    "their places in the queue end with their sessions, as a holder's does",
);
pub(super) const MEMBER: Guarantee = Guarantee::new(
    "a member, or fewer than half of them, is lost or restarts with its data",
    "locks, queue and tokens continue",
);
pub(super) const READERS: Guarantee = Guarantee::new(
    "readers, or holders of permits, that waited enter together",
    "one that came later may hold first, with the greater token; the token of a writer is above those of all readers before it",
);

/// The parts of a cluster's URL.
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
        let host = |url: &Url| host(url, port).ok_or_else(malformed);
        let hosts = each(url, others, malformed, host)?;
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

/// Says that a session is over.
pub(super) fn ended() -> Failure {
    Failure::refused(Error::new(Code::Lost, "the session has ended"))
}

fn host(url: &Url, port: u16) -> Option<Host> {
    let name = match url.host()? {
        url::Host::Ipv6(address) => address.to_string(),
        host => host.to_string(),
    };
    let port = url.port().unwrap_or(port);
    (!name.is_empty()).then_some(Host { name, port })
}
