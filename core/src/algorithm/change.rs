//! Change of a hold's mode: an upgrade waits for the readers to leave, a downgrade lets them in.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::select;

use super::core::Core;
use super::hold::Hold;
use super::register::{LONGEST_REST, SHORTEST_REST};
use super::undo::Undo;
use crate::error::{Code, Error, Result};
use crate::fence::Token;
use crate::port::{Action, Mode, Outcome};

impl Core {
    /// Makes the upgradeable reader the writer. Waits until no other reader is left; may be dropped at any await, then the
    /// hold is a reader's as before, and so it is if nobody keeps the end.
    pub(crate) async fn upgrade(self: &Arc<Self>, hold: &Arc<Hold>) -> Result<Upgraded> {
        if hold.mode() != Mode::Upgradeable {
            let message = "only an upgradeable reader can become the writer; acquire it with `upgradeable` from the start";
            return Err(Error::new(Code::Unsupported, message).with("name", hold.lock.as_str()));
        }
        let mut upgrade = Upgrade { core: self, hold, done: false };
        let turn = hold.next_turn();
        let mut rest = SHORTEST_REST;
        loop {
            // Before asking, so that no news is missed.
            let news = hold.on_lost();
            if !hold.is_held() {
                return Err(lost(hold));
            }
            let sent = self.runtime.now();
            let action = Action::Change { mode: Mode::Write, ttl: lease(hold), turn };
            let pause = match self.store.step(vec![hold.lock.step(hold.owner, action)]).await.pop()
            {
                Some(Ok(Outcome::Granted { token, left })) => {
                    if !hold.prolong(sent, left, self.runtime.now()) {
                        return Err(lost(hold));
                    }
                    upgrade.done = true;
                    hold.set_mode(Mode::Write);
                    self.floors.saw(&hold.lock.key, token);
                    let unkept = Some((self.clone(), hold.clone()));
                    return Ok(Upgraded { token, turn: hold.turn(), unkept });
                }
                Some(Ok(Outcome::Queued { .. })) => {
                    rest = SHORTEST_REST;
                    (hold.ttl() / 4).clamp(SHORTEST_REST, LONGEST_REST)
                }
                Some(Ok(Outcome::Gone)) => {
                    self.lose(hold, true);
                    return Err(lost(hold));
                }
                Some(Err(failure)) if failure.error.retryable() => {
                    rest = LONGEST_REST.min(rest * 2);
                    rest
                }
                Some(Err(failure)) => return Err(failure.error.with("name", hold.lock.as_str())),
                Some(Ok(_)) | None => {
                    return Err(Error::internal("the store answered a Change with something else"));
                }
            };
            let until = (self.runtime.now() + pause).min(hold.deadline());
            select(news, self.runtime.sleep_until(until)).await;
        }
    }

    /// Makes the hold a lesser one: others may enter beside it. It keeps its token.
    pub(crate) async fn downgrade(self: &Arc<Self>, hold: &Arc<Hold>, mode: Mode) -> Result<()> {
        let from = hold.mode();
        match (from, mode) {
            (Mode::Write, Mode::Upgradeable | Mode::Read) | (Mode::Upgradeable, Mode::Read) => {}
            _ if from == mode => return Ok(()),
            _ => {
                let message = "a hold can be turned from writer to upgradeable or reader, and from upgradeable to reader";
                let error = Error::new(Code::Unsupported, message);
                return Err(error.with("name", hold.lock.as_str()));
            }
        }
        if !hold.is_held() {
            return Err(lost(hold));
        }
        // It claims no more than it will have, whatever becomes of the request.
        hold.set_mode(mode);
        self.vacate(hold);
        let sent = self.runtime.now();
        let action = Action::Change { mode, ttl: lease(hold), turn: hold.next_turn() };
        let step = hold.lock.step(hold.owner, action.clone());
        let mut untold = Untold { core: self, hold, action: Some(action) };
        let answer = self.store.step(vec![step]).await.pop();
        if matches!(answer, Some(Ok(_))) {
            untold.action = None;
        }
        match answer {
            Some(Ok(Outcome::Granted { left, .. })) => {
                if hold.prolong(sent, left, self.runtime.now()) { Ok(()) } else { Err(lost(hold)) }
            }
            Some(Ok(_)) => {
                // Some of a quorum's nodes may still keep it.
                self.lose(hold, false);
                Err(lost(hold))
            }
            Some(Err(failure)) => Err(failure.error.with("name", hold.lock.as_str())),
            None => Err(Error::internal("the store gave no answer")),
        }
    }

    /// Makes the hold an upgradeable reader's again, whatever of its upgrade has arrived.
    fn take_upgrade_back(&self, hold: &Hold) {
        let (ttl, turn) = (Duration::ZERO, hold.next_turn());
        self.change_later(hold, Action::Change { mode: Mode::Upgradeable, ttl, turn });
    }

    /// Has the housekeeping repeat a change until the store confirms it.
    fn change_later(&self, hold: &Hold, action: Action) {
        let (lock, owner, until) = (hold.lock.clone(), hold.owner, hold.deadline());
        self.undo.send(Undo { lock, owner, action, until, settled: None });
    }
}

/// The lease a change renews to; a fixed one is not.
fn lease(hold: &Hold) -> Duration {
    if hold.renew { hold.ttl() } else { Duration::ZERO }
}

fn lost(hold: &Hold) -> Error {
    let message = "the lock was lost before its mode could be changed";
    Error::new(Code::Lost, message).with("name", hold.lock.as_str())
}

/// A change that the store has not confirmed; repeated until it does, also if nobody stays for the answer.
struct Untold<'a> {
    core: &'a Arc<Core>,
    hold: &'a Hold,
    action: Option<Action>,
}

impl Drop for Untold<'_> {
    fn drop(&mut self) {
        if let Some(action) = self.action.take()
            && !mutant!(DowngradeForgotten)
        {
            self.core.change_later(self.hold, action);
        }
    }
}

/// An upgrade under way; taken back unless it came to its end.
struct Upgrade<'a> {
    core: &'a Arc<Core>,
    hold: &'a Hold,
    done: bool,
}

impl Drop for Upgrade<'_> {
    fn drop(&mut self) {
        // Another one of the same hold may have come to its end.
        let writes = self.hold.mode() == Mode::Write;
        if !self.done && !writes && !self.hold.is_lost() && !mutant!(CancelForgets) {
            self.core.take_upgrade_back(self.hold);
        }
    }
}

/// The end of an upgrade, on its way to whoever asked for it. Dropped, it makes the writer the reader it was.
pub(crate) struct Upgraded {
    token: Token,
    /// The newest change when it ended: what was asked for since outweighs it.
    turn: u32,
    unkept: Option<(Arc<Core>, Arc<Hold>)>,
}

impl Upgraded {
    /// It was the writer before.
    pub(crate) fn already(token: Token) -> Self {
        Self { token, turn: 0, unkept: None }
    }

    /// Somebody has it: the token drawn with it.
    pub(crate) fn keep(mut self) -> Token {
        self.unkept = None;
        self.token
    }
}

impl Drop for Upgraded {
    fn drop(&mut self) {
        if let Some((core, hold)) = self.unkept.take()
            && hold.mode() == Mode::Write
            && hold.turn() == self.turn
            && !hold.is_lost()
        {
            hold.set_mode(Mode::Upgradeable);
            core.take_upgrade_back(&hold);
        }
    }
}
