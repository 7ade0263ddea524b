//! Looks at cells and changes of them, on their way through the same network.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fencelock::port::{CellKey, Change, Instant, Look, Runtime, Swap};
use tokio::sync::oneshot;

use super::{Network, NetworkState, Way};
use crate::cells::lock_of_job;

/// The operations on a cell.
#[derive(Clone, Debug)]
pub(crate) enum Ask {
    Look(CellKey),
    Swap(Change),
}

/// The reply to such an operation.
#[derive(Clone, Debug)]
pub(crate) enum Told {
    Look(Look),
    Swap(Swap),
    /// The store is there and does not want to.
    Refused,
    /// The connection broke.
    Reset,
}

type Awaited = Arc<Mutex<Option<oneshot::Sender<Told>>>>;

impl Network {
    /// Sends what is asked; the first answer to arrive goes to `reply`.
    pub(crate) fn ask_cell(&self, channel: &Arc<str>, ask: &Ask, reply: oneshot::Sender<Told>) {
        let copies = {
            let state = &mut *self.state();
            1 + u32::from(state.dice.chance(state.weather.doubled))
        };
        let reply: Awaited = Arc::new(Mutex::new(Some(reply)));
        for _ in 0..copies {
            let Some(at) = self.arrival(channel, Way::Request) else { continue };
            let connection = self.state().links.get(channel).map(|link| link.connection);
            let (channel, ask, reply) = (channel.clone(), ask.clone(), Arc::clone(&reply));
            self.at(at, move |network| {
                let server = Arc::clone(&network.server);
                server.spawn(Box::pin(async move {
                    let told = network.serve_cell(&channel, &ask, connection);
                    network.tell_cell(&channel, told, reply);
                }));
            });
        }
    }

    fn serve_cell(&self, channel: &Arc<str>, ask: &Ask, connection: Option<u64>) -> Told {
        let state = &mut *self.state();
        let NetworkState { store, weather, dice, links, down } = state;
        let current = links.get(channel).map(|link| link.connection);
        if *down || (current != connection && dice.chance(500)) {
            return Told::Reset;
        }
        if dice.chance(weather.refused) {
            return Told::Refused;
        }
        let (now, at) = (store.now(), self.world.now().since(Instant::default()));
        match ask {
            Ask::Look(key) => Told::Look(store.cells().look(key, now)),
            Ask::Swap(change) => {
                let tokens = store.tokens(&lock_of_job(&change.key.name));
                let swap = store.cells().swap(change, now, at, tokens);
                // Carried out, and then the connection breaks.
                if dice.chance(weather.torn) { Told::Reset } else { Told::Swap(swap) }
            }
        }
    }

    fn tell_cell(&self, channel: &Arc<str>, told: Told, reply: Awaited) {
        if let Some(at) = self.arrival(channel, Way::Reply) {
            self.at(at, move |_| {
                let reply = reply.lock().unwrap_or_else(PoisonError::into_inner).take();
                reply.map(|reply| reply.send(told));
            });
        }
    }

    /// True time since the world began.
    pub(crate) fn elapsed(&self) -> Duration {
        self.world.now().since(Instant::default())
    }
}
