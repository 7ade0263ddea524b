//! Things that happen to locks, for logs, metrics and observers.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Serialize, Serializer};

use crate::error::Error;
use crate::fence::Token;
use crate::port::RuntimeHandle;
use crate::reason::Reason;

/// Something that happened to a lock or a job of this client. The same facts go to `tracing` under the target `fencelock`:
/// [`Lost`](EventKind::Lost), [`Broken`](EventKind::Broken), [`Trouble`](EventKind::Trouble), [`LateRenewal`](EventKind::LateRenewal) and
/// [`LongWait`](EventKind::LongWait) as warnings, all else for debugging.
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
    /// The kind of event.
    pub kind: EventKind,
    /// The lock; empty where it concerns all of the client's.
    pub name: Arc<str>,
    /// The time on this machine's clock. Bindings get milliseconds since 1970.
    #[serde(serialize_with = "since_1970")]
    pub at: SystemTime,
    /// The token of the hold it happened to; `None` while there is none.
    pub token: Option<Token>,
    /// The number of the acquire in this client, while it has no token, and with its grant.
    pub attempt: Option<u64>,
    /// The time an acquire has waited, for [`EventKind::Granted`] and [`EventKind::LongWait`].
    #[serde(serialize_with = "millis")]
    pub waited: Option<Duration>,
    /// The time a guard had the lock, for [`EventKind::Released`] and [`EventKind::Lost`].
    #[serde(serialize_with = "millis")]
    pub held: Option<Duration>,
    /// The cause, for [`EventKind::Trouble`], [`EventKind::Lost`], [`EventKind::Broken`], [`EventKind::LateRenewal`] and [`EventKind::Skipped`].
    pub reason: Option<Arc<str>>,
    /// The holder, as people read it, for [`EventKind::LongWait`], if the store says.
    pub holder: Option<Arc<str>>,
}

/// The kinds of [`Event`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EventKind {
    /// An acquire has to wait: in the line of this client or in the queue on the store. Emitted once for an acquire.
    Waiting,
    /// An acquire has waited for 30 s. Emitted once for an acquire.
    LongWait,
    /// The store refuses or does not answer an acquire that waits; it goes on asking. Emitted when that begins, and when the
    /// reason has changed. With an empty name, at connect: the store is set up so that a promise is not kept.
    Trouble,
    /// A lock was granted.
    Granted,
    /// The lease was renewed.
    Renewed,
    /// The lease was renewed when less than a third of it was left, or of 5 s if that is shorter: the store or this process is slow.
    LateRenewal,
    /// A guard was given back.
    Released,
    /// A hold was lost before it was given back.
    Lost,
    /// This client has broken a hold of another one ([`Client::break_lock`](crate::Client::break_lock)).
    Broken,
    /// A job was asked for a run, and there is none to start. The token is the last run's.
    Skipped,
}

impl EventKind {
    /// The word, `long_wait` for instance.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::LongWait => "long_wait",
            Self::Trouble => "trouble",
            Self::Granted => "granted",
            Self::Renewed => "renewed",
            Self::LateRenewal => "late_renewal",
            Self::Released => "released",
            Self::Lost => "lost",
            Self::Broken => "broken",
            Self::Skipped => "skipped",
        }
    }

    /// Whether a person should see it without asking for it: logs write it as a warning.
    pub fn is_warning(self) -> bool {
        matches!(
            self,
            Self::LongWait | Self::Trouble | Self::LateRenewal | Self::Lost | Self::Broken
        )
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Event {
    /// The line in a log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let facts = [
            self.token.map(|token| format!("token {token}")),
            self.waited.map(|waited| format!("waited for {:.1} s", waited.as_secs_f64())),
            self.held.map(|held| format!("held for {:.1} s", held.as_secs_f64())),
            self.holder.as_ref().map(|holder| format!("held by {holder}")),
            self.reason.as_ref().map(ToString::to_string),
        ];
        let facts: Vec<_> = facts.into_iter().flatten().collect();
        f.write_str(self.kind.as_str())?;
        for (before, more) in [(" ", &*self.name), (": ", &*facts.join(", "))] {
            if !more.is_empty() {
                write!(f, "{before}{more}")?;
            }
        }
        Ok(())
    }
}

fn since_1970<S: Serializer>(at: &SystemTime, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u64(at.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64)
}

#[expect(clippy::ref_option, reason = "serde calls it so")]
fn millis<S: Serializer>(time: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
    time.map(|time| time.as_secs_f64() * 1000.0).serialize(to)
}

