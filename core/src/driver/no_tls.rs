//! The stand-in for TLS in a build without it.

#[cfg(any(feature = "etcd", feature = "postgres", feature = "redis", feature = "zookeeper"))]
use tokio::net::TcpStream;

use crate::error::{Error, Result};
use crate::options::Options;

/// There is none.
#[derive(Clone, Debug)]
#[cfg_attr(not(feature = "postgres"), allow(unreachable_pub))] // Only its dialect shows it.
pub enum Tls {}

impl Tls {
    pub(crate) fn new(_: &Options) -> Result<Self> {
        Err(Error::not_built("tls"))
    }

    #[cfg(feature = "etcd")]
    pub(crate) fn speaking(&self, _: &[u8]) -> Self {
        match *self {}
    }

    #[cfg(feature = "postgres")]
    #[allow(clippy::unused_async)] // As its counterpart, which does speak.
    pub(crate) async fn secure(&self, _: TcpStream, _: &str, _: u16) -> Result<TcpStream> {
        match *self {}
    }

    #[cfg(any(feature = "etcd", feature = "redis", feature = "zookeeper"))]
    #[allow(clippy::unused_async)] // As its counterpart, which does connect.
    pub(crate) async fn connect(
        &self,
        _: &super::hosts::Host,
        _: &crate::port::RuntimeHandle,
    ) -> Result<TcpStream> {
        match *self {}
    }
}

/// Nothing is encrypted here.
#[cfg(feature = "mysql")]
pub(crate) fn unproven(_: &str, _: &std::io::Error) -> Option<Error> {
    None
}
