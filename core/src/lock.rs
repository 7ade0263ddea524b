//! A lock by name: options, then acquire.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::client::Client;
use crate::engine::{Counts, Engine, LockId, Member, Request, Wait};
use crate::error::{Code, Error, Result};
use crate::fence::Token;
use crate::guard::{Claim, Guard, Pending};
use crate::options::{Dialect, OptionScope, OptionValue, Options, check_key, full_name};
use crate::port::{HolderView, Layout, Life, LockKey, LockState, Mode};
use crate::with_error::WithError;

/// A lock by name, made by [`Client::lock`]. Set its options, then acquire it, as often as you like.
///
/// A wrong name or option makes the acquire fail, with code `invalid`.
#[derive(Clone)]
pub struct Lock {
    client: Client,
    name: Arc<str>,
    /// The name on the store, behind the client's prefix.
    full: Arc<str>,
    options: Options,
    mode: Mode,
    /// Of how many permits.
    limit: u32,
    /// The scope in which it may be entered again.
    scope: Option<Arc<Counts>>,
    /// The first mistake made in setting it up.
    mistake: Option<Error>,
}

impl Lock {
    pub(crate) fn new(client: Client, name: &str) -> Self {
        let options = client.options().clone();
        let (full, mistake) = full_name(&options.prefix, name);
        Self {
            client,
            name: name.into(),
            full,
            options,
            mode: Mode::Exclusive,
            limit: 1,
            scope: None,
            mistake,
        }
    }

    /// The same lock, for a scope.
    pub(crate) fn within(mut self, scope: Arc<Counts>) -> Self {
        self.scope = Some(scope);
        self
    }

    /// The wait its options say.
    pub(crate) fn patience(&self) -> Option<Duration> {
        self.options.wait
    }

    /// This lock and its request, as one of several that are acquired together.
    pub(crate) fn member(&self) -> Result<Member> {
        Ok(Member { lock: self.lock_id(self.key()?), request: self.request() })
    }

    /// The same name, held in another mode.
    pub(crate) fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// The same name, as one of so many permits.
    pub(crate) fn of_permits(mut self, limit: u32) -> Self {
        (self.mode, self.limit) = (Mode::Permit, limit);
        if limit == 0 {
            let message = "a semaphore has at least one permit; give a positive number";
            self.mistake.get_or_insert(Error::invalid("permits", message));
        }
        self
    }

