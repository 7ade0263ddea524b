//! The resource's side of the fence, for resources that lie on a Redis server: the condition inside the write.

use std::fmt;
use std::sync::Arc;

use redis::{Cmd, FromRedisValue, Value};
use url::Url;

use super::address::{Address, Topology};
use super::connection::Link;
use super::{fault, keys};
use crate::error::{Code, Error, Result};
use crate::fence::Token;
use crate::options::Options;
use crate::port::RuntimeHandle;

/// Behind the gate: a command on the first key.
const WRITE: &str = "
local refused = fencelock_gate(KEYS[2], ARGV[1])
if refused then return refused end
return redis.call(ARGV[2], KEYS[1], unpack(ARGV, 3))";

/// Writes keys on a Redis server, each only with a token that is not older than the newest one that has written it.
///
/// The check and the write are one script. Beside every key `K` that was written through it, under
/// `fencelock:{tag}:gate:K` in the same hash slot, lies the newest token, without an end: delete it together with the key.
/// The locks may live on another server, or another kind of store.
///
/// Scripts of your own pass the same gate: put [`RedisGate::LUA`] at their head.
///
/// ```no_run
/// # async fn example(guard: fencelock::Guard) -> fencelock::Result<()> {
/// let gate = fencelock::connect_gate("redis://127.0.0.1").await?;
/// let left = gate.increment("stock:lamp", guard.token(), -1).await?;
/// println!("{left} left");
/// # Ok(()) }
/// ```
pub struct RedisGate {
    link: Arc<Link>,
}

impl RedisGate {
    /// The function `fencelock_gate(gate key, token)` for the head of scripts of your own. It answers nil and remembers the
    /// token, or an error to return. [`RedisGate::key`] tells the gate's key.
    pub const LUA: &str = include_str!("scripts/gate.lua");

    /// Connects as a client does; `others` are the hosts behind the first one, which a URL cannot hold.
    pub(crate) async fn connect(
        url: &Url,
        others: &[String],
        options: &Options,
        runtime: RuntimeHandle,
    ) -> Result<Self> {
        let address = Address::parse(url, others, options)?;
        if let Topology::Cluster(_) = address.topology {
            let message = "a gate stands on one server, or on a master under sentinels; in a cluster put `RedisGate::LUA` at the head of a script of your own";
            return Err(Error::new(Code::Unsupported, message).with("server", address.to_string()));
        }
        // It hears nothing, so it listens nowhere.
        Ok(Self { link: Link::connect(address, options, String::new(), runtime).await? })
    }

    /// Where the newest token of a key lies.
    pub fn key(resource: &str) -> String {
        keys::gate_key(resource)
    }

    /// Sets a key to a text.
    pub async fn set(&self, resource: &str, token: Token, value: &str) -> Result<()> {
        self.write(resource, token, |command| command.arg("SET").arg(value)).await
    }

    /// Deletes a key; whether it was there.
    pub async fn delete(&self, resource: &str, token: Token) -> Result<bool> {
        self.write(resource, token, |command| command.arg("DEL")).await
    }

    /// Adds to a whole number, which is 0 if the key is not there; answers the sum.
    pub async fn increment(&self, resource: &str, token: Token, by: i64) -> Result<i64> {
        self.write(resource, token, |command| command.arg("INCRBY").arg(by)).await
    }

    /// The newest token that has written a key.
    pub async fn newest(&self, resource: &str) -> Result<Option<Token>> {
        let mut command = redis::cmd("GET");
        command.arg(keys::gate_key(resource));
        let newest: Option<u64> = self.send(resource, &command).await?;
        Ok(newest.map(Token::new))
    }

    async fn write<T: FromRedisValue>(
        &self,
        resource: &str,
        token: Token,
        arguments: impl FnOnce(&mut Cmd) -> &mut Cmd,
    ) -> Result<T> {
        let mut command = redis::cmd("EVAL");
        command.arg([Self::LUA, WRITE].concat()).arg(2).arg(resource).arg(Self::key(resource));
        arguments(command.arg(token.get()));
        self.send(resource, &command).await.map_err(|error| error.with("token", token.to_string()))
    }

    async fn send<T: FromRedisValue>(&self, resource: &str, command: &Cmd) -> Result<T> {
        let live = self.link.live().await?;
        let mut connection = live.connection.clone();
        let reply = self.link.answer(&live, connection.send_packed_command(command)).await?;
        if let Value::ServerError(error) = &reply {
            let text = fault::words(error);
            let error = self.refusal(resource, &text);
            if fault::is_demotion(&error) {
                self.link.demote(&live);
            }
            return Err(error);
        }
        redis::from_redis_value(reply)
            .map_err(|error| fault::unanswered(&self.link.address, &error.to_string()))
    }

    fn refusal(&self, resource: &str, text: &str) -> Error {
        let newest = text.strip_prefix("LOST ").and_then(|text| text.rsplit_once("newest "));
        let error = match newest {
            Some((_, newest)) => Error::refused_by_gate().with("newest", newest.trim()),
            None if text.contains("WRONGTYPE") || text.contains("not an integer") => {
                let message = "what lies under the key is not of the type that was to be written";
                Error::new(Code::Conflict, message)
            }
            None => fault::refusal(&self.link.address, text, None),
        };
        error.with("resource", resource)
    }
}

impl fmt::Debug for RedisGate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisGate").field("address", &self.link.address).finish_non_exhaustive()
    }
}

impl Drop for RedisGate {
    fn drop(&mut self) {
        self.link.close();
    }
}
