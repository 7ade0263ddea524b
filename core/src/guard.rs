//! The local proof of a hold, and an acquire in flight.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::{Either, join_all, select, select_all};

use crate::engine::{Engine, GivenUp, Local, Share};
use crate::error::{Code, Error, Result};
use crate::event::Event;
use crate::fence::Token;
use crate::options::check_ttl;
use crate::port::{BoxFuture, MaybeSend, Mode};
use crate::released::Released;

/// An acquire in flight. Dropping it at any moment takes back whatever it won or queued.
#[must_use = "an acquire does nothing until it is awaited"]
pub struct Pending<T>(BoxFuture<'static, Result<T>>);

impl<T> Pending<T> {
    pub(crate) fn new(work: impl Future<Output = Result<T>> + MaybeSend + 'static) -> Self {
        Self(Box::pin(work))
    }
}

impl<T> Future for Pending<T> {
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.as_mut().poll(context)
    }
}

impl<T> fmt::Debug for Pending<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pending")
    }
}

/// The local proof of a hold: of a lock, of several as one, of an office. Dropping it frees the lock in the background;
/// [`Guard::release`] waits for the answer.
///
/// A guard knows its deadline on a clock that runs through suspend, counted from before the request that won the lock was
/// sent. It stops claiming to be held before the store may give the lock to another.
///
/// In the child of a fork it is inert: it is not held there, and neither [`Guard::release`] nor its end frees anything.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let client = fencelock::connect("memory:guard").await?;
/// let guard = client.lock("orders:42").acquire().await?;
/// assert!(guard.is_held());
/// println!("write with fencing token {}", guard.token());
/// assert_eq!(guard.release().await, fencelock::Released::Released);
/// # Ok::<(), fencelock::Error>(()) }).unwrap();
/// ```
#[must_use = "dropping a guard frees its lock"]
pub struct Guard {
    claim: Claim,
    released: bool,
}

/// A read-only handle of a guard. It can be cloned, and outlive the guard. It shows token, deadline and loss, and cannot
/// extend or release.
#[derive(Clone)]
pub struct Claim {
    engine: Arc<Engine>,
    first: Part,
    /// The others of several locks as one, in the order of their names.
    more: Vec<Part>,
}

/// The hold of one lock.
#[derive(Clone)]
struct Part {
    /// The name that the lock was asked for by.
    name: Arc<str>,
    local: Local,
    /// Its part of a scope's hold.
    share: Option<Arc<Share>>,
}

impl Claim {
    /// The name that the lock was asked for by; of several locks as one, the first in their order.
    pub fn name(&self) -> &str {
        &self.first.name
    }

    /// The fencing token: hand it to the resource with every write. Of several locks as one, that of the first in the order of the names.
    pub fn token(&self) -> Token {
        self.first.local.token
    }

    /// The token of each lock, by name: of several as one, each resource is handed its own.
    pub fn tokens(&self) -> BTreeMap<&str, Token> {
        self.parts().map(|part| (&*part.name, part.local.token)).collect()
    }

    /// A handle of one of several locks as one, by its name.
    pub fn of(&self, name: &str) -> Option<Self> {
        let first = self.parts().find(|part| &*part.name == name)?.clone();
        Some(Self { engine: self.engine.clone(), first, more: Vec::new() })
    }

    /// How it is held: alone, as reader or writer, as one of so many permits.
    pub fn mode(&self) -> Mode {
        self.first.local.hold.mode
    }

    /// Whether the lock may be relied on at this very moment; of several as one, all of them. Compares the clock at every call, so it
    /// is right also after the process was frozen.
    pub fn is_held(&self) -> bool {
        self.is_here() && self.parts().all(Part::is_held)
    }

    /// How long the lock may still be relied on if it were not renewed any more; zero once it is lost.
    pub fn remaining(&self) -> Duration {
        // What is left, not the deadline: that is a moment of the core's own clock and means nothing to a caller.
        let left = |part: &Part| {
            let hold = &part.local.hold;
            hold.deadline().since(hold.runtime().now())
        };
        if self.is_held() {
            self.parts().map(left).min().unwrap_or_default()
        } else {
            Duration::ZERO
        }
    }

    /// `Ok` while the lock may be relied on, an error afterwards: `lost`, or `not_held` once the guard was given back, or
    /// `closed` in the child of a fork. For `?` before a write.
    pub fn check(&self) -> Result<()> {
        self.check_here()?;
        self.parts().try_for_each(Part::check)
    }

