//! The cells of the store behind the network.

use fencelock::port::{CellKey, CellStore, Change, Failure, Look, Runtime, Swap};
use fencelock::{Code, Result};
use futures_util::future::{Either, select};
use tokio::sync::oneshot;

use super::NetworkStore;
use crate::network::cells::{Ask, Told};
use crate::network::{refused, unknown};

impl NetworkStore {
    /// Sends the request; returns the reply, or `None` if nothing comes in time or the connection broke.
    async fn ask_cell(&self, ask: Ask) -> Option<Told> {
        let (reply, told) = oneshot::channel();
        let timeout = self.node.sleep_until(self.node.now() + self.timeout);
        self.network.ask_cell(&self.channel, &ask, reply);
        match select(told, timeout).await {
            Either::Left((Ok(Told::Reset), _)) | Either::Right(_) => None,
            Either::Left((Ok(told), _)) => Some(told),
            Either::Left((Err(_), timeout)) => {
                // The network lost it: only the own timeout tells.
                timeout.await;
                None
            }
        }
    }

    /// Why nothing can be sent now.
    pub(super) async fn hindered(&self) -> Result<(), Failure> {
        let Some(error) = self.network.refuses(&self.channel) else { return Ok(()) };
        if error.code() != Code::Closed {
            self.travel().await;
        }
        Err(Failure::refused(error))
    }
}

impl CellStore for NetworkStore {
    async fn read(&self, key: &CellKey) -> Result<Look> {
        self.hindered().await.map_err(|failure| failure.error)?;
        match self.ask_cell(Ask::Look(key.clone())).await {
            Some(Told::Look(look)) => Ok(look),
            _ => Err(unknown("the store did not answer").error),
        }
    }

    async fn compare_and_set(&self, change: &Change) -> Result<Swap, Failure> {
        self.hindered().await?;
        match self.ask_cell(Ask::Swap(change.clone())).await {
            Some(Told::Swap(swap)) => Ok(swap),
            Some(Told::Refused) => Err(refused("the store is loading")),
            _ => Err(unknown("the store did not answer")),
        }
    }
}
