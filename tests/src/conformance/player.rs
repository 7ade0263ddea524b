//! An actor as the engine sees it: requests out, answers and events in, wherever it runs.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fencelock::port::{BoxFuture, Instant, RuntimeHandle};
use fencelock_peers::Program;
use fencelock_sim::SimNode;
use futures_util::FutureExt;
use futures_util::future::Shared;
use tokio::sync::{Notify, mpsc, oneshot};

use crate::actor::{Host, serve};
use crate::freeze::{freeze, resume};
use crate::protocol::{Call, End, Event, Message, Request};

/// A password in the URLs of cases. Nothing an actor says may contain it.
pub(super) const CANARY: &str = "s3cr3t-canary";

/// Where an actor runs.
pub enum ActorKind<'a> {
    /// In this process, on its runtime.
    Here(RuntimeHandle),
    /// In this process, on a machine of its own in virtual time.
    Node(Arc<SimNode>),
    /// As a program.
    Program(&'a Program),
}

/// An answer and when it came.
#[derive(Clone, Debug)]
pub struct Ended {
    /// The answer.
    pub end: End,
    /// When it came, on the engine's clock.
    pub at: Instant,
}

/// A request under way; `None` if the actor went before it answered.
#[derive(Clone)]
pub struct Reply {
    /// The request's.
    pub id: u64,
    /// When it was sent.
    pub asked: Instant,
    /// The answer, once it is there.
    pub end: Shared<BoxFuture<'static, Option<Ended>>>,
}

/// An actor.
pub struct Player {
    numbers: AtomicU64,
    inbox: Arc<Inbox>,
    body: Body,
    gone: AtomicBool,
    /// Whether it answered `close`, or was never connected.
    pub(super) closed: AtomicBool,
}

enum Body {
    Here(Input),
    Node(Input, Arc<SimNode>),
    Program(Mutex<Process>),
}

/// Where requests go, until there are no more.
type Input = Mutex<Option<mpsc::UnboundedSender<Request>>>;

struct Process {
    child: Child,
    input: Option<ChildStdin>,
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The messages from an actor.
struct Inbox {
    clock: RuntimeHandle,
    state: Mutex<State>,
    news: Notify,
}

#[derive(Default)]
struct State {
    calls: BTreeMap<u64, oneshot::Sender<Ended>>,
    lost: BTreeMap<u64, Vec<Instant>>,
    complaint: Option<String>,
    hung_up: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Inbox {
    fn line(&self, line: &str) {
        let at = self.clock.now();
        let mut state = lock(&self.state);
        if line.contains(CANARY) {
            state.complaint = Some(format!("an actor told the password: {line}"));
        }
        match serde_json::from_str(line) {
            Ok(Message::Answer(answer)) => match state.calls.remove(&answer.id) {
                Some(call) => drop(call.send(Ended { end: answer.end, at })),
                // What was still on its way when the actor went is for nobody.
                None if state.hung_up => {}
                None => state.complaint = Some(format!("nobody asked for this answer: {line}")),
            },
            Ok(Message::Event(Event::Lost { guard })) => {
                state.lost.entry(guard).or_default().push(at);
            }
            Err(error) => {
                state.complaint =
                    Some(format!("an actor said what is no message: {line}: {error}"));
            }
        }
        drop(state);
        self.news.notify_waiters();
    }

    fn message(&self, message: &Message) {
        self.line(&serde_json::to_string(message).expect("messages are JSON"));
    }

    fn hang_up(&self) {
        let mut state = lock(&self.state);
        state.hung_up = true;
        state.calls.clear();
        drop(state);
        self.news.notify_waiters();
    }
}

impl Player {
    /// Starts an actor.
    pub fn launch(kind: &ActorKind<'_>, clock: RuntimeHandle) -> Self {
        let inbox = Arc::new(Inbox { clock, state: Mutex::default(), news: Notify::new() });
        let heard = inbox.clone();
        let host = |runtime: RuntimeHandle, crash: Box<dyn Fn() + Send + Sync>| {
            let (sender, requests) = mpsc::unbounded_channel();
            let send = Arc::new(move |message| heard.message(&message));
            let spawn = runtime.clone();
            spawn.spawn(Box::pin(serve(Host { runtime, send, crash }, requests)));
            Mutex::new(Some(sender))
        };
        let body = match kind {
            ActorKind::Here(runtime) => Body::Here(host(runtime.clone(), Box::new(|| {}))),
            ActorKind::Node(node) => {
                let crashing = node.clone();
                let sender = host(node.clone(), Box::new(move || crashing.crash()));
                Body::Node(sender, node.clone())
            }
            ActorKind::Program(program) => Body::Program(Mutex::new(start(program, &inbox))),
        };
        let (gone, closed) = (AtomicBool::new(false), AtomicBool::new(true));
        Self { numbers: AtomicU64::new(0), inbox, body, gone, closed }
    }