impl Event {
    fn new(kind: EventKind, name: &str, token: Option<Token>) -> Self {
        let (attempt, waited, held, reason, holder) = (None, None, None, None, None);
        let (name, at) = (name.into(), UNIX_EPOCH);
        Self { kind, name, at, token, attempt, waited, held, reason, holder }
    }

    pub(crate) fn waiting(name: &str, attempt: u64) -> Self {
        Self { attempt: Some(attempt), ..Self::new(EventKind::Waiting, name, None) }
    }

    pub(crate) fn long_wait(
        name: &str,
        attempt: u64,
        waited: Duration,
        holder: Option<String>,
    ) -> Self {
        let (attempt, waited, holder) = (Some(attempt), Some(waited), holder.map(Arc::from));
        Self { attempt, waited, holder, ..Self::new(EventKind::LongWait, name, None) }
    }

    pub(crate) fn trouble(name: &str, error: &Error) -> Self {
        let reason = Some(error.to_string().into());
        Self { reason, ..Self::new(EventKind::Trouble, name, None) }
    }

    pub(crate) fn granted(name: &str, token: Token) -> Self {
        Self::new(EventKind::Granted, name, Some(token))
    }

    /// The grant of an acquire that has this number and took so long.
    pub(crate) fn after(self, attempt: u64, waited: Duration) -> Self {
        Self { attempt: Some(attempt), waited: Some(waited), ..self }
    }

    pub(crate) fn renewed(name: &str, token: Token) -> Self {
        Self::new(EventKind::Renewed, name, Some(token))
    }

    pub(crate) fn late_renewal(name: &str, token: Token, left: Duration) -> Self {
        let reason = format!("{} ms of the lease were left", left.as_millis());
        Self { reason: Some(reason.into()), ..Self::new(EventKind::LateRenewal, name, Some(token)) }
    }

    pub(crate) fn released(name: &str, token: Token, held: Duration) -> Self {
        Self { held: Some(held), ..Self::new(EventKind::Released, name, Some(token)) }
    }

    pub(crate) fn lost(name: &str, token: Token, held: Duration, reason: &str) -> Self {
        let (held, reason) = (Some(held), Some(reason.into()));
        Self { held, reason, ..Self::new(EventKind::Lost, name, Some(token)) }
    }

    pub(crate) fn broken(name: &str, token: Option<Token>, reason: &str) -> Self {
        let reason = Some(reason.into());
        Self { reason, ..Self::new(EventKind::Broken, name, token) }
    }

    pub(crate) fn skipped(name: &str, last: Token, reason: Reason) -> Self {
        let reason = Some(reason.as_str().into());
        Self { reason, ..Self::new(EventKind::Skipped, name, Some(last)) }
    }
}

/// The function that a client calls with its events, where they happen; it must return at once.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) type Observer = Arc<dyn Fn(&Event) + Send + Sync>;
#[cfg(target_arch = "wasm32")]
pub(crate) type Observer = Arc<dyn Fn(&Event)>;

/// Sends events to the log and to the observer. Costs a comparison where nobody listens.
#[derive(Clone)]
pub(crate) struct Events {
    observer: Option<Observer>,
    runtime: RuntimeHandle,
}

impl Events {
    pub(crate) fn new(observer: Option<Observer>, runtime: RuntimeHandle) -> Self {
        Self { observer, runtime }
    }

    /// Emits an event that logs write for debugging only.
    pub(crate) fn emit(&self, event: impl FnOnce() -> Event) {
        if self.observer.is_some() || tracing::enabled!(target: "fencelock", tracing::Level::DEBUG)
        {
            self.send(event());
        }
    }

    /// Emits an event that logs write as a warning.
    pub(crate) fn warn(&self, event: Event) {
        self.send(event);
    }

    fn send(&self, mut event: Event) {
        let since = Duration::from_micros(self.runtime.wall());
        event.at = UNIX_EPOCH.checked_add(since).unwrap_or(UNIX_EPOCH);
        let Event { kind, name, token, attempt, waited, held, reason, holder, .. } = &event;
        let token = token.map(Token::get);
        macro_rules! log {
            ($level:ident) => {
                tracing::$level!(
                    target: "fencelock", kind = kind.as_str(), name = &**name, token, attempt, waited = waited.map(tracing::field::debug),
                    held = held.map(tracing::field::debug), reason = reason.as_deref(), holder = holder.as_deref()
                )
            };
        }
        if kind.is_warning() {
            log!(warn);
        } else {
            log!(debug);
        }
        if let Some(observer) = &self.observer {
            observer(&event);
        }
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.observer.is_some() { "Events(observed)" } else { "Events" })
    }
}
