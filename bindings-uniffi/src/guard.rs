//! The local proof of a hold: of a lock, of several, of a leadership, of a run.

use std::sync::Arc;
use std::time::Duration;

use fencelock::{AllGuard, Claim, Code, Error, Leadership};
use futures_util::FutureExt;
use futures_util::future::{Either, select, select_all};
use tokio::sync::{Mutex, Semaphore};

use crate::Result;
use crate::process::{ask, run};

/// How a release ended.
#[derive(Clone, Copy, Debug, uniffi::Enum)]
pub enum Released {
    /// The lock was held until now.
    Released,
    /// The lock had been lost before.
    AlreadyLost,
    /// The store did not answer. The release is repeated until it does or the lease has ended.
    Unconfirmed,
}

pub(crate) enum Held {
    One(fencelock::Guard),
    All(AllGuard),
    Leader(Leadership),
    Run(fencelock::Run),
}

/// The local proof of a hold. Freeing it releases the lock in the background; `release` waits for the answer.
#[derive(uniffi::Object)]
pub struct Guard {
    held: Arc<Mutex<Option<Held>>>,
    /// A look at each of its holds, in the order of the names.
    claims: Vec<Claim>,
    /// Closed when the guard is given back.
    given_back: Semaphore,
}

impl<T: Into<Held>> From<T> for Guard {
    fn from(held: T) -> Self {
        let held = held.into();
        let claims = match &held {
            Held::One(guard) => vec![guard.claim()],
            Held::All(guard) => guard.tokens().filter_map(|(name, _)| guard.claim(name)).collect(),
            Held::Leader(leadership) => vec![leadership.claim()],
            Held::Run(run) => vec![Claim::clone(run)],
        };
        let held = Arc::new(Mutex::new(Some(held)));
        Self { held, claims, given_back: Semaphore::new(0) }
    }
}

macro_rules! held {
    ($($type:ty: $sort:ident),+) => {$(
        impl From<$type> for Held {
            fn from(held: $type) -> Self {
                Self::$sort(held)
            }
        }
    )+};
}

held!(fencelock::Guard: One, AllGuard: All, Leadership: Leader, fencelock::Run: Run);

impl Guard {
    /// Ends the hold by `end`, once.
    pub(crate) async fn end<F>(&self, end: impl FnOnce(Held) -> F) -> Result<Released>
    where
        F: Future<Output = fencelock::Result<fencelock::Released>> + Send + 'static,
    {
        let Some(held) = self.held.lock().await.take() else {
            let name = self.claims.first().map_or("", |claim| claim.name());
            let message = "this guard was given back before; acquire the lock again";
            return Err(Error::new(Code::NotHeld, message).with("name", name).into());
        };
        self.given_back.close();
        Ok(match run(end(held)).await? {
            fencelock::Released::Released => Released::Released,
            fencelock::Released::AlreadyLost => Released::AlreadyLost,
            fencelock::Released::Unconfirmed => Released::Unconfirmed,
        })
    }
}

#[uniffi::export]
impl Guard {
    /// The fencing token; of several locks, that of the first in the order of the names.
    pub fn token(&self) -> u64 {
        self.claims.first().map_or(0, |claim| claim.token().get())
    }

    /// Whether the lock may be relied on at this very moment.
    pub fn is_held(&self) -> bool {
        !self.given_back.is_closed() && self.claims.iter().all(Claim::is_held)
    }

    /// How long the lock may still be relied on if it were not renewed any more; zero once it is lost.
    pub fn remaining(&self) -> Duration {
        self.claims.iter().map(Claim::remaining).min().unwrap_or_default()
    }

    /// Fails with `lost` once the lock is lost, with `not_held` once the guard was given back; for right before a write.
    pub fn check(&self) -> Result<()> {
        self.claims.iter().try_for_each(Claim::check).map_err(Into::into)
    }

    /// Waits for the loss: true if the lock was lost, false if the guard was given back before.
    pub async fn lost(&self) -> Result<bool> {
        let lost = select_all(self.claims.iter().map(|claim| Box::pin(claim.lost())));
        let lost = run(lost.map(|_| Ok(())));
        let first = select(Box::pin(self.given_back.acquire()), Box::pin(lost)).await;
        Ok(matches!(first, Either::Right((Ok(()), _))))
    }

    /// Pushes the end of the lease to at least now + `ttl`, which is its length from now on. Never shortens it.
    pub async fn extend(&self, ttl: Duration) -> Result<()> {
        if self.given_back.is_closed() {
            return self.check();
        }
        ask!(self.held, held => {
            match &*held.lock().await {
                Some(Held::One(guard)) => guard.extend(ttl).await,
                Some(Held::All(guard)) => guard.extend(ttl).await,
                _ => Err(Error::new(Code::Unsupported, "it is extended by its renewals only")),
            }
        })
    }

    /// Frees the lock and tells how that went; a run of a job has failed with it. The call itself gives the guard
    /// back; whoever stops waiting does without the answer.
    pub async fn release(&self) -> Result<Released> {
        self.end(|held| async move {
            Ok(match held {
                Held::One(guard) => guard.release().await,
                Held::All(guard) => guard.release().await,
                Held::Leader(leadership) => leadership.resign().await,
                Held::Run(run) => run.fail().await,
            })
        })
        .await
    }

    /// Lets another process go on with the hold: answers a text that `adopt` of a client makes the guard of, once, within the lease.
    /// From then on this guard is given back, and the lock stays held. The text is a secret. On an error the lock is freed.
    pub async fn transfer(&self) -> Result<String> {
        let held = self.held.lock().await.take();
        self.given_back.close();
        match held {
            Some(Held::One(guard)) => run(guard.transfer()).await,
            Some(_) => {
                let message = "only the guard of one lock goes to another process";
                Err(Error::new(Code::Unsupported, message).into())
            }
            None => self.check().map(|()| String::new()),
        }
    }

    /// Gives the guard back and waits for nothing.
    pub fn forget(&self) {
        self.given_back.close();
        drop(self.held.try_lock().map(|mut held| held.take()));
    }
}
