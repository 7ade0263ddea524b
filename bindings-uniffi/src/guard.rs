//! The local proof of a hold: of a lock, of several, of an office, of a run.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use fencelock::{Claim, Code, Error};
use futures_util::future::{Either, select};
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
    Guard(fencelock::Guard),
    Run(fencelock::Run),
}

impl Held {
    fn guard(&self) -> &fencelock::Guard {
        match self {
            Self::Guard(guard) => guard,
            Self::Run(run) => run,
        }
    }
}

/// The local proof of a hold. Freeing it releases the lock in the background; `release` waits for the answer.
#[derive(uniffi::Object)]
pub struct Guard {
    held: Arc<Mutex<Option<Held>>>,
    claim: Claim,
    /// Closed when the guard is given back.
    given_back: Semaphore,
}

impl From<Held> for Guard {
    fn from(held: Held) -> Self {
        let claim = held.guard().claim();
        Self { held: Arc::new(Mutex::new(Some(held))), claim, given_back: Semaphore::new(0) }
    }
}

impl From<fencelock::Guard> for Guard {
    fn from(guard: fencelock::Guard) -> Self {
        Held::Guard(guard).into()
    }
}

impl Guard {
    /// Ends the hold, once; a run with how it went.
    pub(crate) async fn end(&self, succeeded: bool) -> Result<Released> {
        let Some(held) = self.held.lock().await.take() else {
            let message = "this guard was given back before; acquire the lock again";
            return Err(Error::new(Code::NotHeld, message).with("name", self.claim.name()).into());
        };
        self.given_back.close();
        let end = async move {
            Ok(match held {
                Held::Guard(guard) => guard.release().await,
                Held::Run(run) if succeeded => run.succeed().await,
                Held::Run(run) => run.fail().await,
            })
        };
        Ok(match run(end).await? {
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
        self.claim.token().get()
    }

    /// The token of each lock, by name: of several as one, each resource is handed its own.
    pub fn tokens(&self) -> HashMap<String, u64> {
        let tokens = self.claim.tokens().into_iter();
        tokens.map(|(name, token)| (name.to_owned(), token.get())).collect()
    }

    /// Whether the lock may be relied on at this very moment.
    pub fn is_held(&self) -> bool {
        !self.given_back.is_closed() && self.claim.is_held()
    }

    /// How long the lock may still be relied on if it were not renewed any more; zero once it is lost.
    pub fn remaining(&self) -> Duration {
        self.claim.remaining()
    }

    /// Fails with `lost` once the lock is lost, with `not_held` once the guard was given back; for right before a write.
    pub fn check(&self) -> Result<()> {
        self.claim.check().map_err(Into::into)
    }

    /// Waits for the loss: true if the lock was lost, false if the guard was given back before.
    pub async fn lost(&self) -> Result<bool> {
        let lost = self.claim.lost();
        let lost = run(async {
            lost.await;
            Ok(())
        });
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
                Some(held) => held.guard().extend(ttl).await,
                None => Ok(()),
            }
        })
    }

    /// Frees the lock and tells how that went; a run of a job has failed with it. The call itself gives the guard
    /// back; whoever stops waiting does without the answer.
    pub async fn release(&self) -> Result<Released> {
        self.end(false).await
    }

    /// Lets another process go on with the hold: answers a text that `adopt` of a client makes the guard of, once, within the lease.
    /// From then on this guard is given back, and the lock stays held. The text is a secret. On an error the lock is freed.
    pub async fn transfer(&self) -> Result<String> {
        let held = self.held.lock().await.take();
        self.given_back.close();
        match held {
            Some(Held::Guard(guard)) => run(guard.transfer()).await,
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
