//! Stores that restart, stand still, or cannot be reached.

use std::time::Duration;

use super::World;
use crate::sim::network::Network;
use crate::sim::plan::{Fault, Loss};
use crate::sim::server::Server;

impl World {
    /// What happens to one node of a quorum.
    pub(super) fn inflict_on_node(&self, fault: Fault) {
        match fault {
            Fault::NodeRestart(node, time, loss) => {
                self.fall_ill(node, time + self.plan.max_ttl);
                self.restart(&self.stores.all()[node], time, loss);
            }
            Fault::NodeStall(node, time) => {
                self.fall_ill(node, time);
                let server = self.stores.all()[node].server();
                server.pause();
                self.after(time, move || server.resume());
            }
            Fault::NodeCut(node, client, time) => {
                self.fall_ill(node, time);
                let (network, channel) =
                    (self.stores.all()[node].clone(), self.nodes[client].1.clone());
                network.cut(&channel);
                self.after(time, move || network.heal(&channel));
            }
            _ => {}
        }
    }

    /// A node cannot be relied on for this time, nor until it has been asked again and has the holds of the others.
    fn fall_ill(&self, node: usize, time: Duration) {
        let until = self.sim.elapsed() + time + self.plan.longest_lease() + Duration::from_secs(2);
        let all = self.stores.fall_ill(node, until);
        self.checker.shaken(until);
        if all > self.sim.elapsed() {
            self.checker.disturb_all(all);
        }
    }

    /// A store is away for a while.
    pub(super) fn restart(&self, network: &Network, away: Duration, loss: Loss) {
        network.take_down();
        let network = network.clone();
        self.after(away, move || {
            match loss {
                Loss::Nothing => {}
                Loss::Everything => network.store(Server::wipe),
                Loss::SinceSnapshot => network.store(Server::restore),
            }
            network.store(Server::start_anew);
            network.bring_up();
        });
    }
}
