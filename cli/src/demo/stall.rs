//! Making the store of the locks answer nobody for a moment, without harm to anybody else's.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use percent_encoding::percent_decode_str;
use rusqlite::Connection;
use url::Url;

use super::proxy::Proxy;

/// How long the file may be busy before it can be kept busy.
const PATIENCE: Duration = Duration::from_secs(2);

const CERTIFICATE: &str = "the demo's proxy has no certificate for this server";
const SEVERAL: &str = "it is several servers, and one that is silent would not stall them";
const SOCKET: &str = "the server is reached by a socket file, and the demo's proxy speaks TCP";

/// Why no proxy can stand between the workers and a store of this kind. The demo does not pause the servers themselves: that
/// would stop all their clients.
fn out_of_reach(url: &str) -> Option<&'static str> {
    let (scheme, _) = url.split_once(':')?;
    match server_of(scheme) {
        "rediss" | "etcds" | "zookeepers" => Some(CERTIFICATE),
        "redis+unix" => Some(SOCKET),
        "redis+sentinel" | "rediss+sentinel" => {
            Some("the sentinels name the server, so workers would not go through the demo's proxy")
        }
        "redis+cluster" | "rediss+cluster" => Some(
            "the cluster's nodes name each other, so workers would not go through the demo's proxy",
        ),
        "redlock" | "rediss+redlock" => Some(SEVERAL),
        "etcd" | "zookeeper" | "postgres" | "postgresql" | "mysql" | "mariadb"
            if names_several(url) =>
        {
            Some(SEVERAL)
        }
        "postgres" | "postgresql" | "mysql" | "mariadb" => {
            out_of_reach_on_sql(&Url::parse(url).ok()?)
        }
        _ => None,
    }
}

/// The scheme without the word by which a database keeps locks with sessions or rows: the server is the same.
fn server_of(scheme: &str) -> &str {
    let by_session = ["+advisory", "+getlock", "+row"];
    by_session.iter().find_map(|way| scheme.strip_suffix(way)).unwrap_or(scheme)
}

/// The proxy is on this machine, and on the way to that the clients of databases encrypt nothing by themselves: what has to be
/// encrypted must not take it.
fn out_of_reach_on_sql(url: &Url) -> Option<&'static str> {
    let host = percent_decode_str(url.host_str()?).decode_utf8_lossy();
    let sslmode = url.query_pairs().find(|(name, _)| name == "sslmode");
    let here = || {
        let address = host.trim_matches(['[', ']']).parse();
        address.map_or(host == "localhost", |address: IpAddr| address.is_loopback())
    };
    match sslmode.as_ref().map_or("auto", |(_, mode)| mode) {
        _ if host.starts_with('/') => Some(SOCKET),
        "disable" => None,
        "auto" if here() => None,
        _ => Some(CERTIFICATE),
    }
}

/// Whether there is more than one host in a URL.
fn names_several(url: &str) -> bool {
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    authority.rsplit('@').next().unwrap_or_default().contains(',')
}

/// A way to stall the store.
pub(super) enum Stall {
    /// A write transaction on the file keeps everybody else out.
    File { path: PathBuf, held: Option<Connection> },
    /// The workers reach the server through a proxy of the demo, which stops forwarding.
    Proxy(Proxy),
    /// There is none, for this reason.
    None(String),
}

impl Stall {
    /// Finds the way for a store, and the URL its workers have to use.
    pub(super) fn of(text: &str) -> std::io::Result<(Self, String)> {
        let none = |why: &str| Ok((Self::None(why.to_owned()), text.to_owned()));
        // First of all: what names several hosts is no URL to the parser.
        if let Some(why) = out_of_reach(text) {
            return none(why);
        }
        let Ok(mut url) = Url::parse(text) else { return none("its URL is not understood") };
        match (server_of(url.scheme()), url.host_str()) {
            ("sqlite", _) => {
                let path = percent_decode_str(url.path()).decode_utf8_lossy().into_owned();
                Ok((Self::File { path: path.into(), held: None }, text.to_owned()))
            }
            (
                scheme @ ("redis" | "etcd" | "zookeeper" | "postgres" | "postgresql" | "mysql"
                | "mariadb"),
                Some(host),
            ) => {
                let usual = match scheme {
                    "redis" => 6379,
                    "etcd" => 2379,
                    "zookeeper" => 2181,
                    "mysql" | "mariadb" => 3306,
                    _ => 5432,
                };
                let proxy = Proxy::to(host.to_owned(), url.port().unwrap_or(usual))?;
                let near = proxy.near();
                let moved = url.set_host(Some(&near.ip().to_string())).is_ok()
                    && url.set_port(Some(near.port())).is_ok();
                if !moved {
                    return none("its address cannot be replaced");
                }
                Ok((Self::Proxy(proxy), url.into()))
            }
            _ => none("the demo knows no way to stall it"),
        }
    }

