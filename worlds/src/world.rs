//! One world, run from its plan to its end.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fencelock::port::{Action, Answer, Kind, Mode, OwnerId, Runtime, Step, Take};
use fencelock::{Client, Gate, Scope, Stats, Token};
use fencelock_sim::{Sim, SimNode, Stuck};
use futures_util::future::{AbortHandle, Abortable};

use super::actor::{Place, freeze};
use super::checker::{Checker, Figures, Rule, Violation};
use super::network::Network;
use super::plan::{Fault, Loss, Plan, Subject, name};
use super::server::{Change, Server};
use super::stores::Stores;

/// How a world ended.
#[derive(Clone, Debug)]
pub struct Ending {
    /// The counts of its events.
    pub figures: Figures,
    /// The promises it broke.
    pub violations: Vec<Violation>,
    /// Everything that happened, if it was traced.
    pub history: Vec<(Duration, String)>,
    /// The hash of all of it.
    pub trace: u64,
}

/// After healing, one way takes at most this long.
const HEALED: Duration = Duration::from_millis(1);

struct World {
    sim: Sim,
    plan: Plan,
    stores: Stores,
    checker: Arc<Checker>,
    nodes: Vec<(Arc<SimNode>, Arc<str>)>,
    clients: Vec<Option<Client>>,
    /// The tasks that follow who leads.
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
    let World { sim, checker, stores, clients, .. } = world;
    drop(clients);
    // What the store did belongs to the trace as much as the order in which it came about.
    for network in stores.all() {
        network.store(|store| {
            for fact in store.facts() {
                let token = match fact.change {
                    Change::Granted { token, .. } => token.get(),
                    _ => 0,
                };
                sim.record(fact.at.as_nanos() as u64 ^ token);
            }
            for change in store.cell_changes() {
                sim.record(change.at.as_nanos() as u64 ^ change.version);
            }
        });
    }
    let (figures, violations, mut history) = checker.close();
    if traced {
        let changes = |store: &mut Server| {
            store.cell_changes().iter().map(|change| (change.at, format!("{change:?}"))).collect()
        };
        history
            .extend(stores.all().iter().flat_map(|network| -> Vec<_> { network.store(changes) }));
    }
    let logs = stores.all().iter().map(|network| network.store(Server::take_log));
    history.extend(logs.flatten());
    history.sort_by_key(|(at, _)| *at);
    Ending { figures, violations, history, trace: sim.trace() }
}

impl World {
    fn build(plan: &Plan, traced: bool) -> Self {
        let sim = Sim::new(plan.seed);
        let network = |drift: i32, skew: i64| {
            let server = sim.node(drift);
            server.set_wall(skew);
            Network::new(sim.world(), &server, plan.conditions.clone(), sim.dice())
        };
        let networks = match &plan.nodes[..] {
            [] => vec![network(plan.server_drift, 0)],
            nodes => nodes.iter().map(|node| network(node.drift, node.skew)).collect(),
        };
        let stores = Stores::new(networks);
        if traced {
            stores.all().iter().for_each(|network| network.store(Server::keep_log));
        }
        let machines = plan.clients.iter().enumerate();
        let nodes: Vec<(Arc<SimNode>, Arc<str>)> = machines
            .map(|(number, machine)| {
                let node = sim.node(machine.drift);
                if let Some(skew) = machine.skew {
                    let server = stores.first().server().wall();
                    node.set_wall(server.cast_signed() - node.wall().cast_signed() + skew);
                }
                (node, format!("client-{number}").into())
            })
            .collect();
        let checker = Checker::new(plan, sim.world(), &stores, &nodes, traced);
        let shortest = plan.tasks.iter().flat_map(|task| &task.acts).map(|act| act.ttl).min();
        let period = shortest.unwrap_or_default() / 4;
        let period = period.clamp(Duration::from_millis(7), Duration::from_millis(200));
        let running = Arc::new(AtomicUsize::new(0));
        let (clients, observers) = (Vec::new(), Vec::new());
        Self {
            sim,
            plan: plan.clone(),
            stores,
            checker,
            nodes,
            clients,
            observers,
            running,
            period,
        }
    }

    fn live(&mut self) -> Result<(), Stuck> {
        self.connect()?;
        self.employ();
        let faults = self.plan.faults.clone();
        for (at, fault) in faults {
            self.pass_until(at)?;
            self.inflict(fault);
        }
        self.pass_until(self.plan.heals)?;
        self.heal();
        self.finish_work()?;
        self.leave()
    }

