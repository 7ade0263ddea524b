//! Where the servers are, how they stand together, and the credentials. The password never leaves this file but to
//! the servers.

use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;

use redis::{ProtocolVersion, RedisConnectionInfo};
use url::Url;

use super::fault::Named;
use crate::driver::hosts;
use crate::driver::password_file::PasswordFile;
use crate::driver::socket_file;
use crate::driver::tls::Tls;
use crate::error::{Error, Result};
use crate::options::Options;

const PORT: u16 = 6379;
const SENTINEL_PORT: u16 = 26379;

/// Where one server listens.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Host {
    Tcp(hosts::Host),
    Unix(PathBuf),
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(host) => host.fmt(f),
            Self::Unix(path) => path.display().fmt(f),
        }
    }
}

impl Host {
    pub(super) fn tcp(name: impl Into<String>, port: u16) -> Self {
        Self::Tcp(hosts::Host { name: name.into(), port })
    }
}

/// How the servers stand together.
#[derive(Clone, Debug)]
pub(super) enum Topology {
    /// One server at a known place.
    Single(Host),
    /// A master whose place the sentinels know.
    Sentinel { sentinels: Vec<Host>, master: String },
    /// A cluster some of whose nodes are known.
    Cluster(Vec<Host>),
    /// One node of a cluster.
    Node(Host),
}

/// The servers' addresses and our credentials there.
#[derive(Clone)]
pub(super) struct Address {
    pub(super) topology: Topology,
    pub(super) tls: Option<Tls>,
    settings: RedisConnectionInfo,
    password: Option<PasswordFile>,
    /// Our credentials at sentinels that know others than the master; `None`: the same.
    pub(super) sentinel: Option<RedisConnectionInfo>,
    /// As a server may repeat it in an error: plain, and as it stands in the URL.
    secrets: Vec<String>,
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.topology {
            Topology::Single(host) | Topology::Node(host) => host.fmt(f),
            Topology::Cluster(seeds) => f.write_str(&hosts::shown(seeds)),
            Topology::Sentinel { sentinels, master } => {
                write!(f, "{master} of {}", hosts::shown(sentinels))
            }
        }
    }
}

impl Named for Address {
    fn scrub(&self, text: &str) -> String {
        let read = self.password.as_ref().map(PasswordFile::last);
        let all = self.secrets.iter().chain(&read);
        all.fold(text.to_owned(), |text, secret| text.replace(secret, "***"))
    }
}

impl Address {
    /// Reads `redis[s]://[user[:password]@]host[:port][/database]`, `redis+unix:///path/of/socket`,
    /// `redis[s]+sentinel://[user[:password]@]host[:port][,host[:port]...]/master[/database]` or
    /// `redis[s]+cluster://[user[:password]@]host[:port][,host[:port]...]`. `others` are the hosts behind the first,
    /// which a URL cannot hold.
    pub(super) fn parse(url: &Url, others: &[String], options: &Options) -> Result<Self> {
        let address = Self::read(url, others)?;
        let secure = url.scheme().starts_with("rediss");
        let tls = secure.then(|| Tls::new(options)).transpose()?;
        let password = PasswordFile::of(options, address.has_password())?;
        Ok(Self { tls, password, ..address })
    }

