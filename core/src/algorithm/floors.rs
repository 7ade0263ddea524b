//! The highest token this client has seen of each name, so that a store that lost its data draws no older one.

use std::collections::BTreeMap;

use crate::fence::Token;
use crate::port::LockKey;
use crate::runtime::sync::Mutex;

/// Names remembered in each of the two generations.
const GENERATION: usize = 1024;

/// Whether a grant's token lies below one that was seen before it was asked for: a guarded resource would refuse it, and take what is
/// stale.
pub(super) fn is_behind(token: Token, floor: Token) -> bool {
    token < floor
}

/// A bounded memory: two generations, so that names in use stay and others go.
#[derive(Default)]
pub(crate) struct Floors(Mutex<[BTreeMap<LockKey, Token>; 2]>);

impl Floors {
    /// The highest token seen.
    pub(crate) fn of(&self, key: &LockKey) -> Token {
        let generations = self.0.lock();
        generations.iter().filter_map(|seen| seen.get(key)).max().copied().unwrap_or_default()
    }

    /// A token was seen.
    pub(crate) fn saw(&self, key: &LockKey, token: Token) {
        let mut generations = self.0.lock();
        let [young, old] = &mut *generations;
        if let Some(seen) = young.get_mut(key) {
            *seen = token.max(*seen);
            return;
        }
        if young.len() >= GENERATION {
            *old = std::mem::take(young);
        }
        let token = old.get(key).copied().unwrap_or_default().max(token);
        young.insert(key.clone(), token);
    }
}
