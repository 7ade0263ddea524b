//! rslock 0.7 as an actor; `tests/README.md` has the protocol. It tries again every 10 ms at most, and its release does
//! not tell whether there was anything to release.

use std::collections::BTreeMap;
use std::io::{Write, stdin, stdout};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rslock::{Lock, LockError, LockManager};
use serde_json::{Value, json};

const POLL: Duration = Duration::from_millis(10);

#[derive(Default)]
struct Actor {
    manager: Option<LockManager>,
    ttl: f64,
    guards: BTreeMap<u64, Arc<Lock>>,
    last: u64,
}

type Shared = Arc<Mutex<Actor>>;
type Result<T> = std::result::Result<T, (&'static str, String)>;

fn internal(error: impl ToString) -> (&'static str, String) {
    ("internal", error.to_string())
}

fn millis(time: f64) -> Duration {
    Duration::from_secs_f64(time / 1000.0)
}

async fn take(actor: &Shared, request: &Value, once: bool) -> Result<Value> {
    let (mut manager, ttl) = {
        let actor = actor.lock().unwrap();
        let ttl = request["options"]["ttl"].as_f64().unwrap_or(actor.ttl);
        (actor.manager.clone().ok_or_else(|| internal("not connected"))?, millis(ttl))
    };
    let wait = request["options"]["wait"].as_f64().map(millis);
    let tries = if once { Some(1) } else { wait.map(|wait| 2 * wait.div_duration_f64(POLL) as u32) };
    manager.set_retry(tries.unwrap_or(u32::MAX), POLL);
    let name = request["lock"].as_str().unwrap_or_default();
    let lock = match manager.lock(name.as_bytes(), ttl).await {
        Ok(lock) => lock,
        Err(LockError::Unavailable) if once => return Ok(Value::Null),
        Err(LockError::Unavailable) => return Err(("timeout", "the wait ended in vain".to_owned())),
        Err(error) => return Err(internal(error)),
    };
    let mut actor = actor.lock().unwrap();
    actor.last += 1;
    let guard = actor.last;
    actor.guards.insert(guard, Arc::new(lock));
    Ok(json!({ "guard": guard, "token": 0 }))
}

async fn serve(actor: &Shared, request: &Value) -> Result<Value> {
    let held = || {
        let guard = request["guard"].as_u64().unwrap_or_default();
        let lock = actor.lock().unwrap().guards.get(&guard).cloned();
        lock.ok_or_else(|| internal("there is no such guard"))
    };
    match request["op"].as_str().unwrap_or_default() {
        "ping" => Ok(json!({ "actor": "rslock", "pid": std::process::id() })),
        "connect" => {
            let url = request["url"].as_str().unwrap_or_default();
            let mut actor = actor.lock().unwrap();
            actor.manager = Some(LockManager::new(vec![url]));
            actor.ttl = request["options"]["ttl"].as_f64().unwrap_or_default();
            Ok(Value::Null)
        }
        "acquire" => take(actor, request, false).await,
        "try" => take(actor, request, true).await,
        "release" => {
            let lock = held()?;
            lock.lock_manager.unlock(&lock).await;
            Ok(json!("released"))
        }
        "extend" => {
            let (lock, ttl) = (held()?, millis(request["ttl"].as_f64().unwrap_or_default()));
            lock.lock_manager.extend(&lock, ttl).await.map_err(internal)?;
            Ok(Value::Null)
        }
        "crash" => std::process::exit(9),
        op => Err(internal(format!("this actor does not know `{op}`"))),
    }
}

async fn answer(actor: Shared, request: Value) {
    let id = &request["id"];
    let line = match serve(&actor, &request).await {
        Ok(value) => json!({ "id": id, "ok": value }),
        Err((code, message)) => {
            json!({ "id": id, "error": { "code": code, "message": message, "retryable": code == "timeout" } })
        }
    };
    writeln!(stdout(), "{line}").expect("the engine listens");
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.expect("a runtime");
    let actor = Shared::default();
    for line in stdin().lines().map_while(std::result::Result::ok) {
        let request: Value = serde_json::from_str(&line).expect("a request is JSON");
        if request["op"] == "connect" {
            runtime.block_on(answer(actor.clone(), request));
        } else {
            runtime.spawn(answer(actor.clone(), request));
        }
    }
    std::process::exit(0);
}
