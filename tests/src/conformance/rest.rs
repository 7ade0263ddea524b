//! The end of every case: whatever it was about, nothing may be left, nobody was told a loss that was none, and the actors
//! leave in good order.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::check;
use super::engine::{Run, locked};
use super::player::Player;
use super::ready::LEAVING;
use super::scope::{Entry, Fate};
use super::step::{Expect, Name, State};
use crate::protocol::{Call, Options};

/// A round trip, and the machine's own time.
const SOON: Duration = Duration::from_secs(1);
/// The tickets of the dead live this long, and the leases of the dead at most a second.
const AFTER_DEATH: Duration = Duration::from_secs(7);
const LOOK: Duration = Duration::from_millis(5);

impl Run<'_> {
    /// Gives everything back, and looks at what is left.
    pub(super) async fn rest(&self) -> Result<(), String> {
        let strays = std::mem::take(&mut *locked(&self.notes.strays));
        for entry in strays {
            self.give_back(entry).await.map_err(|wrong| format!("at the end: {wrong}"))?;
        }
        self.until("the clients come to rest", SOON, || self.at_rest()).await?;
        self.free().await?;
        let nothing = || async {
            let left = self.ground.leftovers(&self.prefix)?;
            if left.is_empty() { Ok(()) } else { Err(left.join(", ")) }
        };
        // Other libraries leave signals that end by themselves.
        let patience = if self.case.incumbents.is_empty() { Duration::ZERO } else { SOON };
        self.until("nothing is left on the store", patience, nothing).await?;
        for (by, guard) in locked(&self.notes.released).iter() {
            if !self.player(by)?.lost(*guard).is_empty() {
                return Err(format!("guard {guard} of `{by}` was released, and told to be lost"));
            }
        }
        for (by, guard) in locked(&self.notes.watched).iter() {
            if self.player(by)?.lost(*guard).len() > 1 {
                return Err(format!("guard {guard} of `{by}` was told more than once to be lost"));
            }
        }
        for name in self.players.keys() {
            self.close_or_leave(name).await?;
        }
        self.players.values().find_map(Player::complaint).map_or(Ok(()), Err)
    }

    async fn give_back(&self, entry: Entry) -> Result<(), String> {
        let player = self.player(&entry.by)?;
        if player.is_gone() || self.case.is_incumbent(&entry.by) {
            // What another library still holds shows on the store.
            return Ok(());
        }
        let mut grant = entry.grant;
        if entry.fate == Fate::Asked {
            self.call(&entry.by, Call::Abort { target: entry.reply.id }, &Expect::Done).await?;
            grant = check::grant(&self.end(&entry.reply, SOON).await?.end);
        }
        if let (Some(grant), Fate::Asked | Fate::Granted) = (grant, entry.fate) {
            self.call(&entry.by, Call::Drop { guard: grant.guard }, &Expect::Done).await?;
        }
        Ok(())
    }

    /// Every client that lives carries nothing any more.
    async fn at_rest(&self) -> Result<(), String> {
        for (name, player) in &self.players {
            let silent = player.is_gone() || player.closed.load(Ordering::Acquire);
            if silent || self.case.is_incumbent(name) {
                continue;
            }
            let load = self.call(name, Call::Load, &Expect::Done).await?;
            let counts = load.as_object().into_iter().flat_map(|load| load.values());
            if counts.clone().count() != 5 || counts.into_iter().any(|count| *count != 0) {
                return Err(format!("`{name}` carries {load}"));
            }
        }
        Ok(())
    }

    /// No lock of the case is held or waited for.
    async fn free(&self) -> Result<(), String> {
        let Some(witness) = self.witness() else { return Ok(()) };
        let patience = if self.notes.killed.load(Ordering::Acquire) { AFTER_DEATH } else { SOON };
        let locks = locked(&self.notes.locks).clone();
        for (lock, dialect) in locks {
            let options: Options =
                dialect.into_iter().map(|dialect| ("dialect".to_owned(), dialect.into())).collect();
            let nobody = State {
                by: None,
                lock: Name::Exact { exact: lock.clone() },
                options: options.clone(),
                holder: Some("nobody".to_owned()),
                waiters: Some(0),
                modes: None,
                infos: None,
                info: BTreeMap::default(),
                left: None,
                endless: false,
                within: None,
            };
            let look = || async {
                let call = Call::Inspect { lock: lock.clone(), options: options.clone() };
                let seen = self.call(witness, call, &Expect::Done).await?;
                check::state(&nobody, None, false, &seen)
            };
            self.until(&format!("`{lock}` is free"), patience, look).await?;
        }
        Ok(())
    }

    /// Closes the client of an actor that stays for the next case; any other actor leaves.
    async fn close_or_leave(&self, name: &str) -> Result<(), String> {
        let player = self.player(name)?;
        if !self.stay || player.is_gone() || self.case.is_incumbent(name) {
            return self.leave(name).await;
        }
        if !player.closed.swap(true, Ordering::AcqRel) {
            self.call(name, Call::Close, &Expect::Done).await?;
        }
        Ok(())
    }

    /// The end of the input ends an actor.
    pub(super) async fn leave(&self, name: &str) -> Result<(), String> {
        let player = self.player(name)?;
        let gone = || async {
            if player.has_left()? { Ok(()) } else { Err("it is still there".to_owned()) }
        };
        self.until(&format!("`{name}` leaves"), LEAVING, gone).await?;
        player.left();
        Ok(())
    }

    /// Looks again until it is well.
    async fn until<F: Future<Output = Result<(), String>>>(
        &self,
        what: &str,
        within: Duration,
        look: impl Fn() -> F,
    ) -> Result<(), String> {
        let end = self.clock.now() + within + Duration::from_millis(self.slack);
        loop {
            match look().await {
                Ok(()) => return Ok(()),
                Err(wrong) if self.clock.now() >= end => {
                    return Err(format!("not within {within:?}: {what}: {wrong}"));
                }
                Err(_) => self.sleep(LOOK).await,
            }
        }
    }
}
