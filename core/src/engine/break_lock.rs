//! Ends the holds of a lock that other clients have: for an operator who cannot end the holder.

use serde::Deserialize;

use super::Engine;
use super::request::LockId;
use crate::error::{Code, Error, Result};
use crate::event::Event;
use crate::fence::Token;
use crate::port::{Action, HolderView, Layout, Outcome, Step};

impl Engine {
    /// Ends all holds of a lock, whatever kind it is, or those with this token. Answers those that it ended.
    pub(crate) async fn break_lock(
        &self,
        lock: &LockId,
        token: Option<Token>,
        reason: &str,
    ) -> Result<Vec<HolderView>> {
        let state = self.look_at(lock).await?;
        let chosen = |holder: &HolderView| token.is_none() || holder.token == token;
        let holders: Vec<_> = state.holders.into_iter().filter(chosen).collect();
        // All are known before the first is ended: a refusal has changed nothing.
        let steps = holders.iter().map(|holder| {
            let owner = holder.owner.ok_or_else(|| not_ours(lock, &holder.info))?;
            let (lock, kind, action) = (lock.key.clone(), state.kind, Action::Break);
            Ok(Step { lock, owner, kind, action })
        });
        let steps = steps.collect::<Result<Vec<_>>>()?;
        let mut broken = Vec::new();
        if !steps.is_empty() {
            for (holder, answer) in holders.into_iter().zip(self.store.step(steps).await) {
                // `Gone`: it was given back since the look, or has ended.
                if answer.map_err(|failure| failure.error)? == Outcome::Freed {
                    self.events.warn(Event::broken(lock.name(), holder.token, reason));
                    broken.push(holder);
                }
            }
        }
        if broken.is_empty() { Err(nothing_to_break(token)) } else { Ok(broken) }
    }
}

fn nothing_to_break(token: Option<Token>) -> Error {
    match token {
        None => Error::new(Code::NotHeld, "nobody holds this lock, so there is nothing to break"),
        Some(token) => {
            let message = "nobody holds this lock with that token, so there is nothing to break";
            Error::new(Code::NotHeld, message).with("token", token.to_string())
        }
    }
}

/// The error for a hold without an owner id: the store can end it, fencelock cannot.
fn not_ours(lock: &LockId, info: &str) -> Error {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Session {
        Postgres { backend: u32 },
        Mysql { connection: u64 },
    }
    let statement = match serde_json::from_str(info) {
        Ok(Session::Postgres { backend }) => format!("SELECT pg_terminate_backend({backend})"),
        Ok(Session::Mysql { connection }) => format!("KILL {connection}"),
        Err(_) => {
            let message = "another library or program holds this lock, which would not notice that it is broken; end that program, or delete the lock on the store by hand";
            let error = Error::new(Code::Unsupported, message);
            return match lock.key.layout() {
                Layout::Plain => error.with("statement", format!("DEL {}", lock.as_str())),
                _ => error,
            };
        }
    };
    let message = "a session of the database server holds this lock, and only the server can end it; run the statement there";
    Error::new(Code::Unsupported, message).with("statement", statement)
}
