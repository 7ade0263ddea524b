//! The output of `fencelock inspect -o json` and `ls -o json`, in the words of the protocol.

use serde_json::{Map, Value, json};

/// The fields that describe a holder or a waiter, by name.
const WHO: [&str; 5] = ["host", "pid", "app", "language", "info"];

/// One lock.
pub(super) fn shown(lock: &Value) -> Value {
    let all = |name: &str, one: fn(&Value) -> Value| -> Vec<Value> {
        lock[name].as_array().into_iter().flatten().map(one).collect()
    };
    let holders = all("holders", |holder| {
        json!({
            "mode": holder["mode"],
            "token": holder["token"],
            "left": holder["left_ms"],
            "held_for": holder["held_ms"],
            "info": who(holder),
        })
    });
    let waiters = all("waiters", |waiter| {
        json!({
            "mode": waiter["mode"],
            "info": who(waiter),
            "waiting_for": waiter["waiting_ms"],
        })
    });
    json!({
        "kind": lock["kind"],
        "holder": holders.first(),
        "holders": holders,
        "last": lock["last_token"],
        "waiters": waiters,
    })
}

fn who(one: &Value) -> Map<String, Value> {
    WHO.into_iter().map(|name| (name.to_owned(), one[name].clone())).collect()
}

/// The names of all locks.
pub(super) fn names(locks: &Value) -> Value {
    locks.as_array().into_iter().flatten().map(|lock| lock["name"].clone()).collect()
}
