//! Where the database is, and the credentials. The password never leaves this file but to the server.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use percent_encoding::percent_decode_str;
use tokio_postgres::Config;
use url::Url;

use crate::driver::hosts;
use crate::driver::password_file::PasswordFile;
use crate::driver::sql::host::{self, Host};
use crate::driver::sql::place::{Place, Rules};
use crate::driver::tls::Tls;
use crate::error::{Error, Result};
use crate::options::Options;

const RULES: Rules = Rules {
    schemes: &["postgres", "postgresql", "postgres+advisory", "postgres+row"],
    port: 5432,
    socket: |folder, port| format!("{folder}/.s.PGSQL.{port}"),
    malformed,
};

/// The servers, of which one that takes writes is used, our credentials and the database.
#[derive(Clone)]
pub(super) struct Address {
    pub(super) hosts: Vec<Host>,
    /// Which of them was used last.
    pub(super) used: Arc<AtomicUsize>,
    config: Config,
    password: Option<PasswordFile>,
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
    /// Reads `postgres://user[:password]@host[:port][,host[:port]...]/database`. `others` are the hosts behind the first, which a URL
    /// cannot hold.
    pub(super) fn parse(url: &Url, others: &[String], options: &Options) -> Result<Self> {
        let address = Self::read(url, others)?;
        let encrypted = host::is_encrypted(&address.hosts, options)?;
        let tls = encrypted.then(|| Tls::new(options)).transpose()?;
        let password = PasswordFile::of(options, url.password().is_some())?;
        Ok(Self { password, tls, ..address })
    }

    /// The same without what TLS takes, which lies in files.
    pub(super) fn read(url: &Url, others: &[String]) -> Result<Self> {
        let Place { hosts, user, database } = Place::read(url, others, &RULES)?;
        let mut config = Config::new();
        config.user(user).dbname(database).application_name("fencelock");
        config.ssl_mode(tokio_postgres::config::SslMode::Disable);
        if let Some(password) = url.password() {
            config.password(percent_decode_str(password).collect::<Vec<u8>>());
        }
        Ok(Self { hosts, used: Arc::default(), config, password: None, tls: None })
    }

    /// The settings of a new connection.
    pub(super) fn config(&self) -> Config {
        let mut config = self.config.clone();
        if let Some(password) = &self.password {
            config.password(password.now());
        }
        config
    }
}

fn malformed() -> Error {
    Error::invalid(
        "url",
        "the URL must look like `postgres://user[:password]@host[:port][,host[:port]...]/database[?options]`; the host may be the folder of a socket, as `%2Frun%2Fpostgresql`",
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
        let address =
            read("postgres://me:hunter%2B2@a/locks%20x?ttl=5s", &["b:7", "[::1]"]).unwrap();
        assert_eq!(format!("{address} {address:?}"), "a:5432,b:7,[::1]:5432 a:5432,b:7,[::1]:5432");
        let config = &address.config;
        assert_eq!((config.get_user(), config.get_dbname()), (Some("me"), Some("locks x")));
        assert_eq!(config.get_password(), Some(&b"hunter+2"[..]));
        assert!(!format!("{config:?}").contains("hunter"));
        let socket = read("postgresql://me@%2Frun%2Fpg:5433/db", &[]).unwrap();
        assert_eq!(socket.hosts, [Host::Unix("/run/pg/.s.PGSQL.5433".to_owned())]);
    }

    #[test]
    fn what_leaves_the_machine_is_encrypted_unless_said_otherwise() {
        for (host, here) in [
            ("localhost", true),
            ("127.8.0.1", true),
            ("[::1]", true),
            ("%2Frun", true),
            ("db", false),
            ("10.0.0.1", false),
        ] {
            let address = read(&format!("postgres://me@{host}/db"), &[]).unwrap();
            assert_eq!(address.hosts[0].is_here(), here, "{host}");
        }
    }

    #[test]
    fn what_cannot_be_connected_to_is_refused_without_being_repeated() {
        for (url, others) in [
            ("http://a", &[][..]),
            ("postgres:///x", &[]),
            ("postgres://me:hunter2@a", &[]),
            ("postgres://:hunter2@a/x", &[]),
            ("postgres://me:hunter2@a/%00", &[]),
            ("postgres://me:hunter2@a/x", &["b:port"]),
            ("postgres://me:hunter2@a/x", &["you:hunter2@b"]),
            ("postgres://me:hunter2@a/x", &[""]),
        ] {
            let error = read(url, others).unwrap_err();
            assert_eq!(error.code(), Code::Invalid, "{url}");
            assert!(!format!("{error} {error:?}").contains("hunter2"), "{url}");
        }
    }
}