    /// Completes when the lock is lost, or one of several; never, if the guard is given back before that.
    pub fn lost(&self) -> impl Future<Output = ()> + use<> {
        let claim = self.clone();
        async move {
            if !claim.ended().await {
                // Nothing of the client stays alive for it.
                drop(claim);
                std::future::pending::<()>().await;
            }
        }
    }

    /// Calls `act` once, on the client's runtime, if the lock is lost; not if the guard is given back before that.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn on_lost(&self, act: impl FnOnce() + Send + 'static) {
        let claim = self.clone();
        let ended = async move { claim.ended().await.then(act).unwrap_or_default() };
        self.engine.runtime.spawn(Box::pin(ended));
    }
}

impl Claim {
    pub(crate) fn new(engine: Arc<Engine>, name: Arc<str>, local: Local) -> Self {
        Self { engine, first: Part { name, local, share: None }, more: Vec::new() }
    }

    /// Whether it is of several locks as one.
    pub(crate) fn is_several(&self) -> bool {
        !self.more.is_empty()
    }

    fn parts(&self) -> impl Iterator<Item = &Part> {
        std::iter::once(&self.first).chain(&self.more)
    }

    /// Whether this is the process that was granted it.
    pub(crate) fn is_here(&self) -> bool {
        self.engine.is_here()
    }

    /// Whether it came from another client.
    pub(crate) fn is_adopted(&self) -> bool {
        self.first.local.hold.adopted
    }

    /// An error in the child of a fork.
    fn check_here(&self) -> Result<()> {
        if self.is_here() { Ok(()) } else { Err(Error::forked()) }
    }

    /// Runs `body` while the guard is held. Answers its result, or the loss. Does not start the body if the guard is lost.
    pub(crate) async fn during<F: Future>(
        &self,
        body: impl FnOnce(Self) -> F,
    ) -> Result<F::Output> {
        self.check()?;
        let (body, lost) = (pin!(body(self.clone())), pin!(self.lost()));
        match select(body, lost).await {
            Either::Left((ended, _)) => Ok(ended),
            Either::Right(((), _)) => {
                Err(self.check().err().unwrap_or_else(|| Error::internal("lost, yet held")))
            }
        }
    }

    pub(crate) async fn extend(&self, ttl: Duration) -> Result<()> {
        check_ttl("ttl", ttl)?;
        self.check_here()?;
        let extended = self.parts().map(|part| self.engine.extend(&part.local, ttl));
        join_all(extended).await.into_iter().collect()
    }

    /// Completes when there is nothing left to lose: true if the lock was lost, false if the guard was given back before.
    pub(crate) async fn ended(&self) -> bool {
        if !self.is_here() {
            return true;
        }
        if !self.is_several() {
            return self.first.ended(&self.engine).await;
        }
        let ends = self.parts().map(|part| Box::pin(part.ended(&self.engine)));
        select_all(ends).await.0
    }
}

impl Part {
    fn is_held(&self) -> bool {
        self.local.hold.is_held() && self.serves()
    }

    fn check(&self) -> Result<()> {
        if self.is_held() {
            return Ok(());
        }
        if !self.serves() {
            return Err(Error::not_held().with("name", &*self.name));
        }
        let message =
            "the lock is no longer held; stop writing, and acquire it again if the work must go on";
        Err(Error::new(Code::Lost, message)
            .with("name", &*self.name)
            .with("token", self.local.token.to_string()))
    }

    /// Whether its guard has not been given back.
    fn serves(&self) -> bool {
        self.local.hold.serves(self.local.number) && !self.has_left()
    }

    fn has_left(&self) -> bool {
        self.share.as_ref().is_some_and(|share| share.has_left())
    }

    /// Gives its part of a scope's hold back; whether the hold is to end with it.
    fn leaves(&self, engine: &Engine) -> bool {
        let leaves = self.share.as_ref().is_none_or(|share| share.leave());
        if leaves {
            let Self { local, .. } = self;
            engine.events.emit(|| {
                Event::released(local.hold.lock.name(), local.token, local.hold.held_for())
            });
        }
        leaves
    }

    async fn ended(&self, engine: &Engine) -> bool {
        !self.has_left() && engine.ended(&self.local).await && !self.has_left()
    }

