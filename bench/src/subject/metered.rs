//! fencelock's pairs with a meter in front of the store: how many round trips they take.

use std::sync::Arc;

use ::fencelock::driver::redis::RedisStore;
use ::fencelock::options::Options;
use ::fencelock::runtime::TokioRuntime;
use ::fencelock::{Client, Released};
use ::fencelock_sim::{Count, Meter};
use serde_json::json;
use url::Url;

use super::course::{Course, ready};
use super::fencelock;

pub(super) async fn run(course: &Course) {
    let runtime = Arc::new(TokioRuntime::current().expect("inside a runtime"));
    let url = Url::parse(course.text("url")).expect("a URL");
    let store = RedisStore::connect(&url, &Options::default(), runtime).await;
    let count = Count::default();
    let store = Meter::new(store.expect("the store is there"), count.clone());
    let client = Client::builder().store(store).await.expect("a client");
    let lock = fencelock::lock(&client, fencelock::mode(course), course.text("key"));
    let pair = async || {
        let guard = lock.acquire().await.expect("an answer");
        assert_eq!(guard.release().await, Released::Released, "the lock was lost");
    };
    pair().await;
    ready();
    let before = count.batches();
    let pairs = course.number("pairs");
    for _ in 0..pairs {
        pair().await;
    }
    println!("{}", json!({ "round_trips": (count.batches() - before) as f64 / pairs as f64 }));
}
