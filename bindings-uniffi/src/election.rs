//! Leader election.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;

use crate::Result;
use crate::guard::Guard;
use crate::process::{ask, run};

/// An election: one leader at a time, the next one in order.
#[derive(uniffi::Object)]
pub struct Election(pub(crate) fencelock::Election);

/// The leader of an election.
#[derive(Clone, Debug, uniffi::Record)]
pub struct Leader {
    /// Its fencing token; none if it is not fencelock's.
    pub token: Option<u64>,
    /// The information it gave about itself, as JSON.
    pub info: String,
}

impl From<fencelock::Leader> for Leader {
    fn from(leader: fencelock::Leader) -> Self {
        let fencelock::Leader { token, info, .. } = leader;
        Self { token: token.map(fencelock::Token::get), info: info.to_string() }
    }
}

#[uniffi::export]
impl Election {
    /// Waits until this candidate leads. A release of the guard resigns.
    pub async fn campaign(&self) -> Result<Arc<Guard>> {
        Ok(Arc::new(run(self.0.campaign()).await?.into()))
    }

    /// Leads if nobody else does or stands for it, or within this time.
    #[uniffi::method(default(wait = None))]
    pub async fn try_campaign(&self, wait: Option<Duration>) -> Result<Option<Arc<Guard>>> {
        let leads = match wait {
            None => self.0.try_campaign(),
            Some(wait) => self.0.try_campaign_within(wait),
        };
        Ok(run(leads).await?.map(|leads| Arc::new(leads.into())))
    }

    /// The present leader.
    pub async fn leader(&self) -> Result<Option<Leader>> {
        Ok(ask!(self.0, election => election.leader().await)?.map(Into::into))
    }

    /// Follows who leads.
    pub fn observe(&self) -> Arc<Observer> {
        Arc::new(Observer(Arc::new(Mutex::new(self.0.observe()))))
    }
}

/// Follows who leads in an election.
#[derive(uniffi::Object)]
pub struct Observer(Arc<Mutex<fencelock::Observer>>);

#[uniffi::export]
impl Observer {
    /// The leader, or nothing if nobody leads: at once at first, then after each change.
    pub async fn changed(&self) -> Result<Option<Leader>> {
        Ok(ask!(self.0, observer => observer.lock().await.changed().await)?.map(Into::into))
    }
}
