//! A URL names a store and sets its options.

mod nodes;

use percent_encoding::percent_decode_str;
use serde_json::Value;
use url::Url;

use crate::driver::memory::Memory;
use crate::error::{Error, Result};
use crate::options::Options;
use crate::port::{LeaseHandle, RuntimeHandle};

/// A parsed URL. Its text, which may hold a password, is never shown.
pub(crate) struct StoreUrl {
    url: Url,
    /// The nodes, if it is a quorum; `url` is then the first of them.
    nodes: Vec<Url>,
}

impl StoreUrl {
    pub(crate) fn parse(text: &str) -> Result<Self> {
        if let Some(nodes) = nodes::parse(text) {
            let nodes = nodes?;
            return Ok(Self { url: nodes[0].clone(), nodes });
        }
        let url = Url::parse(text).map_err(|error| {
            Error::invalid(
                "url",
                format!("the URL cannot be read ({error}); write `redis://host:6379`, `sqlite:locks.db` or `memory:`"),
            )
        })?;
        Ok(Self { url, nodes: Vec::new() })
    }

    /// The options in the query.
    pub(crate) fn options(&self) -> Vec<(&str, Value)> {
        let pairs = self.url.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
        pairs
            .map(|pair| {
                let (name, value) = pair.split_once('=').unwrap_or((pair, "true"));
                let value = value.replace('+', " ");
                (name, Value::String(percent_decode_str(&value).decode_utf8_lossy().into_owned()))
            })
            .collect()
    }

    #[cfg_attr(
        not(any(feature = "redis", feature = "sqlite")),
        allow(clippy::unused_async, unused_variables)
    )] // Memory is there at once.
    pub(crate) async fn open(
        &self,
        options: &Options,
        runtime: RuntimeHandle,
    ) -> Result<LeaseHandle> {
        #[cfg(feature = "redis")]
        if !self.nodes.is_empty() {
            return nodes::open(&self.nodes, options, runtime).await;
        }
        match self.url.scheme() {
            "memory" => Ok(LeaseHandle::new(Memory::named(self.url.path()).store(runtime))),
            #[cfg(feature = "sqlite")]
            "sqlite" => {
                let path = percent_decode_str(self.url.path()).decode_utf8_lossy().into_owned();
                if path.is_empty() {
                    return Err(Error::invalid(
                        "url",
                        "the URL names no file; write `sqlite:locks.db`",
                    ));
                }
                let store =
                    crate::driver::sqlite::SqliteStore::open(path.as_ref(), options, runtime)
                        .await?;
                Ok(LeaseHandle::new(store))
            }
            #[cfg(feature = "redis")]
            "redis" | "rediss" | "redis+unix" => {
                let store =
                    crate::driver::redis::RedisStore::connect(&self.url, options, runtime).await?;
                Ok(LeaseHandle::new(store))
            }
            #[cfg(not(feature = "sqlite"))]
            "sqlite" => Err(Error::not_built("sqlite")),
            #[cfg(not(feature = "redis"))]
            "redis" | "rediss" => Err(Error::not_built("redis")),
            _ => Err(Error::invalid(
                "url",
                "no store goes by that scheme; there are `redis://`, `redlock://`, `sqlite:` and `memory:`",
            )),
        }
    }
}
