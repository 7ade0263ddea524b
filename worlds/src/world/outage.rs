//! Stores that restart, stand still, or cannot be reached.

use std::time::Duration;

use super::World;
use crate::later::{after, restart};
use crate::plan::Fault;

impl World {
    /// Applies a fault to one node of a quorum.
    pub(super) fn inflict_on_node(&self, fault: Fault) {
        match fault {
            Fault::NodeRestart(node, time, loss) => {
                self.fall_ill(node, time + self.plan.max_ttl);
                restart(&self.sim, &self.stores.all()[node], time, loss, || {});
            }
            Fault::NodeStall(node, time) => {
                self.fall_ill(node, time);
                let server = self.stores.all()[node].server();
                server.pause();
                after(&self.sim, time, move || server.resume());
            }
            Fault::NodeCut(node, client, time) => {
                self.fall_ill(node, time);
                let (network, channel) =
                    (self.stores.all()[node].clone(), self.nodes[client].1.clone());
                network.cut(&channel);
                after(&self.sim, time, move || network.heal(&channel));
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
}
