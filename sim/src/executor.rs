//! The tasks and timers of all nodes, and the loop that runs them one poll at a time.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use super::dice::{Dice, mix};
use super::{NodeId, Stuck};
use fencelock::port::{BoxFuture, Instant};
use parking_lot::Mutex;

/// More polls than this at one instant are a busy loop: an honest burst is far smaller.
const POLLS_AT_ONCE: u32 = 100_000;

/// A task, for as long as the world lasts.
type TaskId = u64;
/// When a timer is due in true time, and which of those due then it is.
pub(super) type TimerId = (Instant, u64);

/// All of a world but its handles.
pub(super) struct Executor {
    state: Mutex<ExecutorState>,
    woken: Arc<Woken>,
}

/// Tasks to be polled. Apart from the state, because wakers go anywhere, also where futures may not.
#[derive(Default)]
struct Woken(Mutex<Vec<TaskId>>);

struct ExecutorState {
    now: Instant,
    dice: Dice,
    nodes: Vec<Life>,
    tasks: BTreeMap<TaskId, Task>,
    ready: Vec<TaskId>,
    timers: BTreeMap<TimerId, (NodeId, Waker)>,
    count: u64,
    polls: u32,
    trace: u64,
}

struct Life {
    dice: Dice,
    running: Running,
    /// Tasks woken while the node was paused.
    parked: Vec<TaskId>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Running {
    Yes,
    Paused,
    Crashed,
}

struct Task {
    node: NodeId,
    /// Absent while it is being polled.
    future: Option<BoxFuture<'static, ()>>,
    alarm: Arc<Alarm>,
}

struct Alarm {
    task: TaskId,
    rung: AtomicBool,
    woken: Arc<Woken>,
}

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.rung.swap(true, Ordering::Relaxed) {
            self.woken.0.lock().push(self.task);
        }
    }
}

/// A task taken out to be polled.
struct Chosen {
    task: TaskId,
    node: NodeId,
    future: BoxFuture<'static, ()>,
    alarm: Arc<Alarm>,
}

/// The result of one turn of the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// A task was polled.
    Polled,
    /// Time went on to the next timer.
    Advanced,
    /// There was nothing left to do before the end.
    Done,
}

impl Executor {
    pub(super) fn new(seed: u64) -> Self {
        let state = ExecutorState {
            now: Instant::default(),
            dice: Dice::new(mix(seed)),
            nodes: Vec::new(),
            tasks: BTreeMap::new(),
            ready: Vec::new(),
            timers: BTreeMap::new(),
            count: 0,
            polls: 0,
            trace: seed,
        };
        Self { state: Mutex::new(state), woken: Arc::default() }
    }

    pub(super) fn join(&self) -> NodeId {
        let mut state = self.state.lock();
        let dice = state.dice.fork();
        state.nodes.push(Life { dice, running: Running::Yes, parked: Vec::new() });
        NodeId(state.nodes.len() - 1)
    }

    pub(super) fn dice(&self) -> Dice {
        self.state.lock().dice.fork()
    }

    pub(super) fn now(&self) -> Instant {
        self.state.lock().now
    }

    pub(super) fn trace(&self) -> u64 {
        self.state.lock().trace
    }

    pub(super) fn record(&self, event: u64) {
        self.state.lock().record(event);
    }

    pub(super) fn random(&self, node: NodeId, bytes: &mut [u8]) {
        self.state.lock().nodes[node.0].dice.fill(bytes);
    }

    pub(super) fn spawn(&self, node: NodeId, future: BoxFuture<'static, ()>) {
        let mut state = self.state.lock();
        if state.nodes[node.0].running == Running::Crashed {
            // The lock is let go first: what the future holds may ask for it when it goes.
            drop(state);
            drop(future);
            return;
        }
        state.count += 1;
        let task = state.count;
        let alarm =
            Arc::new(Alarm { task, rung: AtomicBool::new(false), woken: Arc::clone(&self.woken) });
        alarm.wake_by_ref();
        state.tasks.insert(task, Task { node, future: Some(future), alarm });
    }

    /// Sets a timer, or a timer again with a new waker.
    pub(super) fn set_timer(
        &self,
        node: NodeId,
        at: Instant,
        old: Option<TimerId>,
        waker: Waker,
    ) -> TimerId {
        let mut state = self.state.lock();
        let timer = old.unwrap_or_else(|| {
            state.count += 1;
            (at, state.count)
        });
        state.timers.insert(timer, (node, waker));
        timer
    }

    pub(super) fn unset_timer(&self, timer: TimerId) {
        let removed = self.state.lock().timers.remove(&timer);
        drop(removed);
    }

    pub(super) fn pause(&self, node: NodeId) {
        let mut state = self.state.lock();
        if state.nodes[node.0].running == Running::Yes {
            state.nodes[node.0].running = Running::Paused;
            let ExecutorState { tasks, ready, nodes, .. } = &mut *state;
            let parked = &mut nodes[node.0].parked;
            let stays = |task: &TaskId| tasks.get(task).is_none_or(|found| found.node != node);
            parked.extend(ready.extract_if(.., |task| !stays(task)));
        }
    }