    /// Gives the hold up at this call; the answer is what became of that.
    fn release<'a>(&self, engine: &'a Arc<Engine>) -> impl Future<Output = Released> + use<'a> {
        let hold = &self.local.hold;
        let (given_up, lost) = if self.leaves(engine) {
            // A hold that is passed on inside has another cap.
            let cap = hold.cap();
            let given_up = engine.give_up(&self.local);
            // Another thread may have found the loss, and told it, after it was looked for.
            (given_up, !hold.is_held_under(cap))
        } else {
            // Others of its scope hold on.
            (GivenUp::Passed, !hold.is_held())
        };
        async move {
            let released = match given_up {
                GivenUp::Passed => Released::Released,
                GivenUp::Free(hold) => engine.free(hold).await,
                GivenUp::HandedOver(hold, batch) => engine.hand_over(hold, batch).await,
                GivenUp::NotMine => Released::AlreadyLost,
            };
            if lost { Released::AlreadyLost } else { released }
        }
    }
}

impl Guard {
    pub(crate) fn new(engine: Arc<Engine>, name: Arc<str>, local: Local) -> Self {
        Self { claim: Claim::new(engine, name, local), released: false }
    }

    /// One of several guards of a scope's hold.
    pub(crate) fn shared(engine: Arc<Engine>, name: Arc<str>, local: Local, share: Share) -> Self {
        let mut guard = Self::new(engine, name, local);
        guard.claim.first.share = Some(Arc::new(share));
        guard
    }

    /// The same guard, of this lock too.
    pub(crate) fn and(mut self, name: Arc<str>, local: Local) -> Self {
        self.claim.more.push(Part { name, local, share: None });
        self
    }

    /// A guard of what ends by itself.
    pub(crate) fn of(claim: Claim) -> Self {
        Self { claim, released: true }
    }

    /// A read-only handle of this guard for somebody else: a task that writes, a signal that fires when the lock is lost.
    pub fn claim(&self) -> Claim {
        self.claim.clone()
    }

    /// Pushes the end of the lease to at least now + `ttl`, which is its length from now on. Never shortens it.
    pub async fn extend(&self, ttl: Duration) -> Result<()> {
        self.claim.extend(ttl).await
    }

    /// Lets another process go on with the hold: answers a text that [`Client::adopt`](crate::Client::adopt) makes the guard of, once,
    /// within the lease, which begins anew. From then on this guard is given back, and the lock stays held. The text is a secret: whoever
    /// has it has the lock. On an error the lock is freed.
    ///
    /// Fails with `unsupported` where a hold lives with its client's session (etcd, `ZooKeeper`, locks of database sessions), on a
    /// quorum, in the layout of another library, and for a lock of a scope.
    pub async fn transfer(mut self) -> Result<String> {
        self.check()?;
        let Claim { engine, first, .. } = &self.claim;
        let message = if self.is_several() {
            "only the guard of one lock goes to another process"
        } else if first.share.is_some() {
            "a lock of a scope belongs to that; hand on one without a scope"
        } else {
            let text = engine.transfer(&first.local).await?;
            self.released = true;
            return Ok(text);
        };
        Err(Error::new(Code::Unsupported, message).with("name", self.name()))
    }

    /// Frees the lock and tells how that went; of several as one, the worst of it. If this future is dropped, the lock is freed all the
    /// same.
    pub async fn release(mut self) -> Released {
        self.released = true;
        if !self.is_here() {
            return Released::AlreadyLost;
        }
        let Claim { engine, first, .. } = &self.claim;
        if !self.is_several() {
            return first.release(engine).await;
        }
        // All are given up before the first is waited for.
        let releases: Vec<_> = self.claim.parts().map(|part| part.release(engine)).collect();
        let ends = join_all(releases).await;
        let worst = [Released::Unconfirmed, Released::AlreadyLost];
        worst.into_iter().find(|bad| ends.contains(bad)).unwrap_or(Released::Released)
    }
}

impl std::ops::Deref for Guard {
    type Target = Claim;

    fn deref(&self) -> &Claim {
        &self.claim
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if self.released || !self.is_here() {
            return;
        }
        let engine = &self.claim.engine;
        for part in self.claim.parts().filter(|part| part.leaves(engine)) {
            // A message to the cleanup task: a drop never blocks, and works outside of a runtime.
            engine.abandon(&part.local);
        }
    }
}

impl fmt::Debug for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Claim").field("tokens", &self.tokens()).finish_non_exhaustive()
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard").field("tokens", &self.tokens()).finish_non_exhaustive()
    }
}