    /// The same without what TLS takes, which lies in files.
    pub(super) fn read(url: &Url, others: &[String]) -> Result<Self> {
        let (base, way) = url.scheme().split_once('+').unwrap_or((url.scheme(), ""));
        if base != "redis" && (base != "rediss" || way == "unix") {
            return Err(malformed());
        }
        let (user, password, mut path) = if way == "unix" {
            socket_file::check()?;
            let database = parameter(url, "database").unwrap_or_default();
            (parameter(url, "user"), parameter(url, "password"), database)
        } else {
            let user = Some(decoded(url.username())?).filter(|user| !user.is_empty());
            let password = url.password().map(decoded).transpose()?;
            (user, password, url.path().trim_matches('/').to_owned())
        };
        let all = |port| hosts::each(url, others, malformed, move |url| host(url, port));
        let topology = match way {
            "unix" if !matches!(url.path(), "" | "/") => {
                Topology::Single(Host::Unix(decoded(url.path())?.into()))
            }
            "" if others.is_empty() => Topology::Single(host(url, PORT)?),
            "sentinel" => {
                let (master, database) = path.split_once('/').unwrap_or((&path, ""));
                let master = Some(decoded(master)?).filter(|name| !name.is_empty());
                let master = master.ok_or_else(malformed)?;
                path = database.to_owned();
                Topology::Sentinel { sentinels: all(SENTINEL_PORT)?, master }
            }
            "cluster" if matches!(&*path, "" | "0") => Topology::Cluster(all(PORT)?),
            _ => return Err(malformed()),
        };
        let mut settings = RedisConnectionInfo::default();
        if !path.is_empty() {
            settings = settings.set_db(path.parse().map_err(|_| malformed())?);
        }
        if let Some(user) = user {
            settings = settings.set_username(user);
        }
        if let Some(password) = password {
            settings = settings.set_password(password);
        }
        let of_sentinels = (parameter(url, "sentinel_user"), parameter(url, "sentinel_password"));
        let sentinel = match of_sentinels.clone() {
            (None, None) => None,
            (Some(user), Some(password)) => {
                let known = RedisConnectionInfo::default().set_username(user);
                Some(known.set_password(password))
            }
            (None, Some(password)) => Some(RedisConnectionInfo::default().set_password(password)),
            (Some(_), None) => {
                let message = "a `sentinel_user` needs its `sentinel_password`; add it to the URL";
                return Err(Error::invalid("sentinel_user", message));
            }
        };
        let sentinel = sentinel.map(|info| info.set_protocol(ProtocolVersion::RESP2));
        let plain = settings.password().map(str::to_owned);
        let written = url.password().map(str::to_owned);
        let mut secrets: Vec<_> = [plain, written, of_sentinels.1].into_iter().flatten().collect();
        secrets.retain(|secret| !secret.is_empty());
        let settings = settings.set_protocol(ProtocolVersion::RESP3);
        let settings = settings.set_lib_name("fencelock", env!("CARGO_PKG_VERSION"));
        Ok(Self { topology, tls: None, settings, password: None, sentinel, secrets })
    }

    /// One node of this cluster.
    pub(super) fn node(&self, host: &Host) -> Self {
        Self { topology: Topology::Node(host.clone()), ..self.clone() }
    }

    /// The nodes of a cluster that were named.
    pub(super) fn seeds(&self) -> &[Host] {
        if let Topology::Cluster(seeds) = &self.topology { seeds } else { &[] }
    }

    /// The credentials of a connection, which speaks RESP3: notices come over it too.
    pub(super) fn settings(&self) -> RedisConnectionInfo {
        let settings = self.settings.clone();
        match &self.password {
            Some(password) => settings.set_password(password.now()),
            None => settings,
        }
    }

    /// Whether there is a password.
    pub(super) fn has_password(&self) -> bool {
        self.settings.password().is_some() || self.password.is_some()
    }
}

/// A word of the query that belongs to the address.
fn parameter(url: &Url, name: &str) -> Option<String> {
    url.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
}

fn decoded(text: &str) -> Result<String> {
    let decoded = percent_encoding::percent_decode_str(text).decode_utf8();
    decoded.map(Cow::into_owned).map_err(|_| malformed())
}

fn host(url: &Url, port: u16) -> Result<Host> {
    hosts::Host::of(url, port).map(Host::Tcp).ok_or_else(malformed)
}

