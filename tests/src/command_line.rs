//! An actor over the command line: every guard is a `fencelock run` with a command under it that waits to be told to end.

mod run;
mod state;
mod words;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fencelock::Code;
use fencelock_peers::Lack;
use serde_json::{Value, json};
use tokio::process::Command;
use tokio::sync::mpsc::UnboundedReceiver;

use self::run::{Hold, Plan, Run};
use self::words::{Outcome, query};
use crate::ended;
use crate::protocol::{Answer, Call, End, Event, Message, Options, Refusal, Request};

/// The command that runs under a lock: prints the token, ends with its input, and prints `lost` if it is ended.
const SECTION: &str =
    r#"trap 'echo lost; exit 1' TERM; echo "$FENCELOCK_TOKEN"; read -r _; exit 0"#;

/// The exit code of `fencelock run` for a lock that was lost.
pub(crate) const LOST: i32 = 79;

/// The command line's own program, which lies beside the other programs of the workspace once it is built.
pub fn program(beside: &Path) -> Result<PathBuf, Lack> {
    let program = beside.with_file_name("fencelock");
    let how = "build it with `cargo test --profile quick --workspace --no-run --test program`";
    let lack = || Lack::Language(format!("{} is not there: {how}", program.display()));
    if program.exists() { Ok(program) } else { Err(lack()) }
}

/// The actor. Its clones are the same one.
#[derive(Clone)]
struct Actor {
    program: Arc<PathBuf>,
    send: Arc<dyn Fn(Message) + Send + Sync>,
    state: Arc<Mutex<State>>,
}

/// The runs, and the requests and guards they belong to.
#[derive(Default)]
struct State {
    /// Where to; nothing before `connect` and after `close`.
    url: Option<String>,
    /// Runs that wait for their lock, by the request.
    asked: BTreeMap<u64, Run>,
    /// Runs that have it.
    holds: BTreeMap<u64, Hold>,
    guards: u64,
}

/// Serves requests until there are no more; then gives everything back.
pub async fn serve(
    program: PathBuf,
    send: Arc<dyn Fn(Message) + Send + Sync>,
    mut requests: UnboundedReceiver<Request>,
) {
    let actor = Actor { program: Arc::new(program), send, state: Arc::default() };
    while let Some(Request { id, call }) = requests.recv().await {
        match call {
            Call::Crash => std::process::exit(9),
            // This very thread: nothing else of the actor goes on meanwhile.
            Call::Busy { time } => {
                std::thread::sleep(millis(time));
                actor.answer(id, End::Ok(Value::Null));
            }
            call => actor.request(id, call).await,
        }
    }
    actor.give_all_back().await;
}

