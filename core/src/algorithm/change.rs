//! Change of a hold's mode: an upgrade waits for the readers to leave, a downgrade lets them in.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::select;
use scopeguard::{ScopeGuard, guard};

use super::cleanup::Cleanup;
use super::core::Core;
use super::hold::{Hold, Lessened};
use super::next_look::{LONGEST_REST, SHORTEST_REST};
use crate::error::{Code, Error, Result};
use crate::fence::Token;
use crate::port::{Action, Mode, Outcome};

impl Core {
    /// Makes the upgradeable reader the writer. Waits until no other reader is left. May be dropped at any await, as may its
    /// result: then the hold is a reader again, unless another call still wants the upgrade. `token` is what the guard knows:
    /// no new one is drawn for a writer.
    pub(crate) async fn upgrade(
        self: &Arc<Self>,
        hold: &Arc<Hold>,
        token: Token,
    ) -> Result<Upgraded> {
        let Some(turn) = hold.join_upgrade() else {
            let message = "only an upgradeable reader can become the writer; acquire it with `upgradeable` from the start";
            return Err(Error::new(Code::Unsupported, message).with("name", hold.lock.as_str()));
        };
        let upgraded =
            Upgraded { core: self.clone(), hold: hold.clone(), turn, token, kept: false };
        let mut rest = SHORTEST_REST;
        loop {
            // Before asking, so that no news is missed.
            let news = hold.on_lost();
            if !hold.is_held() {
                return Err(lost(hold));
            }
            if !hold.is_newest(turn) {
                return Err(overtaken(hold));
            }
            if let Some(drawn) = hold.writes() {
                return Ok(upgraded.with(drawn));
            }
            let sent = self.runtime.now();
            let action = Action::Change { mode: Mode::Write, ttl: lease(hold), turn };
            let pause = match self.store.step(vec![hold.lock.step(hold.owner, action)]).await.pop()
            {
                Some(Ok(Outcome::Granted { token, left, .. })) => {
                    if hold.prolong(sent, left, self.runtime.now()).is_none() {
                        return Err(lost(hold));
                    }
                    self.floors.saw(&hold.lock.key, token);
                    let drawn = hold.becomes_writer(turn, token);
                    return drawn.map(|drawn| upgraded.with(drawn)).ok_or_else(|| overtaken(hold));
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
                Some(Ok(_)) if !hold.is_newest(turn) => return Err(overtaken(hold)),
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
        // It claims no more than it will have, whatever becomes of the request.
        let turn = match hold.lessen(mode) {
            Lessened::By(turn) => turn,
            Lessened::Already => return Ok(()),
            Lessened::Never => {
                let message = "a hold can be turned from writer to upgradeable or reader, and from upgradeable to reader";
                let error = Error::new(Code::Unsupported, message);
                return Err(error.with("name", hold.lock.as_str()));
            }
        };
        if !hold.is_held() {
            return Err(lost(hold));
        }
        self.clear_front(hold);
        let sent = self.runtime.now();
        let action = Action::Change { mode, ttl: lease(hold), turn };
        let step = hold.lock.step(hold.owner, action.clone());
        // Repeated until the store confirms it, also if nobody stays for the answer.
        let unconfirmed = guard(action, |action| self.change_later(hold, action));
        let answer = self.store.step(vec![step]).await.pop();
        if matches!(answer, Some(Ok(_))) {
            ScopeGuard::into_inner(unconfirmed);
        }
        match answer {
            Some(Ok(Outcome::Granted { left, .. })) => {
                hold.prolong(sent, left, self.runtime.now()).map(drop).ok_or_else(|| lost(hold))
            }
            // A change that was asked for since came first: it was this one's turn before, and is what counts.
            Some(Ok(Outcome::Held { .. })) if !hold.is_newest(turn) => {
                if hold.is_held() {
                    Ok(())
                } else {
                    Err(lost(hold))
                }
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

    /// A call for an upgrade, under way or at its end, is given up. With the last one the hold is the reader it was,
    /// whatever of the change has arrived.
    pub(crate) fn leave_upgrade(&self, hold: &Hold, turn: u32) {
        if let Some(turn) = hold.leave_upgrade(turn)
            && !hold.is_lost()
        {
            let action = Action::Change { mode: Mode::Upgradeable, ttl: Duration::ZERO, turn };
            self.change_later(hold, action);
        }
    }

    /// Has the cleanup task repeat a change until the store confirms it.
    fn change_later(&self, hold: &Hold, action: Action) {
        let (lock, owner, until) = (hold.lock.clone(), hold.owner, hold.deadline());
        self.cleanup.send(Cleanup { lock, owner, action, until, settled: None });
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

fn overtaken(hold: &Hold) -> Error {
    let message = "the guard was turned into a lesser one while its upgrade was under way";
    Error::new(Code::Cancelled, message).with("name", hold.lock.as_str())
}

/// A call for an upgrade: under way, or at its end and on its way to whoever asked. Dropped, it is given up.
pub(crate) struct Upgraded {
    core: Arc<Core>,
    hold: Arc<Hold>,
    turn: u32,
    token: Token,
    kept: bool,
}

impl Upgraded {
    /// It is the writer, with the later of these tokens.
    fn with(mut self, drawn: Token) -> Self {
        self.token = self.token.max(drawn);
        self
    }

    /// Somebody has it: the writer's token, and the number by which the upgrade can still be given up.
    pub(crate) fn keep(mut self) -> (Token, u32) {
        self.kept = true;
        (self.token, self.turn)
    }
}

impl Drop for Upgraded {
    fn drop(&mut self) {
        if !self.kept {
            self.core.leave_upgrade(&self.hold, self.turn);
        }
    }
}
