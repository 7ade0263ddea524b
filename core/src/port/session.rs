//! The store interface of sessions that lock: the server queues whoever waits, and ends a session that was silent for too long.
//!
//! A driver of a database with such locks implements [`SessionStore`]. The adapter [`Sessions`](crate::Sessions) makes a
//! [`LeaseStore`](super::LeaseStore) of it.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use super::capabilities::Capabilities;
use super::failure::Failure;
use super::key::LockKey;
use super::lease::LockState;
use super::lease::Mode;
use super::marker::{MaybeSend, MaybeSync};
use crate::error::{Code, Error, Result};
use crate::fence::Token;

/// How many tokens a grant has: the one that is answered, and those after it, which nobody else is given.
pub const SESSION_TOKENS: u32 = 32;

/// Is called once when a session has ended, on the store's own task. It must return at once.
#[cfg(not(target_arch = "wasm32"))]
pub type EndSink = Arc<dyn Fn() + Send + Sync>;
/// Is called once when a session has ended, on the store's own task. It must return at once.
#[cfg(target_arch = "wasm32")]
pub type EndSink = Arc<dyn Fn()>;

/// A store whose sessions lock.
pub trait SessionStore: MaybeSend + MaybeSync + 'static {
    /// A session.
    type Session: Session;

    /// The abilities of this store.
    fn capabilities(&self) -> Capabilities;

    /// Why a lock cannot be held so, if it cannot.
    fn refusal(&self, mode: Mode) -> Option<&'static str>;

    /// Whether a session may have several locks. If not, what gives one back may give back all that is in the session, as the end of a
    /// transaction does; each lock is then asked for in a session that has none.
    fn holds_several(&self) -> bool {
        true
    }

    /// Opens a session that the server ends when it was silent for `ttl`.
    fn connect(
        &self,
        ttl: Duration,
        ended: EndSink,
    ) -> impl Future<Output = Result<Self::Session>> + MaybeSend;

    /// The state of a lock, as the server reports it.
    fn state(
        &self,
        of: &Self::Session,
        lock: &LockKey,
    ) -> impl Future<Output = Result<LockState, Failure>> + MaybeSend;

    /// The names that begin with `prefix` and are held, in their order. Unless it says otherwise, the server does not know them.
    fn names(
        &self,
        of: &Self::Session,
        prefix: &str,
    ) -> impl Future<Output = Result<Vec<LockKey>>> + MaybeSend {
        let _ = (of, prefix);
        std::future::ready(Err(names_unknown()))
    }

    /// Lets go of what belongs to no session.
    fn close(&self) -> impl Future<Output = ()> + MaybeSend {
        std::future::ready(())
    }
}

/// Says that the server does not know the names of locks.
pub(crate) fn names_unknown() -> Error {
    let message = "this store keeps numbers or hashes of names only, so it cannot list them; ask for a lock by its name";
    Error::new(Code::Unsupported, message)
}

/// A session of a [`SessionStore`]. What is asked of it is carried out in the order in which the futures are polled first, also if
/// they are dropped. Nothing is sent twice. A failure may have left a lock behind; an `unlock` that is answered has not.
pub trait Session: MaybeSend + MaybeSync + 'static {
    /// Takes a lock that this session does not have. `None`: somebody else has it; if it waits, it was interrupted, and the lock may
    /// be there all the same.
    fn lock(
        &self,
        lock: &LockKey,
        mode: Mode,
        wait: bool,
    ) -> impl Future<Output = Result<Option<Token>, Failure>> + MaybeSend;

    /// Gives a lock back. Answers whether the session had it.
    fn unlock(
        &self,
        lock: &LockKey,
        mode: Mode,
    ) -> impl Future<Output = Result<bool, Failure>> + MaybeSend;

    /// Asks for an answer: the server counts its silence from there. If it is over after a failure, so are its locks.
    fn beat(&self) -> impl Future<Output = Result<(), Failure>> + MaybeSend;

    /// Ends a lock that waits. It is answered when it interrupts nothing any more that is asked later.
    fn interrupt(&self) -> impl Future<Output = ()> + MaybeSend;

    /// Ends the session at once. What is under way fails.
    fn cut(&self);

    /// Gives everything back and ends the session. It takes a bounded time.
    fn end(&self) -> impl Future<Output = ()> + MaybeSend;

    /// Whether it has ended.
    fn is_over(&self) -> bool;
}