    /// Why there is no way, if so.
    pub(super) fn impossible(&self) -> Option<&str> {
        if let Self::None(why) = self { Some(why) } else { None }
    }

    /// Begins; answers in words how it is done.
    pub(super) fn begin(&mut self) -> rusqlite::Result<&'static str> {
        match self {
            Self::File { path, held } => {
                let connection = Connection::open(path)?;
                connection.busy_timeout(PATIENCE)?;
                connection.execute_batch("BEGIN IMMEDIATE")?;
                *held = Some(connection);
                Ok("a foreign transaction keeps its file busy")
            }
            Self::Proxy(proxy) => {
                proxy.forward(false);
                Ok("the proxy to it forwards nothing")
            }
            Self::None(_) => Ok("not at all"),
        }
    }

    /// Ends.
    pub(super) fn end(&mut self) {
        match self {
            // Closing the connection rolls its empty transaction back.
            Self::File { held, .. } => *held = None,
            Self::Proxy(proxy) => proxy.forward(true),
            Self::None(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_stalled_has_a_reason_of_its_own() {
        let reasons = [
            ("rediss://h", "certificate"),
            ("redis+unix:///run/redis.sock", "file"),
            ("redis+sentinel://a:1,b:2/master", "sentinels"),
            ("rediss+sentinel://a/master", "sentinels"),
            ("redis+cluster://a:1,b:2", "cluster"),
            ("rediss+cluster://a", "cluster"),
            ("redlock://a:1,b:2,c:3", "several"),
            ("etcd://me:a,b@a,b/p", "several"),
            ("etcds://a", "certificate"),
            ("zookeepers://a", "certificate"),
            ("zookeeper://a,b/p", "several"),
            ("postgres://me:a,b@a,b/d", "several"),
            ("postgresql://me@%2Frun%2Fpg/d?sslmode=disable", "file"),
            ("postgres://me@h/d", "certificate"),
            ("mysql://me@h/d", "certificate"),
            ("mysql://me@a,b/d", "several"),
            ("mysql+getlock://me@a,b/d", "several"),
            ("postgres+row://me@h/d", "certificate"),
            ("mariadb://me@%2Frun%2Fmy.sock/d", "file"),
            ("postgres://me@localhost/d?sslmode=verify-full", "certificate"),
        ];
        for (url, reason) in reasons {
            let (stall, near) = Stall::of(url).unwrap();
            let why = stall.impossible().unwrap_or_else(|| panic!("{url} can be stalled"));
            assert!(why.contains(reason), "{url}: {why}");
            assert_eq!(near, url);
        }
    }

    #[test]
    fn a_file_and_one_plain_server_can_be_stalled() {
        for url in [
            "sqlite:/tmp/locks.db",
            "redis://h:1234/2",
            "etcd://me:a,b@h/p?label=a,b",
            "zookeeper://me:a,b@h/p?label=a,b",
            "postgres://me:a,b@h/d?sslmode=disable",
            "postgresql://me@localhost/d",
            "postgresql://me@[::1]/d",
            "mysql://me:a,b@127.0.0.1/d",
            "mariadb://me@h/d?sslmode=disable",
            "postgres+advisory://me@localhost/d",
            "postgres+row://me@h/d?sslmode=disable",
            "mysql+getlock://me@127.0.0.1/d",
            "mysql+row://me@127.0.0.1:3307/d",
        ] {
            assert_eq!(Stall::of(url).unwrap().0.impossible(), None, "{url}");
        }
        let (_stall, near) = Stall::of("redis://me:secret@h:1234/2?ttl=1s").unwrap();
        let near = Url::parse(&near).unwrap();
        assert_eq!((near.host_str(), near.username()), (Some("127.0.0.1"), "me"));
        assert_eq!((near.path(), near.query()), ("/2", Some("ttl=1s")));
    }
}