    fn connect(&mut self) -> Result<(), Stuck> {
        // What goes wrong begins when everybody is connected.
        self.all(|network| network.calm_down(HEALED));
        for (number, (node, channel)) in self.nodes.iter().enumerate() {
            let timeout = self.plan.clients[number].timeout;
            let store = self.stores.connect(node, channel, timeout, &self.plan);
            let checker = Arc::downgrade(&self.checker);
            let mut builder = Client::builder().runtime(node.clone());
            if self.plan.subject.has_cells() {
                let millis = |time: Duration| time.as_secs_f64() * 1000.0;
                let builds = builder.option("timeout", millis(timeout));
                builder = builds.option("observe", millis(self.plan.observes()));
            }
            let builder = builder.option("info", channel.to_string()).on_event(move |event| {
                if let Some(checker) = checker.upgrade() {
                    checker.event(number, event);
                }
            });
            let client = self.sim.block_on(builder.store(store))?;
            self.clients.push(Some(client.expect("a healthy store can be connected to")));
        }
        self.all(|network| network.set_conditions(self.plan.conditions.clone()));
        Ok(())
    }

    fn all(&self, act: impl Fn(&Network)) {
        self.stores.all().iter().for_each(act);
    }

    fn employ(&mut self) {
        let gate = Arc::new(Gate::new());
        let clients =
            self.clients.iter().map(|client| client.as_ref().expect("nobody has left yet"));
        let scopes: Vec<Scope> = clients.map(Client::scope).collect();
        for task in &self.plan.tasks {
            let number = task.client;
            let place = Place {
                world: Arc::clone(self.sim.world()),
                node: Arc::clone(&self.nodes[number].0),
                number,
                checker: Arc::clone(&self.checker),
                gate: Arc::clone(&gate),
                scope: scopes[number].clone(),
                longest_try: self.plan.longest_try(number),
                job: self.plan.job,
            };
            let client = self.clients[number].clone().expect("nobody has left yet");
            let running = Running::begin(&self.running);
            let work = place.clone().run(client, task.clone());
            place.node.spawn(Box::pin(async move {
                let _running = running;
                work.await;
            }));
        }
        for number in (0..2).filter(|_| self.plan.subject == Subject::Elections) {
            let client = self.clients[0].as_ref().expect("nobody has left yet");
            let mut observer = client.election(&name(number)).observe();
            let checker = Arc::clone(&self.checker);
            let watch = async move {
                while let Ok(leader) = observer.changed().await {
                    checker.sees(number, leader.as_ref());
                }
            };
            let (abort, registration) = AbortHandle::new_pair();
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
            self.look();
        }
    }

    fn look(&self) {
        self.checker.audit();
        // A run that was given up is ended in the background, by who still holds its lock.
        if self.plan.subject != Subject::Jobs {
            self.look_at_load();
        }
    }

    fn look_at_load(&self) {
        for (number, client) in self.clients.iter().enumerate() {
            let Some(client) = client else { continue };
            if self.checker.rests(number) && client.stats() != Stats::default() {
                let detail = format!("client {number} at rest carries {:?}", client.stats());
                self.checker.violated(Rule::Leak, detail);
            }
        }
    }

