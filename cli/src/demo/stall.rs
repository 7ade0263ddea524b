//! Making the store of the locks answer nobody for a moment, without harm to anybody else's.

use std::path::PathBuf;
use std::time::Duration;

use percent_encoding::percent_decode_str;
use rusqlite::Connection;
use url::Url;

use super::wire::Wire;

/// How long the file may be busy before it can be kept busy.
const PATIENCE: Duration = Duration::from_secs(2);

/// A way to stall the store.
pub(super) enum Stall {
    /// A write transaction on the file keeps everybody else out.
    File { path: PathBuf, held: Option<Connection> },
    /// The workers reach the server through a wire of the demo's own, which stops carrying.
    Wire(Wire),
    /// There is none, for this reason.
    None(String),
}

impl Stall {
    /// Finds the way for a store, and the URL its workers have to use.
    pub(super) fn of(text: &str) -> std::io::Result<(Self, String)> {
        let none = |why: &str| Ok((Self::None(why.to_owned()), text.to_owned()));
        let Ok(mut url) = Url::parse(text) else { return none("its URL is not understood") };
        match (url.scheme(), url.host_str()) {
            ("sqlite", _) => {
                let path = percent_decode_str(url.path()).decode_utf8_lossy().into_owned();
                Ok((Self::File { path: path.into(), held: None }, text.to_owned()))
            }
            ("redis", Some(host)) if !host.contains(',') => {
                let wire = Wire::to(host.to_owned(), url.port().unwrap_or(6379))?;
                let near = wire.near();
                let moved = url.set_host(Some(&near.ip().to_string())).is_ok()
                    && url.set_port(Some(near.port())).is_ok();
                if !moved {
                    return none("its address cannot be replaced");
                }
                Ok((Self::Wire(wire), url.into()))
            }
            _ => none("pausing that server would be felt by everybody who uses it"),
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
            Self::Wire(wire) => {
                wire.carry(false);
                Ok("the network to it carries nothing")
            }
            Self::None(_) => Ok("not at all"),
        }
    }

    /// Ends.
    pub(super) fn end(&mut self) {
        match self {
            // Closing the connection rolls its empty transaction back.
            Self::File { held, .. } => *held = None,
            Self::Wire(wire) => wire.carry(true),
            Self::None(_) => {}
        }
    }
}
