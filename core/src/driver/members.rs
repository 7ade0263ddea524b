//! The members of a cluster, as a URL names them, and what locks on all such clusters survive.

use std::fmt;

use percent_encoding::percent_decode_str;
use url::Url;

use super::hosts::{self, Host};
use super::tls::Tls;
use crate::error::{Code, Error, Result};
use crate::options::Options;
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

/// The rules for URLs that differ from one kind of cluster to the other.
pub(super) struct Rules {
    /// The scheme. With an `s` behind it the members speak TLS.
    pub(super) scheme: &'static str,
    /// The port of a host without one, and that of a host that speaks TLS.
    pub(super) port: u16,
    pub(super) secure_port: u16,
    /// Refuses more.
    pub(super) check: fn(&Address) -> Result<()>,
    pub(super) malformed: fn() -> Error,
}

/// The members, and our credentials there. The password goes to them only.
#[derive(Clone)]
pub(super) struct Address {
    pub(super) hosts: Vec<Host>,
    /// A name and a password.
    pub(super) user: Option<(String, String)>,
    /// Without the slashes at its ends.
    pub(super) path: String,
    pub(super) tls: Option<Tls>,
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hosts::shown(&self.hosts))
    }
}

impl Address {
    /// Reads `scheme[s]://[user:password@]host[:port][,host[:port]...][/path]`. `others` are the hosts behind the first, which a URL
    /// cannot hold.
    pub(super) fn parse(
        url: &Url,
        others: &[String],
        options: &Options,
        rules: &Rules,
    ) -> Result<Self> {
        let address = Self::read(url, others, rules)?;
        let secure = url.scheme() != rules.scheme;
        Ok(Self { tls: secure.then(|| Tls::new(options)).transpose()?, ..address })
    }

    /// The same without what TLS takes, which lies in files.
    pub(super) fn read(url: &Url, others: &[String], rules: &Rules) -> Result<Self> {
        let malformed = rules.malformed;
        let port = match url.scheme().strip_prefix(rules.scheme) {
            Some("") => rules.port,
            Some("s") => rules.secure_port,
            _ => return Err(malformed()),
        };
        let host = |url: &Url| Host::of(url, port).ok_or_else(malformed);
        let hosts = hosts::each(url, others, malformed, host)?;
        let decode = |text| percent_decode_str(text).decode_utf8().map_err(|_| malformed());
        let user = match (url.username(), url.password()) {
            ("", None) => None,
            ("", Some(_)) | (_, None) => return Err(malformed()),
            (name, Some(password)) => {
                Some((decode(name)?.into_owned(), decode(password)?.into_owned()))
            }
        };
        let path = decode(url.path().trim_matches('/'))?.into_owned();
        let address = Self { hosts, user, path, tls: None };
        (rules.check)(&address)?;
        Ok(address)
    }
}

/// Says that a session is over.
pub(super) fn ended() -> Failure {
    Failure::refused(Error::new(Code::Lost, "the session has ended"))
}