fn malformed() -> Error {
    Error::invalid(
        "url",
        "the URL must look like `redis://[user[:password]@]host[:port][/database]` (`rediss://` with TLS), \
         `redis+sentinel://[user[:password]@]host[:port],host[:port]/master[/database]`, \
         `redis+cluster://[user[:password]@]host[:port],host[:port]` or `redis+unix:///path/of/socket[?user=…&password=…&database=…]`",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Code;

    fn parse(url: &str, others: &[&str]) -> Result<Address> {
        let others: Vec<_> = others.iter().map(|&host| host.to_owned()).collect();
        Address::parse(&Url::parse(url).unwrap(), &others, &Options::default())
    }

    #[test]
    fn a_password_shows_nowhere() {
        let address = parse("redis://me:hunter%2B2@localhost:7000/3?ttl=5s", &[]).unwrap();
        assert_eq!(format!("{address} {address:?}"), "localhost:7000 localhost:7000");
        assert_eq!(address.scrub("args: 'hunter+2' hunter%2B2"), "args: '***' ***");
        assert_eq!(address.settings.password(), Some("hunter+2"));
        assert_eq!(address.settings.db(), 3);
        assert!(!format!("{:?}", parse("redis://:hunter2@localhost/x", &[])).contains("hunter2"));
    }

    #[test]
    fn what_cannot_be_connected_to_is_refused() {
        let code = |url, others: &[&str]| parse(url, others).unwrap_err().code();
        for url in [
            "http://localhost",
            "redis:///3",
            "redis://localhost/three",
            "redis+what://localhost",
            "rediss+unix:///run/redis.sock",
            "redis+sentinel://localhost",
            "redis+sentinel://localhost/mymaster/three",
            "redis+cluster://localhost/3",
        ] {
            assert_eq!(code(url, &[]), Code::Invalid, "{url}");
        }
        assert_eq!(code("redis://a", &["b"]), Code::Invalid);
        assert_eq!(code("redis+sentinel://a/m", &["b:port"]), Code::Invalid);
        assert_eq!(code("redis+sentinel://a/m", &[""]), Code::Invalid);
    }

    #[test]
    fn u23_sockets_have_credentials_and_sentinels_their_own() {
        let url = "redis+unix:///run/redis.sock?user=me&password=hunter%2B2&database=3";
        let address = parse(url, &[]).unwrap();
        let settings = address.settings();
        assert_eq!((settings.username(), settings.db()), (Some("me"), 3));
        assert_eq!(settings.password(), Some("hunter+2"));
        assert_eq!(format!("{address} {address:?}"), "/run/redis.sock /run/redis.sock");
        assert_eq!(address.scrub("hunter+2"), "***");
        let url = "redis+sentinel://me:pw@a/m?sentinel_user=you&sentinel_password=hunter2";
        let address = parse(url, &[]).unwrap();
        let sentinel = address.sentinel.as_ref().unwrap();
        assert_eq!((sentinel.username(), sentinel.password()), (Some("you"), Some("hunter2")));
        assert_eq!(address.scrub("hunter2"), "***");
        assert!(parse("redis+sentinel://a/m?sentinel_user=you", &[]).is_err());
    }

    #[test]
    fn a_cluster_has_some_nodes_we_know() {
        let address = parse("rediss+cluster://me:pw@a", &["b:7"]);
        assert_eq!(address.is_ok(), cfg!(feature = "tls"));
        let address = parse("redis+cluster://me:pw@a/0", &["b:7"]).unwrap();
        assert_eq!(address.to_string(), "a:6379,b:7");
        let node = address.node(&address.seeds()[1]);
        assert_eq!((node.to_string(), node.has_password()), ("b:7".to_owned(), true));
    }

    #[test]
    fn sentinels_are_many_and_know_one_master() {
        let url = "redis+sentinel://me:pw@a/my%20master/3?ttl=5s";
        let address = parse(url, &["b:7", "[::1]"]).unwrap();
        assert_eq!(address.to_string(), "my master of a:26379,b:7,[::1]:26379");
        assert_eq!((address.settings.db(), address.has_password()), (3, true));
    }
}