    fn inflict(&self, fault: Fault) {
        let now = self.sim.elapsed();
        self.checker.tell(|| format!("--- {fault:?}"));
        let (world, checker) = (self.sim.world(), &self.checker);
        match fault {
            Fault::Pause(client, time) => {
                freeze(world, &self.nodes[client].0, checker, client, time);
            }
            Fault::Crash(client) => {
                let (node, channel) = &self.nodes[client];
                checker.crashed(client);
                node.crash();
                self.all(|network| network.abandon(channel));
            }
            Fault::Close(number) => {
                checker.closed(number);
                let client = self.clients[number].clone().expect("nobody has left yet");
                self.nodes[number].0.spawn(Box::pin(async move { client.close().await }));
            }
            Fault::Cut(client, time) => {
                checker.disturb(client, now + time, false);
                let channel = self.nodes[client].1.clone();
                self.all(|network| network.cut(&channel));
                let stores = self.stores.clone();
                after(&self.sim, time, move || {
                    stores.all().iter().for_each(|network| network.heal(&channel));
                });
            }
            Fault::Lose(client) => {
                // Whatever it asks next, some time from now.
                checker.disturb(client, self.plan.heals, true);
                self.all(|network| network.lose_one(&self.nodes[client].1));
            }
            Fault::Restart(time, loss) => {
                if loss == Loss::Nothing {
                    checker.disturb_all(now + time);
                } else {
                    checker.unsettle_all(now + time + self.aftermath());
                }
                let checker = Arc::clone(checker);
                restart(&self.sim, self.stores.first(), time, loss, move || checker.forsaken());
            }
            Fault::Stall(time) => {
                checker.disturb_all(now + time);
                let server = self.stores.first().server();
                server.pause();
                after(&self.sim, time, move || server.resume());
            }
            Fault::Snapshot => self.stores.first().store(Server::snapshot),
            Fault::Jump(by) => {
                let back = Duration::from_micros(by.min(0).unsigned_abs());
                checker.unsettle_all(now + back + self.aftermath());
                self.stores.first().server().set_wall(by);
                checker.forsaken();
            }
            Fault::Delete(lock) => {
                let key = self.plan.key(lock);
                self.stores.first().store(|store| store.delete_hold(&key));
                checker.forsaken();
            }
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

    /// How long what nobody answers for any more keeps others out: a lease, and before it the line.
    fn aftermath(&self) -> Duration {
        self.plan.longest_lease() + Duration::from_secs(6)
    }

    /// From now on nothing new goes wrong. What was cut off or stands still comes back by itself.
    fn heal(&self) {
        self.checker.tell(|| "--- everything heals".to_owned());
        self.all(|network| network.calm_down(HEALED));
        self.checker.healed(HEALED * 2);
        if !self.plan.calm() {
            // What is late may still arrive; a request that arrives twice may queue for nobody, and be granted.
            let mut late = self.plan.conditions.round_trip();
            if self.plan.conditions.doubled > 0 {
                late += self.aftermath();
            }
            self.checker.disturb_all(self.sim.elapsed() + late);
        }
    }

    /// Lets every task come to its end; none may take longer than all of them one after the other.
    fn finish_work(&self) -> Result<(), Stuck> {
        let acts = self.plan.tasks.iter().flat_map(|task| &task.acts);
        let each = Duration::from_secs(12) + self.plan.longest_lease() * 4;
        let all: Duration = acts.map(|act| act.longest() + each).sum();
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
        // Undos of what was lost may be repeated for a while, ends of runs for half a minute.
        let patience = self.plan.clients.iter().map(|machine| machine.timeout).max();
        let mut repeats = 3;
        if self.plan.subject.has_cells() {
            // Nothing is to be seen meanwhile that would pass by.
            (repeats, self.period) = (35, Duration::from_millis(200));
        }
        let patience = patience.unwrap_or_default() * 2 + Duration::from_secs(repeats);
        self.pass_until(self.sim.elapsed() + patience)?;
        self.look_at_load();
        for (number, client) in self.clients.iter_mut().enumerate() {
            let Some(client) = client.take() else { continue };
            if self.plan.clients[number].closes {
                self.nodes[number].0.spawn(Box::pin(async move { client.close().await }));
            }
        }
        let last = self.aftermath() + patience;
        self.pass_until(self.sim.elapsed() + last)?;
        for (number, (node, _)) in self.nodes.iter().enumerate() {
            let (tasks, timers) = (node.tasks(), node.timers());
            if (tasks, timers) != (0, 0) {
                let detail = format!("client {number} leaves {tasks} tasks, {timers} timers");
                self.checker.violated(Rule::Leak, detail);
            }
        }
        self.checker.take_stock();
        // What somebody asked for who has crashed since may have come as late as anything, have stood in line, and ends with
        // its lease only.
        let late = self.plan.heals + self.plan.conditions.latest() + self.aftermath();
        self.pass_until(self.sim.elapsed().max(late + HEALED))?;
        if self.plan.jumps() {
            // Ends that are too far away are brought nearer by whoever looks first; a lease later all is free.
            self.look_at_all();
            self.pass_until(self.sim.elapsed() + self.plan.longest_lease() + HEALED)?;
        }
        self.ask_for_all();
        Ok(())
    }

    /// A stranger looks, in that it gives back what it does not have.
    fn look_at_all(&self) {
        self.as_stranger(&Action::Leave { tombstone: None }, |_, _| {});
    }

    /// A stranger gets every lock at once.
    fn ask_for_all(&self) {
        if self.plan.subject == Subject::Sessions {
            // Everybody has left, or their sessions are over: no entry is there.
            return self.stores.first().store(|store: &mut Server| {
                for (lock, record) in store.records() {
                    let detail = format!("entries of {lock:?} are left in the end: {record:?}");
                    self.checker.violated(Rule::Stuck, detail);
                }
            });
        }
        let take = Take {
            mode: Mode::Exclusive,
            limit: 1,
            permits: 1,
            ttl: Duration::from_secs(1),
            wait: false,
            block: 1,
            floor: Token::default(),
            info: "".into(),
            vote: None,
        };
        self.as_stranger(&Action::Take(take), |lock, answers| {
            if !matches!(answers, [Ok(fencelock::port::Outcome::Granted { .. })]) {
                let detail = format!("lock {lock} cannot be had in the end: {answers:?}");
                self.checker.violated(Rule::Stuck, detail);
            }
        });
    }

    /// Somebody else takes this step of every lock, on every store.
    fn as_stranger(&self, action: &Action, judge: impl Fn(usize, &[Answer])) {
        let stranger: Arc<str> = "stranger".into();
        for lock in 0..self.plan.locks() {
            let owner = OwnerId::draw(&**self.sim.world());
            let (kind, action) = (Kind::Mutex, action.clone());
            let step = Step { lock: self.plan.key(lock), owner, kind, action };
            self.all(|network| {
                let step = [step.clone()];
                let (answers, _) =
                    network.store(|store| store.carry_out(&stranger, &step, false, &|_| false));
                judge(lock, &answers);
            });
        }
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

/// Does something after a while.
fn after(sim: &Sim, time: Duration, act: impl FnOnce() + Send + 'static) {
    let world = sim.world();
    let over = world.sleep_until(world.now() + time);
    world.spawn(Box::pin(async move {
        over.await;
        act();
    }));
}

/// A store goes, and is back after a while with what it has kept; then `back` is called.
fn restart(
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
