//! An actor's standard input and output: JSON lines.

use std::collections::BTreeMap;
use std::io::{BufRead, Write};

use fencelock::Code;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::protocol::{Answer, End, Message, Refusal, Request};

/// The requests, as they come.
pub fn requests() -> UnboundedReceiver<Request> {
    let (sender, requests) = unbounded_channel();
    std::thread::spawn(move || read(&sender));
    requests
}

fn read(sender: &UnboundedSender<Request>) {
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { return };
        match serde_json::from_str(&line) {
            Ok(request) => drop(sender.send(request)),
            Err(error) => {
                let message = format!("this line is no request: {error}");
                let fields = BTreeMap::new();
                let end =
                    End::Error(Refusal { code: Code::Invalid, message, retryable: false, fields });
                write(&Message::Answer(Answer { id: 0, end }));
            }
        }
    }
}

/// Says something.
pub fn write(message: &Message) {
    let line = serde_json::to_string(message).expect("messages are JSON");
    let mut out = std::io::stdout().lock();
    // Nobody reads any more: then the end of the input is near, too.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}
