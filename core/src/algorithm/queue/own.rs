//! An entry of this client: what it is, and what is known of those before it.

use std::time::Duration;

use super::order::{Want, to_watch};
use crate::fence::Token;
use crate::port::{Instant, Joined, LockKey, Rank, Standing};

/// How many tokens a grant has, one for each local holder: a rank is that many tokens away from the next.
pub(super) const TOKENS: u32 = 32;

/// See the module.
pub(super) struct Own {
    pub(super) lock: LockKey,
    pub(super) want: Want,
    pub(super) stage: Stage,
    /// Its place; `None` until that is known.
    pub(super) rank: Option<Rank>,
    /// Those before it that have not gone, as far as is known.
    pub(super) before: Vec<Standing>,
    /// One of them has gone since they were read. Others may have too: only the nearest are watched.
    outdated: bool,
    /// It holds, and its own entry is watched: somebody else may remove it.
    pub(super) is_watched: bool,
    /// Moves that arrived while its join was under way.
    early: Vec<Rank>,
    /// When the newest step arrived that was answered "still waiting": a push counts from there.
    pub(super) base: Instant,
    /// The lease wanted, and until when it was wanted.
    pub(super) ttl: Duration,
    pub(super) ends: Instant,
    /// The first of its tokens, and how many.
    pub(super) token: Token,
    pub(super) drawn: u32,
}

/// Where an entry of this client is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Joining,
    Waiting,
    Holding,
    /// It is being removed.
    Leaving,
}

/// The effect of a change of another entry on one that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Consequence {
    /// Nothing.
    Same,
    /// Another entry is to be watched.
    Watch,
    /// It holds.
    Hold,
}

impl Own {
    pub(super) fn joining(lock: LockKey, want: Want, ttl: Duration, block: u32) -> Self {
        let (stage, ends) = (Stage::Joining, Instant::FAR);
        let drawn = block.min(TOKENS);
        Self {
            lock,
            want,
            stage,
            rank: None,
            before: Vec::new(),
            outdated: false,
            is_watched: false,
            early: Vec::new(),
            base: Instant::default(),
            ttl,
            ends,
            token: Token::default(),
            drawn,
        }
    }

    /// It has its place.
    pub(super) fn joined(&mut self, joined: Joined) {
        self.token = Token::new(joined.fence * u64::from(TOKENS));
        self.rank = Some(joined.rank);
        self.before = joined.before;
        self.stage = Stage::Waiting;
        for gone in std::mem::take(&mut self.early) {
            self.note(&gone);
        }
    }

    /// Those in the way.
    pub(super) fn to_watch(&self) -> Vec<Standing> {
        to_watch(self.want, &self.before)
    }

    /// Whether the whole queue is to be read before another entry is watched. Else one after another would be asked for that has
    /// gone long ago.
    pub(super) fn is_outdated(&self) -> bool {
        self.outdated
    }

    /// The whole queue was read.
    pub(super) fn saw(&mut self, all: &[Standing]) {
        self.outdated = false;
        self.before.retain_mut(|known| {
            let Ok(at) = all.binary_search_by(|standing| standing.rank.cmp(&known.rank)) else {
                return false;
            };
            known.mode = all[at].mode;
            true
        });
    }

    /// Whether this is the entry itself, and it is gone.
    pub(super) fn is_gone_by(&self, gone: &Rank) -> bool {
        self.rank.as_ref() == Some(gone)
    }

    /// Another entry is gone.
    pub(super) fn heard(&mut self, gone: &Rank) -> Consequence {
        match self.stage {
            Stage::Joining => self.early.push(gone.clone()),
            Stage::Waiting => {
                let watched = self.to_watch();
                self.note(gone);
                let now = self.to_watch();
                return match now.is_empty() {
                    true => Consequence::Hold,
                    false if now != watched => Consequence::Watch,
                    false => Consequence::Same,
                };
            }
            Stage::Holding | Stage::Leaving => {}
        }
        Consequence::Same
    }

    fn note(&mut self, gone: &Rank) {
        if let Some(place) = self.before.iter().position(|standing| standing.rank == *gone) {
            self.before.remove(place);
            self.outdated = true;
        }
    }
}
