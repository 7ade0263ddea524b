//! What stands for TLS in a build without it.

use tokio::net::TcpStream;

use super::address::Host;
use crate::error::{Error, Result};
use crate::options::Options;

/// There is none.
#[derive(Clone, Debug)]
pub(super) enum Tls {}

impl Tls {
    pub(super) fn new(_: &Options) -> Result<Self> {
        Err(Error::not_built("tls"))
    }

    #[allow(clippy::unused_async)] // As its counterpart, which does connect.
    pub(super) async fn connect(&self, _: &Host) -> Result<TcpStream> {
        match *self {}
    }
}