    /// Length of the lease; 30 s by default.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.options.ttl = ttl;
        self
    }

    /// Whether the lease is renewed while the guard lives (the default), or fixed.
    pub fn renew(mut self, renew: bool) -> Self {
        self.options.renew = renew;
        self
    }

    /// How long [`Lock::acquire`] waits; for ever by default.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.options.wait = Some(wait);
        self
    }

    /// The longest the lock may be held, however often it is renewed.
    pub fn max_hold(mut self, most: Duration) -> Self {
        self.options.max_hold = Some(most);
        self
    }

    /// Held for as long as it is renewed, whatever the client's default.
    pub(crate) fn endless(mut self) -> Self {
        self.options.max_hold = None;
        self
    }

    /// In the order of arrival where the store knows one, whatever the client's default.
    pub(crate) fn in_order(mut self) -> Self {
        self.options.fair = None;
        self
    }

    pub(crate) fn options(&self) -> &Options {
        &self.options
    }

    /// Whether waiters are served in their order of arrival; the default wherever the store can do that. `true` is refused with
    /// `unsupported` where it cannot.
    pub fn fair(mut self, fair: bool) -> Self {
        self.options.fair = Some(fair);
        self
    }

    /// How often the lock may pass from waiter to waiter inside this client before others are served; 16 by default.
    pub fn local(mut self, passes: u32) -> Self {
        self.options.local = passes;
        self
    }

    /// A short text, or texts by name as JSON, for people who inspect the lock (`{"order":"42"}`).
    pub fn info(mut self, info: impl Into<String>) -> Self {
        self.options.info = info.into();
        self
    }

    /// How many permits of a semaphore are taken at once; 1 by default.
    pub fn permits(mut self, permits: u32) -> Self {
        self.options.permits = permits;
        self
    }

    /// Sets any option by its name in the [table](crate::options::TABLE), as bindings and configurations do.
    pub fn option(self, name: &str, value: impl Into<OptionValue>) -> Self {
        self.option_of(OptionScope::Lock, name, value.into())
    }

    pub(crate) fn option_of(mut self, of: OptionScope, name: &str, value: OptionValue) -> Self {
        if let Err(mistake) = self.options.set_all([(name, value)], of) {
            self.mistake.get_or_insert(mistake);
        }
        self
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name, for its guards.
    pub(crate) fn shared_name(&self) -> Arc<str> {
        self.name.clone()
    }

    /// Waits for the lock, for ever or as long as the option `wait` says.
    pub fn acquire(&self) -> Pending<Guard> {
        self.acquire_for(self.options.wait)
    }

    /// Waits for the lock at most this long; then fails with `timeout`. If that is a second or more, the error says who holds, as
    /// far as the store tells in time: `holder` is one of them, `held_for` how long it has. The store is asked a quarter of the wait
    /// before its end, at most a second.
    pub fn acquire_within(&self, wait: Duration) -> Pending<Guard> {
        self.acquire_for(Some(wait))
    }

    /// Asks once: `None` if somebody else holds the lock or waits for it.
    pub fn try_acquire(&self) -> Pending<Option<Guard>> {
        let lock = self.clone();
        Pending::new(async move { lock.attempt(Wait::Try).await })
    }

    /// Waits for the lock at most this long: `None` if somebody else holds it all the while. A store that does not answer is an error.
    pub fn try_acquire_within(&self, wait: Duration) -> Pending<Option<Guard>> {
        self.clone().wait(wait).try_in_time()
    }

    /// The same, as long as the option `wait` says.
    pub(crate) fn try_in_time(&self) -> Pending<Option<Guard>> {
        let lock = self.clone();
        Pending::new(async move {
            match lock.attempt(Wait::of(lock.options.wait, &*lock.engine().runtime)).await {
                Err(error) if error.is_held() => Ok(None),
                tried => tried,
            }
        })
    }

    fn acquire_for(&self, wait: Option<Duration>) -> Pending<Guard> {
        let lock = self.clone();
        Pending::new(async move {
            let guard = lock.attempt(Wait::of(wait, &*lock.engine().runtime)).await?;
            guard.ok_or_else(|| {
                Error::new(Code::Timeout, "the lock is held by somebody else, and the wait is zero")
                    .with("name", &*lock.name)
            })
        })
    }

    /// Runs `body` under the lock. When the lock is lost, the body is dropped at its next await and the answer is an error
    /// with code `lost`. An error of the body's own wins, and the loss is attached to it ([`WithError`]).
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// let client = fencelock::connect("memory:with").await?;
    /// let charge = |token| async move { Ok::<_, std::io::Error>(format!("charged under {token}")) };
    /// let receipt = client.lock("orders:42").with(|claim| charge(claim.token())).await?;
    /// assert!(receipt.starts_with("charged"));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn with<T, E, F, B>(
        &self,
        body: B,
    ) -> impl Future<Output = Result<T, WithError<E>>> + use<T, E, F, B>
    where
        F: Future<Output = Result<T, E>>,
        B: FnOnce(Claim) -> F,
    {
        let acquire = self.acquire();
        async move {
            let guard = acquire.await?;
            let claim = guard.claim();
            let ended = claim.during(body).await?;
            // A loss outweighs the body's success: its end was not protected. The release hides no error of the body.
            let held = claim.check();
            let _ = guard.release().await;
            WithError::judge(ended, held)
        }
    }

    /// The holders of the lock and its waiters. Changes nothing.
    pub async fn inspect(&self) -> Result<LockState> {
        self.engine().inspect(&self.lock_id(self.key()?)).await
    }

    /// Whether anybody holds the lock now; of a semaphore, any permit. By the time of the answer that may have changed.
    pub async fn is_locked(&self) -> Result<bool> {
        self.engine().is_locked(&self.lock_id(self.key()?)).await
    }

    pub(crate) async fn break_holds(
        &self,
        token: Option<Token>,
        reason: &str,
    ) -> Result<Vec<HolderView>> {
        let lock = self.lock_id(self.key()?);
        let broken = self.engine().break_lock(&lock, token, reason).await;
        broken.map_err(|error| error.with("name", &*self.name))
    }

    fn engine(&self) -> &Arc<Engine> {
        self.client.engine()
    }

    async fn attempt(&self, wait: Wait) -> Result<Option<Guard>> {
        let (engine, lock, request) = (self.engine(), self.lock_id(self.key()?), self.request());
        let name = || self.shared_name();
        let guard = match &self.scope {
            None => {
                let local = engine.acquire(&lock, request, wait).await;
                local.map(|local| local.map(|local| Guard::new(engine.clone(), name(), local)))
            }
            Some(scope) => {
                let entered = engine.enter(scope, &lock, request, wait).await;
                entered.map(|entered| {
                    entered
                        .map(|(local, share)| Guard::shared(engine.clone(), name(), local, share))
                })
            }
        };
        guard.map_err(|error| error.with("name", &*self.name))
    }

    /// Refuses `fair=true` on a store without order. The default is not refused.
    fn check_order(&self) -> Result<()> {
        if self.options.fair == Some(true)
            && let Some(why) = self.engine().store.capabilities().unordered
        {
            let message = format!("`fair: true` cannot be had here: {why}; leave it out");
            return Err(Error::new(Code::Unsupported, message));
        }
        Ok(())
    }

    /// More permits than there are could never be had. Entries of a queue are one permit each.
    fn check_permits(&self) -> Result<()> {
        let permits = self.options.permits;
        if !(1..=self.limit).contains(&permits) {
            let message = match self.mode {
                Mode::Permit => {
                    format!("`permits` must be from 1 to {}, as many as there are", self.limit)
                }
                _ => "`permits` is for a semaphore; leave it out".to_owned(),
            };
            return Err(Error::invalid("permits", message));
        }
        if self.mode == Mode::Permit && self.options.dialect == Dialect::Redisson {
            let message = "permits are not shared with Redisson; leave `dialect` out";
            return Err(Error::new(Code::Unsupported, message).with("name", &*self.name));
        }
        let capabilities = self.engine().store.capabilities();
        if permits > 1 && capabilities.life == Life::Session {
            let message = format!(
                "{} gives permits one by one; acquire each of them by itself",
                capabilities.store
            );
            return Err(Error::new(Code::Unsupported, message).with("name", &*self.name));
        }
        Ok(())
    }

    fn lock_id(&self, key: LockKey) -> LockId {
        LockId { key, kind: self.mode.kind() }
    }

    fn key(&self) -> Result<LockKey> {
        if let Some(mistake) = &self.mistake {
            return Err(mistake.clone());
        }
        self.options.check()?;
        self.check_order()?;
        self.check_permits()?;
        match &self.options.dialect {
            Dialect::Auto => Ok(LockKey::new(self.full.clone())),
            dialect => {
                let capabilities = self.engine().store.capabilities();
                if !capabilities.dialects.contains(&dialect.word()) {
                    return Err(Error::new(
                        Code::Unsupported,
                        format!(
                            "{} does not speak the dialect `{}`; leave it out",
                            capabilities.store,
                            dialect.word()
                        ),
                    ));
                }
                Ok(match dialect {
                    Dialect::Plain { prefix } => {
                        let key = LockKey::plain(prefix, &self.full);
                        check_key(key.as_str())?;
                        key
                    }
                    _ => LockKey::laid_out(layout_of(dialect), self.full.clone()),
                })
            }
        }
    }

    fn request(&self) -> Request {
        let options = &self.options;
        Request {
            mode: self.mode,
            limit: self.limit,
            permits: self.options.permits,
            ttl: options.ttl,
            renew: options.renew,
            max_hold: options.max_hold,
            open: options.fair == Some(false),
            local: options.local,
            info: self.client.info(&options.info),
            adopts: false,
        }
    }
}

/// How the core names the layout of a dialect.
pub(crate) fn layout_of(dialect: &Dialect) -> Layout {
    match dialect {
        Dialect::Auto => Layout::Own,
        Dialect::Plain { .. } => Layout::Plain,
        Dialect::Redisson => Layout::Redisson,
        Dialect::Kazoo => Layout::Kazoo,
        Dialect::Shedlock => Layout::Shedlock,
        Dialect::Spring => Layout::Spring,
    }
}

impl fmt::Debug for Lock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lock")
            .field("name", &self.name)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
