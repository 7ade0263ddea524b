//! The events of one client, kept until its host asks for them.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use crate::event::Event;
use crate::runtime::sync::Mutex;

/// See the module. While nobody listens, nothing is kept.
#[derive(Default)]
pub(super) struct Feed {
    listening: AtomicBool,
    heard: Mutex<Vec<Event>>,
    news: event_listener::Event,
}

impl Feed {
    /// Something happened to a lock of the client.
    pub(super) fn hear(&self, event: &Event) {
        if self.listening.load(Ordering::Acquire) {
            self.heard.lock().push(event.clone());
            self.news.notify(usize::MAX);
        }
    }

    /// Somebody listens from now on, or nobody does.
    pub(super) fn listen(&self, listening: bool) {
        self.listening.store(listening, Ordering::Release);
        self.news.notify(usize::MAX);
    }

    /// What happened since the last time, once there is something; nothing, when nobody listens any more.
    pub(super) async fn news(&self) -> Value {
        loop {
            let news = self.news.listen();
            let heard = std::mem::take(&mut *self.heard.lock());
            if !heard.is_empty() || !self.listening.load(Ordering::Acquire) {
                return json!(heard);
            }
            news.await;
        }
    }
}
