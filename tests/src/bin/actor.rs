//! The Rust actor as a program: JSON lines in, JSON lines out. See `tests/README.md`.

use std::io::{BufRead, Write};
use std::sync::Arc;

use fencelock::Code;
use fencelock::runtime::TokioRuntime;
use fencelock_tests::actor::{Host, serve};
use fencelock_tests::protocol::{Answer, End, Message, Refusal, Request};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

#[tokio::main(worker_threads = 2)]
async fn main() {
    let (sender, requests) = unbounded_channel();
    std::thread::spawn(move || read(&sender));
    let runtime = TokioRuntime::current().expect("this is a tokio runtime");
    let host = Host {
        runtime: Arc::new(runtime),
        send: Arc::new(|message| write(&message)),
        crash: Box::new(|| std::process::exit(9)),
    };
    serve(host, requests).await;
}

fn read(sender: &UnboundedSender<Request>) {
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { return };
        match serde_json::from_str(&line) {
            Ok(request) => drop(sender.send(request)),
            Err(error) => {
                let message = format!("this line is no request: {error}");
                let fields = std::collections::BTreeMap::new();
                let end =
                    End::Error(Refusal { code: Code::Invalid, message, retryable: false, fields });
                write(&Message::Answer(Answer { id: 0, end }));
            }
        }
    }
}

fn write(message: &Message) {
    let line = serde_json::to_string(message).expect("messages are JSON");
    let mut out = std::io::stdout().lock();
    // Nobody reads any more: then the end of the input is near, too.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}
