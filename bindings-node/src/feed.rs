//! The events of one client, kept until JavaScript asks for them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use fencelock::Event;
use serde_json::{Value, json};
use tokio::sync::Notify;

/// See the module. While nobody listens, nothing is kept.
#[derive(Default)]
pub(crate) struct Feed {
    listening: AtomicBool,
    heard: Mutex<Vec<Event>>,
    news: Notify,
}

impl Feed {
    /// Something happened to a lock of the client.
    pub(crate) fn hear(&self, event: &Event) {
        if self.listening.load(Ordering::Acquire) {
            self.heard().push(event.clone());
            self.news.notify_one();
        }
    }

    /// Somebody listens from now on, or nobody does.
    pub(crate) fn listen(&self, listening: bool) {
        self.listening.store(listening, Ordering::Release);
        self.news.notify_one();
    }

    /// What happened since the last time, once there is something; nothing, when nobody listens any more.
    pub(crate) async fn news(&self) -> Value {
        loop {
            let heard = std::mem::take(&mut *self.heard());
            if !heard.is_empty() || !self.listening.load(Ordering::Acquire) {
                return json!(heard);
            }
            self.news.notified().await;
        }
    }

    fn heard(&self) -> std::sync::MutexGuard<'_, Vec<Event>> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
