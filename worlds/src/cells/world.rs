//! One such world, run from its plan to its end.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fencelock::Client;
use fencelock::port::Runtime;
use fencelock_sim::{Sim, SimNode, Stuck};
use futures_util::future::{AbortHandle, Abortable};

use super::actor::{Place, name};
use super::checker::Checker;
use super::plan::{Family, Plan};
use crate::checker::Rule;
use crate::later::{after, restart};
use crate::network::Network;
use crate::plan::Fault;
use crate::server::Server;
use crate::world::Ending;

/// After healing, one way takes at most this long.
const HEALED: Duration = Duration::from_millis(1);

struct World {
    sim: Sim,
    plan: Arc<Plan>,
    network: Network,
    checker: Arc<Checker>,
    nodes: Vec<(Arc<SimNode>, Arc<str>)>,
    clients: Vec<Option<Client>>,
    observers: Vec<AbortHandle>,
    /// Tasks that have not come to their end.
    running: Arc<AtomicUsize>,
    /// How often everything is looked at.
    period: Duration,
}

/// Runs a world; with `traced`, its history is written down.
pub fn run(plan: &Plan, traced: bool) -> Ending {
    let mut world = World::build(plan, traced);
    if let Err(stuck) = world.live() {
        let rule = if matches!(stuck, Stuck::Busy { .. }) { Rule::BusyLoop } else { Rule::Stuck };
        world.checker.violated(rule, stuck.to_string());
    }
    let World { sim, checker, network, clients, .. } = world;
    drop(clients);
    network.store(|store| {
        for change in store.cells().diary() {
            sim.record(change.at.as_nanos() as u64 ^ change.version);
        }
    });
    let (figures, violations, mut history) = checker.close();
    if traced {
        network.store(|store| {
            history.extend(store.cells().diary().iter().map(|c| (c.at, format!("{c:?}"))));
            history.extend(store.take_log());
        });
        history.sort_by_key(|(at, _)| *at);
    }
    Ending { figures, violations, history, trace: sim.trace() }
}

impl World {
    fn build(plan: &Plan, traced: bool) -> Self {
        let sim = Sim::new(plan.seed);
        let server = sim.node(plan.server_drift);
        let network = Network::new(sim.world(), &server, plan.weather.clone(), sim.dice());
        if traced {
            network.store(Server::keep_log);
        }
        let machines = plan.clients.iter().zip(&plan.off).enumerate();
        let nodes = machines.map(|(number, (machine, off))| {
            let node = sim.node(machine.drift);
            // All clocks show the same at first, but for what they are off.
            let server = i64::try_from(server.wall()).unwrap_or(i64::MAX);
            node.set_wall(server - i64::try_from(node.wall()).unwrap_or(i64::MAX) + off);
            (node, format!("client-{number}").into())
        });
        let nodes = nodes.collect();
        let plan = Arc::new(plan.clone());
        let checker = Checker::new(&plan, &network, traced);
        let period = (plan.ttl / 7).clamp(Duration::from_millis(5), Duration::from_millis(200));
        Self {
            sim,
            plan,
            network,
            checker,
            nodes,
            clients: Vec::new(),
            observers: Vec::new(),
            running: Arc::default(),
            period,
        }
    }

    fn live(&mut self) -> Result<(), Stuck> {
        self.connect()?;
        self.employ();
        for (at, fault) in self.plan.clone().faults.iter().copied() {
            self.pass_until(at)?;
            self.inflict(fault);
        }
        self.pass_until(self.plan.heals)?;
        self.checker.tell(|| "--- everything heals".to_owned());
        self.network.calm_down(HEALED);
        self.finish_work()?;
        self.leave()
    }

    fn connect(&mut self) -> Result<(), Stuck> {
        // Weather begins when everybody is connected.
        self.network.calm_down(HEALED);
        for (number, (node, channel)) in self.nodes.iter().enumerate() {
            let timeout = self.plan.clients[number].timeout;
            let store = self.network.connect(node, channel, timeout);
            let observe = (self.plan.ttl / 2).max(Duration::from_millis(10));
            let builder = Client::builder()
                .runtime(node.clone())
                .option("timeout", timeout.as_secs_f64() * 1000.0)
                .option("observe", observe.as_secs_f64() * 1000.0);
            let client = self.sim.block_on(builder.store(store))?;
            self.clients.push(Some(client.expect("a healthy store can be connected to")));
        }
        self.network.set_weather(self.plan.weather.clone());
        Ok(())
    }

