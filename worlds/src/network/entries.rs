//! Calls about entries on their way through the same network, and the notices that come back.

use std::sync::Arc;

use fencelock::port::{Failure, Instant, QueueNotice, Runtime, SessionId};
use tokio::sync::oneshot;

use super::{Network, NetworkState, Subscription, Way};
use crate::entries::Entries;

/// The reply to a request.
pub(crate) enum Told<T> {
    Answer(Result<T, Failure>),
    /// The store is there and does not want to.
    Refused,
    /// The connection broke.
    Reset,
}

/// An operation that the store carries out at some moment of its own clock.
pub(crate) type Ask<T> = Box<dyn FnOnce(&mut Entries, Instant) -> Result<T, Failure> + Send>;

impl Network {
    /// Sends what is asked; the answer goes to `reply`, if it arrives.
    pub(crate) fn ask_entries<T: Send + 'static>(
        &self,
        channel: &Arc<str>,
        ask: Ask<T>,
        reply: oneshot::Sender<Told<T>>,
    ) {
        let Some(at) = self.arrival(channel, Way::Request) else { return };
        let connection = self.state().links.get(channel).map(|link| link.connection);
        let channel = channel.clone();
        self.at(at, move |network| {
            let server = Arc::clone(&network.server);
            server.spawn(Box::pin(async move {
                let told = network.serve_entries(&channel, ask, connection);
                if let Some(at) = network.arrival(&channel, Way::Reply) {
                    network.at(at, move |_| drop(reply.send(told)));
                }
            }));
        });
    }

    fn serve_entries<T>(
        &self,
        channel: &Arc<str>,
        ask: Ask<T>,
        connection: Option<u64>,
    ) -> Told<T> {
        let torn = {
            let state = &mut *self.state();
            let NetworkState { weather, dice, links, down, .. } = state;
            let current = links.get(channel).map(|link| link.connection);
            if *down || (current != connection && dice.chance(500)) {
                return Told::Reset;
            }
            if dice.chance(weather.refused) {
                return Told::Refused;
            }
            dice.chance(weather.torn)
        };
        let answer = self.act_on_entries(ask);
        // Carried out, and then the connection breaks.
        if torn { Told::Reset } else { Told::Answer(answer) }
    }

    /// The store does something now, and tells whoever is to be told.
    fn act_on_entries<T>(&self, act: impl FnOnce(&mut Entries, Instant) -> T) -> T {
        let (done, told) = self.store(|store| store.act_on_entries(act));
        for (session, notice) in told {
            self.tell_session(session, &notice);
        }
        done
    }

    /// Ends a session when its time is over.
    pub(crate) fn watch_session(&self, id: SessionId) {
        let (network, server) = (self.clone(), Arc::clone(&self.server));
        self.server.spawn(Box::pin(async move {
            while let Some(ends) = network.act_on_entries(|entries, _| entries.model.ends(id)) {
                server.sleep_until(ends).await;
            }
        }));
    }

    /// Tells a client something of its session or its watches, if it listens.
    fn tell_session(&self, session: SessionId, notice: &QueueNotice) {
        let Some((channel, sink)) = self.store(|store| store.entries().listener(session)) else {
            return;
        };
        let (connection, copies) = {
            let state = &mut *self.state();
            let live = |link: &&super::Link| link.subscription == Subscription::Live;
            let Some(link) = state.links.get(&channel).filter(live) else { return };
            (link.connection, 1 + u32::from(state.dice.chance(state.weather.notices_doubled)))
        };
        for _ in 0..copies {
            let Some(at) = self.arrival(&channel, Way::Notice) else { continue };
            let (channel, sink, notice) = (channel.clone(), sink.clone(), notice.clone());
            self.at(at, move |network| {
                let state = network.state();
                let link = state.links.get(&channel);
                let Some(link) = link.filter(|link| link.connection == connection) else { return };
                let node = Arc::clone(&link.node);
                drop(state);
                node.spawn(Box::pin(async move { sink(notice) }));
            });
        }
    }
}
