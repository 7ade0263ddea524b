//! Where the server is, and who we say we are. The password never leaves this file but to the server.

use std::fmt;

use redis::{ConnectionInfo, IntoConnectionInfo, ProtocolVersion};
use url::Url;

use crate::error::{Code, Error, Result};

/// A server's address and our credentials there.
#[derive(Clone)]
pub(super) struct Address {
    info: ConnectionInfo,
    /// As the server may repeat it in an error: plain, and as it stands in the URL.
    secrets: Vec<String>,
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.info.addr(), f)
    }
}

impl Address {
    /// Reads `redis://[user[:password]@]host[:port][/database]` or `redis+unix:///path/of/socket`.
    pub(super) fn parse(url: &Url) -> Result<Self> {
        match url.scheme() {
            "redis" | "redis+unix" => {}
            "rediss" => {
                return Err(Error::new(
                    Code::Unsupported,
                    "`rediss://` (TLS) is not built in yet; use `redis://` over a network you trust or a local tunnel",
                ));
            }
            _ => return Err(malformed()),
        }
        let mut bare = url.clone();
        // The query carries fencelock's own options, which the crate would take for its own.
        bare.set_query(None);
        bare.set_fragment(None);
        let info = bare.into_connection_info().map_err(|_| malformed())?;
        let settings = info.redis_settings().clone();
        let plain = settings.password().map(str::to_owned);
        let mut secrets: Vec<_> =
            plain.into_iter().chain(url.password().map(str::to_owned)).collect();
        secrets.retain(|secret| !secret.is_empty());
        let settings = settings
            .set_protocol(ProtocolVersion::RESP3)
            .set_lib_name("fencelock", env!("CARGO_PKG_VERSION"));
        let tcp = info.tcp_settings().clone().set_nodelay(true);
        Ok(Self { info: info.set_redis_settings(settings).set_tcp_settings(tcp), secrets })
    }

    /// What the crate connects with.
    pub(super) fn info(&self) -> ConnectionInfo {
        self.info.clone()
    }

    /// A server's text without our password: old servers repeat the arguments of commands they do not know.
    pub(super) fn scrub(&self, text: &str) -> String {
        self.secrets.iter().fold(text.to_owned(), |text, secret| text.replace(secret, "***"))
    }
}

fn malformed() -> Error {
    Error::invalid(
        "url",
        "the URL must look like `redis://[user[:password]@]host[:port][/database]` or `redis+unix:///path/of/socket`",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> Result<Address> {
        Address::parse(&Url::parse(url).unwrap())
    }

    #[test]
    fn a_password_shows_nowhere() {
        let address = parse("redis://me:hunter%2B2@localhost:7000/3?ttl=5s").unwrap();
        assert_eq!(format!("{address} {address:?}"), "localhost:7000 localhost:7000");
        assert_eq!(address.scrub("args: 'hunter+2' hunter%2B2"), "args: '***' ***");
        assert_eq!(address.info.redis_settings().password(), Some("hunter+2"));
        assert_eq!(address.info.redis_settings().db(), 3);
        assert!(!format!("{:?}", parse("redis://:hunter2@localhost/x")).contains("hunter2"));
    }

    #[test]
    fn what_cannot_be_connected_to_is_refused() {
        let code = |url| parse(url).unwrap_err().code();
        assert_eq!(code("rediss://localhost"), Code::Unsupported);
        assert_eq!(code("http://localhost"), Code::Invalid);
        assert_eq!(code("redis:///3"), Code::Invalid);
        assert_eq!(code("redis://localhost/three"), Code::Invalid);
    }

    #[test]
    fn sockets_of_the_machine_are_addresses_too() {
        assert_eq!(parse("redis+unix:///run/redis.sock").unwrap().to_string(), "/run/redis.sock");
    }
}