    fn employ(&mut self) {
        for task in &self.plan.tasks {
            let place = Place {
                plan: self.plan.clone(),
                node: Arc::clone(&self.nodes[task.client].0),
                number: task.client,
                checker: Arc::clone(&self.checker),
            };
            let client = self.clients[task.client].clone().expect("nobody has left yet");
            let running = Running::begin(&self.running);
            let (node, work) = (place.node.clone(), place.run(client, task.clone()));
            node.spawn(Box::pin(async move {
                let _running = running;
                work.await;
            }));
        }
        for of in (0..2).filter(|_| self.plan.family == Family::Elections) {
            let client = self.clients[0].as_ref().expect("nobody has left yet");
            let mut observer = client.election(&name(of)).observe();
            let checker = self.checker.clone();
            let (abort, registration) = AbortHandle::new_pair();
            let watch = async move {
                while let Ok(leader) = observer.changed().await {
                    checker.sees(of, leader.as_ref());
                }
            };
            let watch = Abortable::new(watch, registration);
            self.nodes[0].0.spawn(Box::pin(async move { watch.await.unwrap_or_default() }));
            self.observers.push(abort);
        }
    }

    /// Runs until `end`, looking at everything now and then.
    fn pass_until(&self, end: Duration) -> Result<(), Stuck> {
        loop {
            let left = end.saturating_sub(self.sim.elapsed());
            if left.is_zero() {
                return Ok(());
            }
            self.sim.run_for(left.min(self.period))?;
            self.checker.audit();
        }
    }

    fn inflict(&self, fault: Fault) {
        self.checker.tell(|| format!("--- {fault:?}"));
        match fault {
            Fault::Pause(client, time) => {
                let node = self.nodes[client].0.clone();
                node.pause();
                after(&self.sim, time, move || node.resume());
            }
            Fault::Crash(client) => {
                let (node, channel) = &self.nodes[client];
                self.checker.crashed(client);
                node.crash();
                self.network.abandon(channel);
            }
            Fault::Close(number) => {
                let client = self.clients[number].clone().expect("nobody has left yet");
                self.nodes[number].0.spawn(Box::pin(async move { client.close().await }));
            }
            Fault::Cut(client, time) => {
                self.network.cut(&self.nodes[client].1);
                let (network, channel) = (self.network.clone(), self.nodes[client].1.clone());
                after(&self.sim, time, move || network.heal(&channel));
            }
            Fault::Restart(time, loss) => {
                restart(&self.sim, &self.network, time, loss, || {});
            }
            Fault::Stall(time) => {
                let server = self.network.server();
                server.pause();
                after(&self.sim, time, move || server.resume());
            }
            Fault::Snapshot => self.network.store(Server::snapshot),
            Fault::Jump(by) => self.network.server().set_wall(by),
            Fault::Lose(_)
            | Fault::Delete(_)
            | Fault::NodeRestart(..)
            | Fault::NodeStall(..)
            | Fault::NodeCut(..) => unreachable!("not drawn for these worlds"),
        }
    }

    /// Lets every task come to its end.
    fn finish_work(&self) -> Result<(), Stuck> {
        let acts = self.plan.tasks.iter().flat_map(|task| &task.acts);
        let each = Duration::from_secs(12) + self.plan.ttl * 4;
        let all: Duration = acts.map(|act| act.rest + act.work + each).sum();
        let end = self.sim.elapsed() + all;
        while self.running.load(Ordering::Relaxed) > 0 {
            if self.sim.elapsed() > end {
                let left = self.running.load(Ordering::Relaxed);
                self.checker.violated(Rule::Stuck, format!("{left} tasks do not end"));
                break;
            }
            self.pass_until(self.sim.elapsed() + self.period)?;
        }
        Ok(())
    }

    /// Everybody leaves; nothing may be left.
    fn leave(&mut self) -> Result<(), Stuck> {
        self.observers.iter().for_each(AbortHandle::abort);
        // What was given up is taken back, or its lease ends.
        self.pass_until(self.sim.elapsed() + Duration::from_secs(35) + self.plan.ttl * 2)?;
        for (number, client) in self.clients.iter_mut().enumerate() {
            let Some(client) = client.take() else { continue };
            if self.checker.rests(number) && client.stats() != (0, 0) {
                let detail = format!("client {number} at rest carries {:?}", client.stats());
                self.checker.violated(Rule::Leak, detail);
            }
            if self.plan.clients[number].closes {
                self.nodes[number].0.spawn(Box::pin(async move { client.close().await }));
            }
        }
        self.pass_until(self.sim.elapsed() + Duration::from_secs(20))?;
        for (number, (node, _)) in self.nodes.iter().enumerate() {
            let (tasks, timers) = (node.tasks(), node.timers());
            if (tasks, timers) != (0, 0) {
                let detail = format!("client {number} leaves {tasks} tasks, {timers} timers");
                self.checker.violated(Rule::Leak, detail);
            }
        }
        self.checker.take_stock();
        Ok(())
    }
}

/// Counts a task for as long as it is there.
struct Running(Arc<AtomicUsize>);

impl Running {
    fn begin(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(count))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
