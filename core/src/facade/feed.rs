//! The events of one client, kept until its host asks for them.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use crate::event::Event;
use crate::runtime::sync::Mutex;

/// Events of one client for a host that asks for them when it has the time, because nobody may be called where they happen.
/// While nobody listens, no lock's events are kept.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// use fencelock::{Client, facade::Feed};
/// use std::sync::Arc;
/// let feed = Arc::new(Feed::default());
/// let events = feed.clone();
/// let client = Client::builder().on_event(move |event| events.push(event)).connect("memory:feed").await?;
/// feed.listen(true);
/// let guard = client.lock("orders:42").acquire().await?;
/// assert_eq!(feed.news().await[0]["kind"], "granted");
/// # guard.release().await.check()?;
/// # Ok::<(), fencelock::Error>(()) }).unwrap();
/// ```
#[derive(Debug, Default)]
pub struct Feed {
    listening: AtomicBool,
    events: Mutex<Vec<Event>>,
    news: event_listener::Event,
}

impl Feed {
    /// Something happened to a lock of the client. What concerns the store itself, with an empty name, is kept in any case: it
    /// comes while the client connects, before anybody can listen.
    pub fn push(&self, event: &Event) {
        if event.name.is_empty() || self.listening.load(Ordering::Acquire) {
            self.events.lock().push(event.clone());
            self.news.notify(usize::MAX);
        }
    }

    /// Somebody listens from now on, or nobody does.
    pub fn listen(&self, listening: bool) {
        self.listening.store(listening, Ordering::Release);
        self.news.notify(usize::MAX);
    }

    /// The events since the last call, as a list of what [`for_host`] makes of them, once there is one; an empty list when nobody listens any more.
    pub async fn news(&self) -> Value {
        loop {
            let news = self.news.listen();
            let events = std::mem::take(&mut *self.events.lock());
            if !events.is_empty() || !self.listening.load(Ordering::Acquire) {
                return events.iter().map(for_host).collect();
            }
            news.await;
        }
    }
}

/// An event for a host: its fields, the line in a log, and whether that is a warning.
pub fn for_host(event: &Event) -> Value {
    let mut fields = json!(event);
    fields["text"] = event.to_string().into();
    fields["warning"] = event.kind.is_warning().into();
    fields
}
