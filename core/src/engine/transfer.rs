//! A hold on its way to another process: the text that stands for it, and its adoption there.
//!
//! A cell on the store is made with the text and deleted by whoever adopts, so that one does. From then on the owner id is theirs:
//! whatever this client may still have under way in its name renews, and never ends it.

use std::sync::Arc;
use std::time::Duration;

use scopeguard::{ScopeGuard, guard};
use serde::{Deserialize, Serialize};

use super::Engine;
use super::hold::Tokens;
use super::line::Local;
use super::reason::too_late;
use super::request::{LockId, Request};
use crate::error::{Code, Error, Result};
use crate::event::Event;
use crate::fence::Token;
use crate::port::{
    Action, CellKey, Change, Family, Instant, Layout, Life, LockKey, Mode, Outcome, OwnerId, Swap,
    Version,
};

/// The version of the text.
const FORM: u8 = 1;
/// The beginning of the names of the cells. No user's value is named so.
const CELL: &str = "fencelock:transfer:";
/// How long to look for the outcome of a change of the cell that was not answered.
const PATIENCE: Duration = Duration::from_secs(5);

/// The content of the text. It never appears in a log or an error: anybody with it can have the hold.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Transferred {
    fencelock: u8,
    /// The name on the store.
    name: String,
    mode: Mode,
    owner: OwnerId,
    token: Token,
    /// In milliseconds.
    ttl: f64,
    renew: bool,
    /// How long it may still be held, in milliseconds.
    max_hold: Option<f64>,
    /// The cell, and its version.
    cell: OwnerId,
    version: Version,
}

impl Transferred {
    fn read(text: &str) -> Result<Self> {
        // The parser's words would quote the text.
        let read: Option<Self> = serde_json::from_str(text).ok();
        let read = read.filter(|read| read.fencelock == FORM && time(read.ttl).is_some());
        let message = "this is no text of `transfer`, or one of another version of fencelock";
        read.ok_or_else(|| Error::invalid("text", message))
    }

    fn lock(&self) -> LockId {
        LockId { key: LockKey::new(&*self.name), kind: self.mode.kind() }
    }

    fn request(&self) -> Request {
        Request {
            mode: self.mode,
            limit: 1,
            permits: 1,
            ttl: time(self.ttl).unwrap_or_default(),
            renew: self.renew,
            max_hold: self.max_hold.and_then(time),
            open: false,
            local: 0,
            info: "".into(),
            adopts: true,
        }
    }
}

fn time(millis: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(millis / 1000.0).ok()
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

fn spent() -> Error {
    let message = "there is nothing to adopt: the text was used before, its time is over, or it is of another store; acquire the lock";
    Error::new(Code::NotHeld, message)
}

fn cell(id: OwnerId) -> CellKey {
    CellKey::new(Family::Version, format!("{CELL}{id}"))
}

impl Engine {
    /// Lets go of a hold without ending it, and answers the text by which another process goes on with it.
    pub(crate) async fn transfer(self: &Arc<Self>, local: &Local) -> Result<String> {
        let hold = &local.hold;
        let named = |error: Error| error.with("name", hold.lock.as_str());
        let of_session = self.store.capabilities().life == Life::Session;
        if of_session || hold.lock.key.layout() != Layout::Own {
            let message = "a hold goes to another process on memory, SQLite, Redis and the tables of a database only, in fencelock's own layout";
            return Err(named(Error::new(Code::Unsupported, message)));
        }
        // The whole lease is left for the way.
        self.extend(local, hold.ttl()).await?;
        let (id, writer) = (OwnerId::draw(&*self.runtime), OwnerId::draw(&*self.runtime));
        let (value, keep) = (Some("".into()), Some(hold.ttl()));
        let change = Change { key: cell(id), expected: None, writer, value, keep };
        let swapped = self.swap(&change, self.runtime.now() + PATIENCE).await;
        let Swap::Done { version, .. } = swapped.map_err(|failure| named(failure.error))? else {
            return Err(Error::internal("somebody else has made this cell"));
        };
        let cap = hold.cap();
        let max_hold = (cap != Instant::FAR).then(|| millis(cap.since(self.runtime.now())));
        let text = Transferred {
            fencelock: FORM,
            name: hold.lock.as_str().to_owned(),
            mode: hold.mode,
            owner: hold.owner,
            token: local.token,
            ttl: millis(hold.ttl()),
            renew: hold.renew,
            max_hold,
            cell: id,
            version,
        };
        {
            let mut table = self.table.lock();
            if !hold.serves(local.number) || !hold.is_held() {
                let message = "the lock was lost before it could be handed on";
                return Err(named(Error::new(Code::Lost, message)));
            }
            hold.serve(0);
            hold.retire();
            table.forget(hold.owner);
        }
        hold.tell();
        self.clear_front(hold);
        self.events.emit(|| Event::released(hold.lock.name(), local.token, hold.held_for()));
        serde_json::to_string(&text).map_err(|error| Error::internal(error.to_string()))
    }

    /// Goes on with a hold that another process has let go of.
    pub(crate) async fn adopt(self: &Arc<Self>, text: &str) -> Result<Local> {
        let text = Transferred::read(text)?;
        let (lock, request, asked) = (text.lock(), text.request(), self.ask());
        let named = |error: Error| error.with("name", lock.as_str());
        self.check_open()?;
        let writer = OwnerId::draw(&*self.runtime);
        let (key, expected) = (cell(text.cell), Some(text.version));
        let change = Change { key, expected, writer, value: None, keep: None };
        let swapped = self.swap(&change, self.runtime.now() + PATIENCE).await;
        if !matches!(swapped.map_err(|failure| named(failure.error))?, Swap::Done { .. }) {
            return Err(named(spent()));
        }
        // Nobody else has it from here on.
        let (owner, ttl, sent) = (text.owner, request.ttl, self.runtime.now());
        let undone = guard((), |()| self.leave_later(&lock, owner, None));
        self.table.lock().ask(owner, &lock, &request, sent).ok_or_else(Error::closed)?;
        let step = lock.step(owner, Action::Renew { ttl });
        let left = match self.store.step(vec![step]).await.pop() {
            Some(Ok(Outcome::Granted { left, .. })) => left,
            Some(Err(failure)) => return Err(named(failure.error)),
            _ => return Err(named(spent())),
        };
        let tokens = Tokens { first: text.token, count: 1 };
        let granted = self.table.lock().granted(owner, tokens, sent, left, self.runtime.now());
        let hold = granted.ok_or_else(|| named(too_late()))?;
        ScopeGuard::into_inner(undone);
        Ok(self.install(hold, asked))
    }
}
