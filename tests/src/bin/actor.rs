//! The Rust actor as a program: JSON lines in, JSON lines out. See `tests/README.md`.

use std::sync::Arc;

use fencelock::runtime::TokioRuntime;
use fencelock_tests::actor::{Host, serve};
use fencelock_tests::lines::{requests, write};

#[tokio::main(worker_threads = 2)]
async fn main() {
    let runtime = TokioRuntime::current().expect("this is a tokio runtime");
    let host = Host {
        runtime: Arc::new(runtime),
        send: Arc::new(|message| write(&message)),
        crash: Box::new(|| std::process::exit(9)),
    };
    serve(host, requests()).await;
}
