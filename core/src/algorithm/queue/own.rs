//! An entry of this client: what it is, and what is known of those before it.

use std::time::Duration;

use super::order::{Want, looks_for_upgrades, to_watch};
use crate::fence::Token;
use crate::port::{Instant, Joined, Kind, LockKey, Mode, Moved, OwnerId, Rank, Standing};

/// How many tokens a grant has, one for each local holder: a rank is that many tokens away from the next.
pub(super) const TOKENS: u32 = 32;

/// See the module.
pub(super) struct Own {
    pub(super) lock: LockKey,
    pub(super) want: Want,
    /// How its holder holds: less than the entry says while a change is on its way.
    pub(super) mode: Mode,
    pub(super) stage: Stage,
    /// Its place; `None` until that is known.
    pub(super) rank: Option<Rank>,
    /// Those before it that have not gone, as far as is known.
    pub(super) before: Vec<Standing>,
    /// Those of them that draw a fence when they hold, unless it is known that they have not held since: their tokens may be
    /// greater than the one of this entry's rank.
    above: Vec<Rank>,
    /// One of them has gone since they were read. Others may have too: only the nearest are watched.
    outdated: bool,
    /// It holds, and its own entry is watched: somebody else may remove it.
    pub(super) is_watched: bool,
    /// It is about to hold: it looks, or draws a fence.
    pub(super) entering: bool,
    /// What was heard while its join was under way.
    early: Vec<Moved>,
    /// When the newest step arrived that was answered "still waiting": a push counts from there.
    pub(super) base: Instant,
    /// The lease wanted, and until when it was wanted.
    pub(super) ttl: Duration,
    pub(super) ends: Instant,
    /// The first of its tokens, and how many.
    pub(super) token: Token,
    pub(super) drawn: u32,
    /// The number of the newest change of its mode.
    pub(super) turn: u32,
    /// The entry that makes it the writer.
    pub(super) upgrade: Option<OwnerId>,
    /// The entry that this one makes the writer.
    pub(super) upgrades: Option<OwnerId>,
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

/// What a news of another entry means for one that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Consequence {
    /// Nothing.
    Same,
    /// Another entry is to be watched.
    Watch,
    /// It holds after one more look, or with another fence.
    Enter,
    /// It holds.
    Hold,
}

impl Own {
    pub(super) fn joining(lock: LockKey, want: Want, ttl: Duration, block: u32) -> Self {
        let (mode, stage, ends) = (want.mode, Stage::Joining, Instant::FAR);
        let drawn = block.min(TOKENS);
        Self {
            lock,
            want,
            mode,
            stage,
            rank: None,
            before: Vec::new(),
            above: Vec::new(),
            outdated: false,
            is_watched: false,
            entering: false,
            early: Vec::new(),
            base: Instant::default(),
            ttl,
            ends,
            token: Token::default(),
            drawn,
            turn: 0,
            upgrade: None,
            upgrades: None,
        }
    }

    /// It has its place.
    pub(super) fn joined(&mut self, joined: Joined) {
        self.has_fence(joined.fence);
        self.rank = Some(joined.rank);
        self.before = joined.before;
        if !draws(self.want.mode) {
            let draws = self.before.iter().filter(|standing| draws(standing.mode));
            self.above = draws.map(|standing| standing.rank.clone()).collect();
        }
        self.stage = Stage::Waiting;
        if self.is_outranked() {
            return;
        }
        for moved in std::mem::take(&mut self.early) {
            self.note(&moved);
        }
    }

    pub(super) fn has_fence(&mut self, fence: u64) {
        self.token = Token::new(fence * u64::from(TOKENS));
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
        let Some(first) = self.before.first().filter(|first| !draws(first.mode)) else { return };
        // Whoever stood behind it, and is gone, has never held.
        let stands = |rank: &Rank| self.before.iter().any(|standing| standing.rank == *rank);
        self.above.retain(|rank| *rank < first.rank || stands(rank));
    }

    /// Whether this is the entry itself, and it is gone.
    pub(super) fn is_gone_by(&self, moved: &Moved) -> bool {
        moved.mode.is_none() && self.rank.as_ref() == Some(&moved.rank)
    }

    /// Another entry has gone, or is weaker.
    pub(super) fn heard(&mut self, moved: &Moved) -> Consequence {
        match self.stage {
            // On a read-write lock an entry that was blocked when it was made looks before it holds: the watch tells it.
            Stage::Joining if self.draws() => {}
            Stage::Joining => self.early.push(moved.clone()),
            Stage::Waiting => {
                let watched = self.to_watch();
                self.note(moved);
                let now = self.to_watch();
                return match now.is_empty() {
                    true if self.draws() || self.looks() || self.is_outranked() => {
                        Consequence::Enter
                    }
                    true => Consequence::Hold,
                    false if now != watched => Consequence::Watch,
                    false => Consequence::Same,
                };
            }
            Stage::Holding | Stage::Leaving => {}
        }
        Consequence::Same
    }

    /// Whether it draws a fence anew before it holds, since it waited. Upgrades and readers go past those that wait, so that the
    /// ranks of a read-write lock do not rise with its grants.
    pub(super) fn draws(&self) -> bool {
        draws(self.want.mode)
    }

    /// Whether somebody of another kind may have held since it was made, with a greater token. Then it does not hold, but joins
    /// anew.
    pub(super) fn is_outranked(&self) -> bool {
        !self.above.is_empty()
    }

    /// Whether it looks for an upgrade behind it before it holds.
    pub(super) fn looks(&self) -> bool {
        looks_for_upgrades(self.want, &self.before)
    }

    fn note(&mut self, moved: &Moved) {
        let place = self.before.iter().position(|standing| standing.rank == moved.rank);
        match (place, moved.mode) {
            (None, _) => {}
            (Some(place), None) => {
                self.before.remove(place);
                self.outdated = true;
            }
            (Some(place), Some(mode)) => self.before[place].mode = mode,
        }
    }
}

/// Whether holders in this mode draw a fence when they hold.
fn draws(mode: Mode) -> bool {
    mode.kind() == Kind::ReadWrite
}
