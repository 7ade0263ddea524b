//! Operations that are set off in a world and end later.

use std::time::Duration;

use fencelock::port::Runtime;
use fencelock_sim::Sim;

use super::network::Network;
use super::plan::Loss;
use super::server::Server;

/// Does something after a while.
pub(super) fn after(sim: &Sim, time: Duration, act: impl FnOnce() + Send + 'static) {
    let world = sim.world();
    let over = world.sleep_until(world.now() + time);
    world.spawn(Box::pin(async move {
        over.await;
        act();
    }));
}

/// A store goes, and is back after a while with what it has kept; then `back` is called.
pub(super) fn restart(
    sim: &Sim,
    network: &Network,
    away: Duration,
    loss: Loss,
    back: impl FnOnce() + Send + 'static,
) {
    network.take_down();
    let network = network.clone();
    after(sim, away, move || {
        match loss {
            Loss::Nothing => {}
            Loss::Everything => network.store(Server::wipe),
            Loss::SinceSnapshot => network.store(Server::restore),
        }
        network.store(Server::start_anew);
        network.bring_up();
        back();
    });
}
