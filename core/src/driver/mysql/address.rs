//! Where the database is, and the credentials. The password never leaves this file but to the server.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use mysql_async::{Opts, OptsBuilder, SslOpts};
use url::Url;

use super::tls;
use crate::driver::hosts;
use crate::driver::password_file::PasswordFile;
use crate::driver::sql::host::{self, Host};
use crate::driver::sql::place::{Place, Rules, decoded};
use crate::error::{Error, Result};
use crate::options::Options;

const RULES: Rules = Rules {
    schemes: &["mysql", "mariadb", "mysql+getlock", "mysql+row"],
    port: 3306,
    socket: |path, _| path,
    malformed,
};

/// A server that went without a word is noticed after some of these.
const KEEPALIVE: Duration = Duration::from_secs(30);

/// The servers, of which one that takes writes is used, our credentials and the database.
#[derive(Clone)]
pub(super) struct Address {
    pub(super) hosts: Vec<Host>,
    /// Which of them was used last.
    pub(super) used: Arc<AtomicUsize>,
    config: OptsBuilder,
    password: Option<PasswordFile>,
    tls: Option<SslOpts>,
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
    /// Reads `mysql://user[:password]@host[:port][,host[:port]...]/database`. `others` are the hosts behind the first, which a URL
    /// cannot hold.
    pub(super) fn parse(url: &Url, others: &[String], options: &Options) -> Result<Self> {
        let address = Self::read(url, others)?;
        let encrypted = host::is_encrypted(&address.hosts, options)?;
        let tls = encrypted.then(|| tls::proof(options)).transpose()?;
        let password = PasswordFile::of(options, url.password().is_some())?;
        Ok(Self { password, tls, ..address })
    }

    /// The same without what TLS takes, which lies in files.
    pub(super) fn read(url: &Url, others: &[String]) -> Result<Self> {
        let Place { hosts, user, database } = Place::read(url, others, &RULES)?;
        let password = url.password().map(|text| decoded(text, &RULES)).transpose()?;
        let config = OptsBuilder::default()
            .user(Some(user))
            .pass(password)
            .db_name(Some(database))
            .prefer_socket(false)
            .tcp_keepalive(Some(KEEPALIVE))
            .stmt_cache_size(8);
        Ok(Self { hosts, used: Arc::default(), config, password: None, tls: None })
    }

    /// The options for a connection to one of the servers.
    pub(super) fn options(&self, host: &Host) -> Opts {
        let mut config = self.config.clone();
        if let Some(password) = &self.password {
            config = config.pass(Some(password.now()));
        }
        match host {
            Host::Unix(path) => config.socket(Some(path.clone())),
            Host::Tcp(hosts::Host { name, port }) => config
                .ip_or_hostname(name.clone())
                .tcp_port(*port)
                // Tokens of clouds are sent as they are, so to a server that has proved itself only.
                .enable_cleartext_plugin(self.tls.is_some())
                .ssl_opts(self.tls.clone()),
        }
        .into()
    }
}

fn malformed() -> Error {
    Error::invalid(
        "url",
        "the URL must look like `mysql://user[:password]@host[:port][,host[:port]...]/database[?options]`; the host may be the path of a socket, as `%2Frun%2Fmysqld%2Fmysqld.sock`",
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
    fn servers_are_many_and_a_password_shows_nowhere() {
        let address = read("mysql://me:hunter%2B2@a/locks%20x?ttl=5s", &["b:7", "[::1]"]).unwrap();
        assert_eq!(format!("{address} {address:?}"), "a:3306,b:7,[::1]:3306 a:3306,b:7,[::1]:3306");
        let options = address.options(&address.hosts[1]);
        assert_eq!((options.user(), options.db_name()), (Some("me"), Some("locks x")));
        assert_eq!((options.pass(), options.tcp_port()), (Some("hunter+2"), 7));
        let socket = read("mariadb://me@%2Frun%2Fmy.sock/db", &[]).unwrap();
        assert_eq!(socket.hosts, [Host::Unix("/run/my.sock".to_owned())]);
        assert_eq!(socket.options(&socket.hosts[0]).socket(), Some("/run/my.sock"));
    }

    #[test]
    fn what_cannot_be_connected_to_is_refused_without_being_repeated() {
        for (url, others) in [
            ("http://a", &[][..]),
            ("mysql:///x", &[]),
            ("mysql://me:hunter2@a", &[]),
            ("mysql://:hunter2@a/x", &[]),
            ("mysql://me:hunter2@a/%00", &[]),
            ("mysql://me:hunter2@a/x", &["b:port"]),
            ("mysql://me:hunter2@a/x", &["you:hunter2@b"]),
            ("mysql://me:hunter2@a/x", &[""]),
        ] {
            let error = read(url, others).unwrap_err();
            assert_eq!(error.code(), Code::Invalid, "{url}");
            assert!(!format!("{error} {error:?}").contains("hunter2"), "{url}");
        }
    }
}
