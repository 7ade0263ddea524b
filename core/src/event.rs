//! What happens to locks, for logs, metrics and whoever listens.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use crate::error::Error;
use crate::fence::Token;
use crate::why::Why;

/// Something that happened to a lock or a job of this client. The same facts go to `tracing` under the target `fencelock`: losses
/// and troubles as warnings, all else for debugging.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// use std::sync::{Arc, atomic::{AtomicUsize, Ordering}};
/// let grants = Arc::new(AtomicUsize::new(0));
/// let count = grants.clone();
/// let client = fencelock::Client::builder()
///     .on_event(move |event| if event.kind == fencelock::EventKind::Granted { count.fetch_add(1, Ordering::Relaxed); })
///     .connect("memory:events").await?;
/// client.lock("orders:42").acquire().await?.release().await.check()?;
/// assert_eq!(grants.load(Ordering::Relaxed), 1);
/// # Ok::<(), fencelock::Error>(()) }).unwrap();
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Event {
    /// What happened.
    pub kind: EventKind,
    /// The lock; empty where it concerns all of the client's.
    pub name: Arc<str>,
    /// The token of the hold it happened to; `None` while there is none.
    pub token: Option<Token>,
    /// What the trouble is, for [`EventKind::Trouble`].
    pub trouble: Option<Arc<str>>,
    /// Why no run was started, for [`EventKind::Skipped`].
    pub why: Option<Why>,
}

/// The kinds of [`Event`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EventKind {
    /// An acquire has to wait: in the line of this client or in the queue on the store. Told once.
    Waiting,
    /// The store refuses or does not answer an acquire that waits; it goes on asking. Told when that begins, and when the
    /// reason has changed. With an empty name, at connect: the store is set up so that a promise is not kept.
    Trouble,
    /// A lock was granted.
    Granted,
    /// The lease was renewed.
    Renewed,
    /// A guard was given back.
    Released,
    /// A hold was lost before it was given back.
    Lost,
    /// A job was asked for a run, and there is none to start. The token is the last run's.
    Skipped,
}

impl Event {
    fn new(kind: EventKind, name: &str, token: Option<Token>) -> Self {
        Self { kind, name: name.into(), token, trouble: None, why: None }
    }

    pub(crate) fn waiting(name: &str) -> Self {
        Self::new(EventKind::Waiting, name, None)
    }

    fn trouble(name: &str, error: &Error) -> Self {
        let trouble = Some(error.to_string().into());
        Self { trouble, ..Self::new(EventKind::Trouble, name, None) }
    }

    pub(crate) fn renewed(name: &str, token: Token) -> Self {
        Self::new(EventKind::Renewed, name, Some(token))
    }

    pub(crate) fn granted(name: &str, token: Token) -> Self {
        Self::new(EventKind::Granted, name, Some(token))
    }

    pub(crate) fn released(name: &str, token: Token) -> Self {
        Self::new(EventKind::Released, name, Some(token))
    }

    pub(crate) fn skipped(name: &str, last: Token, why: Why) -> Self {
        Self { why: Some(why), ..Self::new(EventKind::Skipped, name, Some(last)) }
    }
}

/// Who listens to a client's events; called where they happen, so it must return at once.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) type Observer = Arc<dyn Fn(&Event) + Send + Sync>;
#[cfg(target_arch = "wasm32")]
pub(crate) type Observer = Arc<dyn Fn(&Event)>;

/// The way events go. Costs a comparison where nobody listens.
#[derive(Clone, Default)]
pub(crate) struct Events(pub Option<Observer>);

impl Events {
    /// A hold was lost: a warning, since its holder may be at work.
    pub(crate) fn lost(&self, name: &str, token: Token) {
        let event = Event::new(EventKind::Lost, name, Some(token));
        tracing::warn!(target: "fencelock", kind = ?event.kind, name, token = token.get());
        if let Some(observer) = &self.0 {
            observer(&event);
        }
    }

    pub(crate) fn emit(&self, event: impl FnOnce() -> Event) {
        let logged = tracing::enabled!(target: "fencelock", tracing::Level::DEBUG);
        if !logged && self.0.is_none() {
            return;
        }
        let event = event();
        let token = event.token.map(Token::get);
        let why = event.why.map(Why::as_str);
        tracing::debug!(target: "fencelock", kind = ?event.kind, name = &*event.name, token, why);
        if let Some(observer) = &self.0 {
            observer(&event);
        }
    }
}

impl Events {
    /// The store refuses, or cannot be reached: a warning.
    pub(crate) fn warn(&self, name: &str, error: &Error) {
        tracing::warn!(target: "fencelock", kind = ?EventKind::Trouble, name, %error);
        if let Some(observer) = &self.0 {
            observer(&Event::trouble(name, error));
        }
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Events(observed)" } else { "Events" })
    }
}