impl Actor {
    fn answer(&self, id: u64, end: End) {
        (self.send)(Message::Answer(Answer { id, end }));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn request(&self, id: u64, call: Call) {
        match call {
            Call::Ping => {
                let pid = std::process::id();
                self.answer(id, End::Ok(json!({"actor": "command line", "pid": pid})));
            }
            Call::Connect { url, options } => self.connect(id, &url, &options).await,
            call => match self.connected(id, call).await {
                Ok(Some(value)) => self.answer(id, End::Ok(value)),
                Ok(None) => {}
                Err(refusal) => self.answer(id, End::Error(refusal)),
            },
        }
    }

    /// Connects in passing, as every command does: what is wrong with a URL shows when it is used.
    async fn connect(&self, id: u64, url: &str, options: &Options) {
        let url = query(url, options);
        let end = match self.look(&url, ["ls", "nothing begins so"].map(str::to_owned)).await {
            Ok(_) => {
                self.give_all_back().await;
                self.state().url = Some(url);
                End::Ok(Value::Null)
            }
            Err(refusal) => End::Error(refusal),
        };
        self.answer(id, end);
    }

    /// Answers at once, or later: then it is `None`.
    async fn connected(&self, id: u64, call: Call) -> Result<Option<Value>, Refusal> {
        let url = self.state().url.clone().ok_or_else(not_connected)?;
        let value = match call {
            Call::Acquire { lock, options, .. } => {
                self.ask(id, Plan::of(&url, &lock, &options, false, SECTION));
                return Ok(None);
            }
            Call::Try { lock, options, .. } => {
                self.ask(id, Plan::of(&url, &lock, &options, true, SECTION));
                return Ok(None);
            }
            Call::With { lock, options, work } => {
                let body = format!(r#"echo "$FENCELOCK_TOKEN"; exec sleep {}"#, work / 1000.0);
                self.body(id, Plan::of(&url, &lock, &options, false, &body));
                return Ok(None);
            }
            Call::Abort { target } => {
                if let Some(run) = self.state().asked.get(&target) {
                    run.terminate();
                }
                Value::Null
            }
            Call::Release { guard } => {
                let hold = self.take(guard)?;
                let actor = self.clone();
                tokio::spawn(async move { actor.answer(id, hold.give_back().await.released()) });
                return Ok(None);
            }
            Call::Drop { guard } => {
                drop(self.take(guard)?);
                Value::Null
            }
            Call::IsHeld { guard } => {
                json!(self.state().holds.get(&guard).is_some_and(Hold::is_held))
            }
            Call::Token { guard } => {
                json!(self.state().holds.get(&guard).ok_or_else(not_held)?.token)
            }
            Call::Lost { guard } => {
                let told = self.state().holds.get(&guard).ok_or_else(not_held)?.told();
                let actor = self.clone();
                tokio::spawn(async move {
                    told.await;
                    if actor.state().holds.contains_key(&guard) {
                        (actor.send)(Message::Event(Event::Lost { guard }));
                    }
                });
                Value::Null
            }
            Call::Inspect { lock, options } => {
                self.show(id, query(&url, &options), ["inspect", &lock], state::shown);
                return Ok(None);
            }
            Call::Names { prefix } => {
                self.show(id, url, ["ls", &prefix], state::names);
                return Ok(None);
            }
            Call::Load => {
                let state = self.state();
                let (asked, guards) = (state.asked.len(), state.holds.len());
                json!({"running": asked, "done": 0, "guards": guards, "entries": 0, "locks": 0})
            }
            Call::Close => {
                self.give_all_back().await;
                Value::Null
            }
            other => {
                let message = format!("the command line has no word for {other:?}");
                return Err(refusal(Code::Unsupported, &message));
            }
        };
        Ok(Some(value))
    }

    /// Waits for a lock, in a run of its own.
    fn ask(&self, id: u64, plan: Plan) {
        let (run, granted) = plan.start(&self.program);
        self.state().asked.insert(id, run);
        let actor = self.clone();
        tokio::spawn(async move {
            let granted = granted.await;
            let end = {
                let mut state = actor.state();
                // Else it was closed meanwhile, and answered so.
                let Some(run) = state.asked.remove(&id) else { return };
                match granted {
                    Ok(hold) => {
                        state.guards += 1;
                        let (guard, token) = (state.guards, hold.token);
                        state.holds.insert(guard, hold);
                        End::Ok(json!({"guard": guard, "token": token}))
                    }
                    Err(outcome) => outcome.refused(run.once),
                }
            };
            actor.answer(id, end);
        });
    }

    /// Runs a body that ends by itself.
    fn body(&self, id: u64, plan: Plan) {
        let (run, granted) = plan.start(&self.program);
        self.state().asked.insert(id, run);
        let actor = self.clone();
        tokio::spawn(async move {
            let end = match granted.await {
                Ok(hold) => {
                    let token = hold.token;
                    hold.end().await.body(token)
                }
                Err(outcome) => outcome.refused(false),
            };
            if actor.state().asked.remove(&id).is_some() {
                actor.answer(id, end);
            }
        });
    }

    fn take(&self, guard: u64) -> Result<Hold, Refusal> {
        self.state().holds.remove(&guard).ok_or_else(not_held)
    }

    /// Answers what a command that looks says.
    fn show(&self, id: u64, url: String, words: [&str; 2], shape: fn(&Value) -> Value) {
        let (actor, words) = (self.clone(), words.map(str::to_owned));
        tokio::spawn(async move {
            let seen = actor.look(&url, words).await;
            actor.answer(id, seen.map_or_else(End::Error, |seen| End::Ok(shape(&seen))));
        });
    }

    async fn look(&self, url: &str, words: [String; 2]) -> Result<Value, Refusal> {
        let mut command = Command::new(&*self.program);
        let command = command.args(words).args(["-o", "json"]).env("FENCELOCK_URL", url);
        let ended = tokio::time::timeout(ended::WITHIN, command.kill_on_drop(true).output()).await;
        let ended = ended.expect("the command line ends").expect("the command line starts");
        let outcome = Outcome::of(&ended);
        match outcome.code {
            Some(0) => Ok(serde_json::from_slice(&ended.stdout).expect("`-o json` is JSON")),
            _ => Err(outcome.refusal()),
        }
    }

    /// Ends whatever runs, and waits until it has ended.
    async fn give_all_back(&self) {
        let (asked, holds) = {
            let mut state = self.state();
            state.url = None;
            (std::mem::take(&mut state.asked), std::mem::take(&mut state.holds))
        };
        for (id, run) in asked {
            run.terminate();
            let gone = refusal(Code::Closed, "this actor's client was given up");
            self.answer(id, End::Error(gone));
            run.end().await;
        }
        for hold in holds.into_values() {
            hold.give_back().await;
        }
    }
}

fn millis(time: f64) -> Duration {
    Duration::try_from_secs_f64(time / 1000.0).unwrap_or_default()
}

fn refusal(code: Code, message: &str) -> Refusal {
    Refusal { code, message: message.to_owned(), retryable: false, fields: BTreeMap::new() }
}

fn not_connected() -> Refusal {
    refusal(Code::Closed, "this actor is not connected; send `connect` first")
}

fn not_held() -> Refusal {
    refusal(Code::NotHeld, "this actor has no such guard")
}
