//! Locks of every kind: calls as operations of the facade.

use std::collections::BTreeMap;

use fencelock::facade::{Facade, Form, Operation};

use crate::protocol::{Call, Options};

/// The scopes of a client, by their names in a case.
#[derive(Default)]
pub(super) struct Scopes(BTreeMap<String, u64>);

impl Scopes {
    /// The operation a call stands for, if it asks for a lock.
    pub(super) fn operation(&mut self, facade: &Facade, call: Call) -> Result<Operation, Call> {
        let mut form = |mode, permits, scope: Option<String>| {
            let scope =
                scope.map(|name| *self.0.entry(name).or_insert_with(|| facade.open_scope()));
            Form { mode, permits, scope }
        };
        Ok(match call {
            Call::Acquire { lock: name, mode, permits, scope, options } => {
                Operation::Acquire { name, form: form(mode, permits, scope), options }
            }
            Call::Try { lock: name, mode, permits, scope, options, wait } => {
                let (form, wait) = (form(mode, permits, scope), wait.map(Into::into));
                Operation::TryAcquire { name, form, options, wait }
            }
            Call::AcquireAll { locks: names, options } => Operation::AcquireAll { names, options },
            Call::TryAll { locks: names, options, wait } => {
                Operation::TryAcquireAll { names, options, wait: wait.map(Into::into) }
            }
            Call::IsLocked { lock: name } => {
                Operation::IsLocked { name, form: Form::default(), options: Options::new() }
            }
            Call::BreakLock { lock: name, reason, token } => {
                Operation::BreakLock { name, reason, token }
            }
            Call::Gate { resource, token, write } => Operation::Gate { resource, token, write },
            Call::PingStore => Operation::Ping,
            other => return Err(other),
        })
    }
}