    pub(super) fn resume(&self, node: NodeId) {
        let mut state = self.state.lock();
        if state.nodes[node.0].running == Running::Paused {
            state.nodes[node.0].running = Running::Yes;
            let parked = std::mem::take(&mut state.nodes[node.0].parked);
            state.ready.extend(parked);
        }
    }

    pub(super) fn crash(&self, node: NodeId) {
        let mut state = self.state.lock();
        state.nodes[node.0].running = Running::Crashed;
        state.nodes[node.0].parked.clear();
        let dead: Vec<Task> =
            state.tasks.extract_if(.., |_, task| task.node == node).map(|(_, task)| task).collect();
        drop(state);
        // Only now: a task's drop may wake, spawn or look at the clock.
        drop(dead);
    }

    pub(super) fn is_crashed(&self, node: NodeId) -> bool {
        self.state.lock().nodes[node.0].running == Running::Crashed
    }

    /// How many tasks and timers a node has.
    pub(super) fn census(&self, node: NodeId) -> (usize, usize) {
        let state = self.state.lock();
        let tasks = state.tasks.values().filter(|task| task.node == node).count();
        let timers = state.timers.values().filter(|(of, _)| *of == node).count();
        (tasks, timers)
    }

    pub(super) fn clear(&self) {
        let nodes = self.state.lock().nodes.len();
        (0..nodes).for_each(|node| self.crash(NodeId(node)));
    }

    /// Polls one ready task, or else goes on to the next timer if it is due by `end`, or else to `end` itself.
    pub(super) fn turn(&self, end: Instant) -> Result<Progress, Stuck> {
        let woken = std::mem::take(&mut *self.woken.0.lock());
        let mut state = self.state.lock();
        state.sort(woken);
        if !state.ready.is_empty() {
            let chosen = state.choose()?;
            drop(state);
            if let Some(chosen) = chosen {
                self.poll(chosen);
            }
            return Ok(Progress::Polled);
        }
        let next = state.timers.first_key_value().map(|((at, _), _)| *at).filter(|at| *at <= end);
        let Some(at) = next else {
            if end != Instant::FAR {
                state.now = end;
                state.polls = 0;
            }
            return Ok(Progress::Done);
        };
        state.now = state.now.max(at);
        state.polls = 0;
        state.record(at.as_nanos());
        let due: Vec<Waker> = {
            let due = state.timers.extract_if(..=(at, u64::MAX), |_, _| true);
            due.map(|(_, (_, waker))| waker).collect()
        };
        drop(state);
        due.into_iter().for_each(Waker::wake);
        Ok(Progress::Advanced)
    }

    fn poll(&self, chosen: Chosen) {
        let Chosen { task, node, mut future, alarm } = chosen;
        alarm.rung.store(false, Ordering::Relaxed);
        let waker = Waker::from(alarm);
        let done = future.as_mut().poll(&mut Context::from_waker(&waker)) == Poll::Ready(());
        let mut state = self.state.lock();
        if done {
            state.tasks.remove(&task);
        } else if let Some(place) = state.tasks.get_mut(&task) {
            place.future = Some(future);
            return;
        }
        // Done, or its node crashed meanwhile; it is dropped with the lock released.
        debug_assert!(done || state.nodes[node.0].running == Running::Crashed);
        drop(state);
        drop(future);
    }
}

impl ExecutorState {
    fn record(&mut self, event: u64) {
        self.trace = mix(self.trace ^ event).wrapping_add(event);
    }

    /// Puts woken tasks where they wait for their turn.
    fn sort(&mut self, woken: Vec<TaskId>) {
        for task in woken {
            let Some(found) = self.tasks.get(&task) else { continue };
            let node = &mut self.nodes[found.node.0];
            match node.running {
                Running::Yes => self.ready.push(task),
                Running::Paused => node.parked.push(task),
                Running::Crashed => {}
            }
        }
    }

    /// Takes one of the ready tasks out; none if it has ended since.
    fn choose(&mut self) -> Result<Option<Chosen>, Stuck> {
        let place = self.dice.below(self.ready.len() as u64) as usize;
        let task = self.ready.swap_remove(place);
        let Some(found) = self.tasks.get_mut(&task) else { return Ok(None) };
        let (node, alarm) = (found.node, Arc::clone(&found.alarm));
        let future = found.future.take().expect("a task is polled by one turn at a time");
        self.polls += 1;
        if self.polls > POLLS_AT_ONCE {
            let at = self.now.since(Instant::default());
            return Err(Stuck::Busy { at, node, polls: self.polls });
        }
        self.record(task << 8 | node.0 as u64);
        Ok(Some(Chosen { task, node, future, alarm }))
    }
}

impl fmt::Debug for Executor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.lock();
        let now: Duration = state.now.since(Instant::default());
        f.debug_struct("Executor")
            .field("now", &now)
            .field("tasks", &state.tasks.len())
            .field("timers", &state.timers.len())
            .finish_non_exhaustive()
    }
}