    /// Sends a request.
    pub fn ask(&self, call: Call) -> Reply {
        let id = self.numbers.fetch_add(1, Ordering::Relaxed) + 1;
        let (sender, receiver) = oneshot::channel();
        let asked = self.inbox.clock.now();
        lock(&self.inbox.state).calls.insert(id, sender);
        let sent = match &self.body {
            Body::Here(requests) | Body::Node(requests, _) => {
                let requests = lock(requests);
                requests
                    .as_ref()
                    .is_some_and(|requests| requests.send(Request { id, call }).is_ok())
            }
            Body::Program(program) => {
                let line = serde_json::to_string(&Request { id, call }).expect("requests are JSON");
                let input = &mut lock(program).input;
                input.as_mut().is_some_and(|input| writeln!(input, "{line}").is_ok())
            }
        };
        if !sent || self.is_gone() {
            lock(&self.inbox.state).calls.remove(&id);
        }
        let end: BoxFuture<'static, _> = Box::pin(receiver.map(Result::ok));
        Reply { id, asked, end: end.shared() }
    }

    /// When the guard was told to be lost.
    pub fn lost(&self, guard: u64) -> Vec<Instant> {
        lock(&self.inbox.state).lost.get(&guard).cloned().unwrap_or_default()
    }

    /// Completes when the actor says something.
    pub fn news(&self) -> impl Future<Output = ()> {
        self.inbox.news.notified()
    }

    /// The message that the actor should not have sent, if there was one.
    pub fn complaint(&self) -> Option<String> {
        lock(&self.inbox.state).complaint.clone()
    }

    /// Notes that it left in good order.
    pub fn left(&self) {
        self.gone.store(true, Ordering::Release);
        self.inbox.hang_up();
    }

    /// Whether it was killed, has crashed or left.
    pub fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Acquire)
    }

    /// Ends it as `kill -9` does.
    pub fn kill(&self) {
        self.gone.store(true, Ordering::Release);
        match &self.body {
            Body::Here(_) => unreachable!("no cell plays a case that kills in one process"),
            Body::Node(_, node) => node.crash(),
            Body::Program(program) => {
                let program = &mut lock(program);
                let _ = program.child.kill();
                let _ = program.child.wait();
            }
        }
        self.inbox.hang_up();
    }

    /// Has it end itself.
    pub fn crash(&self) {
        let _ = self.ask(Call::Crash);
        self.gone.store(true, Ordering::Release);
        if let Body::Program(program) = &self.body {
            let _ = lock(program).child.wait();
        }
        self.inbox.hang_up();
    }

    /// Freezes it, or lets it go on.
    pub fn freeze(&self, frozen: bool) {
        match &self.body {
            Body::Here(_) => unreachable!("no cell plays a case that stops in one process"),
            Body::Node(_, node) if frozen => node.pause(),
            Body::Node(_, node) => node.resume(),
            Body::Program(program) => {
                let child = &lock(program).child;
                if frozen { freeze(child) } else { resume(child) }
            }
        }
    }

    /// Ends the input; true when there is nothing more to wait for, an error if it did not go in good order.
    pub fn has_left(&self) -> Result<bool, String> {
        if self.is_gone() {
            return Ok(true);
        }
        let program = match &self.body {
            Body::Here(input) | Body::Node(input, _) => {
                *lock(input) = None;
                return Ok(true);
            }
            Body::Program(program) => &mut lock(program),
        };
        program.input = None;
        match program.child.try_wait() {
            Ok(None) => Ok(false),
            Ok(Some(status)) if status.success() => Ok(true),
            Ok(Some(status)) => Err(format!("an actor left with {status}")),
            Err(error) => Err(format!("an actor cannot be waited for: {error}")),
        }
    }
}

fn start(program: &Program, inbox: &Arc<Inbox>) -> Process {
    let path = &program.path;
    let mut child = program
        .command()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("the actor {} cannot be run: {error}", path.display()));
    let lines = BufReader::new(child.stdout.take().expect("its output is a pipe")).lines();
    let heard = inbox.clone();
    std::thread::spawn(move || {
        lines.map_while(Result::ok).for_each(|line| heard.line(&line));
        heard.hang_up();
    });
    let input = child.stdin.take();
    Process { child, input }
}
