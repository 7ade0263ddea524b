//! Writes through a gate on the client's Redis server.

use super::client::{Facade, Work};
use super::operation::GateWrite;

#[cfg(feature = "redis")]
impl Facade {
    pub(super) fn gate(&self, resource: String, token: u64, write: GateWrite) -> Work {
        use std::sync::Arc;

        use serde_json::{Value, json};

        use crate::fence::Token;

        let (client, shared) = (self.client.clone(), Arc::clone(&self.shared));
        Box::pin(async move {
            let known = shared.state.lock().gate.clone();
            let gate = match known {
                Some(gate) if !client.is_closed() => gate,
                _ => {
                    let gate = Arc::new(client.gate().await?);
                    shared.state.lock().gate.get_or_insert(gate).clone()
                }
            };
            let token = Token::new(token);
            let written = match write {
                GateWrite::Set(text) => {
                    gate.set(&resource, token, &text).await?;
                    Value::Null
                }
                GateWrite::Delete => json!(gate.delete(&resource, token).await?),
                GateWrite::Increment(by) => json!(gate.increment(&resource, token, by).await?),
            };
            Ok(written.into())
        })
    }
}

#[cfg(not(feature = "redis"))]
impl Facade {
    #[expect(clippy::unused_self, reason = "it is the same call")]
    pub(super) fn gate(&self, _resource: String, _token: u64, _write: GateWrite) -> Work {
        use crate::error::{Code, Error};

        let message = "a gate needs a connection of fencelock's own to Redis, and this build has none; compare the token in a script of your own";
        Box::pin(std::future::ready(Err(Error::new(Code::Unsupported, message))))
    }
}
