//! Events of locks go to `tracing`, under the target `fencelock`.
#![allow(missing_docs)]

use std::fmt::{Debug, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fencelock::Client;
use fencelock::driver::memory::Memory;
use fencelock_sim::Sim;
use fencelock_sim::{Chaos, Fault};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Keeps a line for each event.
#[derive(Clone, Default)]
struct Log {
    lines: Arc<Mutex<Vec<(Level, String)>>>,
    spans: Arc<AtomicU64>,
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "fencelock"
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(self.spans.fetch_add(1, Ordering::Relaxed) + 1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line::default();
        event.record(&mut line);
        self.lines.lock().unwrap().push((*event.metadata().level(), line.0));
    }

    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[derive(Default)]
struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, "{field}={value:?} ").expect("a line takes all");
    }
}

#[test]
fn events_and_troubles_are_logged() {
    let log = Log::default();
    let token = tracing::subscriber::with_default(log.clone(), || {
        let sim = Sim::new(7);
        let node = sim.node(0);
        let fault = Arc::new(Mutex::new(Fault::None));
        let now = fault.clone();
        let store = Memory::new().store(node.clone());
        let store = Chaos::new(store, node.clone(), move || *now.lock().unwrap());
        let work = async {
            let client = Client::builder().runtime(node).store(store).await.unwrap();
            let guard = client.lock("x").acquire().await.unwrap();
            let token = guard.token();
            guard.release().await.check().unwrap();
            *fault.lock().unwrap() = Fault::Refused;
            let waited = client.lock("x").acquire_within(Duration::from_secs(1)).await;
            assert!(waited.is_err());
            *fault.lock().unwrap() = Fault::None;
            let guard = client.lock("y").ttl(Duration::from_secs(1)).acquire().await.unwrap();
            *fault.lock().unwrap() = Fault::Refused;
            guard.lost().await;
            token
        };
        sim.block_on(work).expect("the world goes on")
    });
    let lines = log.lines.lock().unwrap();
    let told =
        |level, words: &str| lines.iter().any(|(of, line)| *of == level && line.contains(words));
    let named = format!("name=\"x\" token={token}");
    for kind in ["granted", "released"] {
        assert!(
            told(Level::DEBUG, &format!("kind=\"{kind}\" {named}")),
            "{kind} {named}: {lines:?}"
        );
    }
    assert!(told(Level::WARN, "kind=\"lost\" name=\"y\" token="), "{lines:?}");
    assert!(told(Level::WARN, "kind=\"trouble\" name=\"x\" reason=\"unavailable: "), "{lines:?}");
}
