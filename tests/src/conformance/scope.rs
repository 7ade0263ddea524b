//! The names that the steps of a case use, and the real names of its locks.

use std::collections::BTreeMap;

use futures_util::FutureExt;

use super::player::Reply;
use super::step::Name;
use crate::protocol::Grant;

/// Something a case asked for, and what became of it.
#[derive(Clone)]
pub(super) struct Entry {
    /// The actor.
    pub by: String,
    /// The lock and its dialect.
    pub lock: (String, Option<String>),
    /// It was asked for in a scope, which gives a token again.
    pub again: bool,
    pub reply: Reply,
    pub grant: Option<Grant>,
    pub fate: Fate,
}

/// The state of an entry so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It has not been looked at.
    Asked,
    /// It ended without a guard.
    Over,
    /// Its guard is there.
    Granted,
    /// Its guard was given back while it held.
    Released,
    /// Its guard was given back, whatever it was worth.
    Gone,
}

/// The names of one branch.
#[derive(Clone, Default)]
pub(super) struct Scope {
    pub entries: BTreeMap<String, Entry>,
    /// Versions of values.
    pub versions: BTreeMap<String, u64>,
    /// The branch's number.
    pub branch: usize,
    /// How many were asked for without a name.
    nameless: usize,
}

impl Scope {
    pub(super) fn entry(&mut self, name: &str) -> Result<&mut Entry, String> {
        self.entries.get_mut(name).ok_or_else(|| format!("nothing here is called `{name}`"))
    }

    /// The entries that have ended and were not given back, to explain why something else has not ended.
    pub(super) fn ended(&self) -> Vec<&str> {
        let open = |fate| matches!(fate, Fate::Asked | Fate::Granted);
        let ended = |reply: &Reply| reply.end.clone().now_or_never().is_some();
        let entries = self.entries.iter();
        let entries = entries.filter(|(_, entry)| open(entry.fate) && ended(&entry.reply));
        entries.map(|(name, _)| name.as_str()).collect()
    }

    pub(super) fn grant(&mut self, name: &str) -> Result<(String, Grant), String> {
        let entry = self.entry(name)?;
        let grant = entry.grant.ok_or_else(|| format!("`{name}` was not granted"))?;
        Ok((entry.by.clone(), grant))
    }

    pub(super) fn insert(&mut self, name: Option<&String>, entry: Entry) -> Result<String, String> {
        let name = if let Some(name) = name {
            self.fill_in(name)
        } else {
            self.nameless += 1;
            format!("#{}", self.nameless)
        };
        // A name may be used again once what it stood for is done with, as in a loop.
        let busy = |old: &Entry| matches!(old.fate, Fate::Asked | Fate::Granted);
        if self.entries.get(&name).is_some_and(busy) {
            return Err(format!("`{name}` is still in use"));
        }
        self.entries.insert(name.clone(), entry);
        Ok(name)
    }

    /// A branch with this number and names of its own.
    pub(super) fn branch(number: usize) -> Self {
        Self { branch: number, ..Self::default() }
    }

    /// `{n}` is the branch's number.
    pub(super) fn fill_in(&self, text: &str) -> String {
        text.replace("{n}", &self.branch.to_string())
    }

    /// The real name of a lock in this case.
    pub(super) fn lock_name(&self, prefix: &str, name: &Name) -> String {
        match name {
            Name::Own(name) => format!("{prefix}{}", self.fill_in(name)),
            Name::Exact { exact } => exact.clone(),
            Name::Filled { bytes, of } => {
                let room = bytes - prefix.len();
                format!("{prefix}{}{}", of.repeat(room / of.len()), "-".repeat(room % of.len()))
            }
        }
    }
}
