//! The stream of watches: opened when somebody first waits, kept from then on, made anew by whoever watches after it was lost.
//!
//! A watch begins with what comes after it was made, never with a revision of the past: those wait for the server's next round
//! through them, 100 ms and more. So the keys are read once their watches are there, and a compaction takes nothing from them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use event_listener::Event as News;
use futures_channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded};
use futures_util::future::{Either, select};

use super::fault::{Next, judge, unanswered};
use super::link::Link;
use super::link::Live;
use super::message::{CancelWatch, CreateWatch, Event, WatchAnswer, WatchRequest};
use crate::error::{Code, Error, Result};
use crate::port::{LockKey, QueueNotice, QueueSink, Rank, SessionId, Standing};
use crate::runtime::sync::Mutex;

/// How long a watch may take to be there.
const PATIENCE: Duration = Duration::from_millis(900);

/// The sessions of a client, and where each is told what it watches.
pub(super) type Sessions = Mutex<BTreeMap<SessionId, QueueSink>>;

/// The stream of one client, and what is watched on it.
pub(super) struct Watches {
    link: Arc<Link>,
    sessions: Arc<Sessions>,
    state: Mutex<Streams>,
    /// A watch is there, or the stream is lost.
    news: News,
}

#[derive(Default)]
struct Streams {
    stream: Option<Stream>,
    /// The number of the newest stream.
    number: u64,
    /// Why the last stream was lost.
    lost: Option<Error>,
}

struct Stream {
    live: Arc<Live>,
    requests: UnboundedSender<WatchRequest>,
    /// The keys whose watches are not there yet, in the order they were asked for: so they are answered.
    asked: VecDeque<String>,
    keys: BTreeMap<String, Watched>,
    ids: BTreeMap<i64, String>,
}

/// A key that is watched.
struct Watched {
    subject: Subject,
    /// The server's number of the watch; `None`: it is not there yet.
    id: Option<i64>,
    sessions: BTreeSet<SessionId>,
}

/// The subject of a key.
enum Subject {
    /// An entry of a lock.
    Entry { lock: LockKey, rank: Rank },
    /// A session, which ends with its key.
    Session,
}

type Notices = Vec<(SessionId, QueueNotice)>;

impl Watches {
    pub(super) fn new(link: Arc<Link>, sessions: Arc<Sessions>) -> Arc<Self> {
        let (state, news) = Default::default();
        Arc::new(Self { link, sessions, state, news })
    }

    /// Completes when these entries are watched for a session: their ends are noticed from then on.
    pub(super) async fn begin(
        self: &Arc<Self>,
        of: SessionId,
        lock: &LockKey,
        known: &[Standing],
    ) -> Result<()> {
        let number = self.open().await?;
        let mut over = pin!(self.link.runtime.sleep(PATIENCE));
        loop {
            // Before the look, so that no news is missed.
            let news = self.news.listen();
            {
                let mut state = self.state.lock();
                let present = state.number == number;
                let Some(stream) = state.stream.as_mut().filter(|_| present) else {
                    return Err(state.lost.clone().unwrap_or_else(Error::closed));
                };
                if known.iter().all(|standing| stream.add_entry(of, lock, standing)) {
                    return Ok(());
                }
            }
            if let Either::Right(_) = select(news, over.as_mut()).await {
                let live = self.state.lock().stream.as_ref().map(|stream| stream.live.clone());
                let Some(live) = live else { continue };
                self.link.leave(&live, Next::Member);
                return Err(unanswered(&live.host, "a watch took too long"));
            }
        }
    }

    /// Reports the end of a session at once, as soon as the server has made the watch of its key. Without a stream nothing is watched.
    pub(super) async fn follow_session(self: &Arc<Self>, of: SessionId, key: String) {
        if self.open().await.is_ok()
            && let Some(stream) = &mut self.state.lock().stream
            && self.sessions.lock().contains_key(&of)
        {
            stream.add(of, key, Subject::Session);
        }
    }

    /// The number of the stream; one is opened if there is none.
    async fn open(self: &Arc<Self>) -> Result<u64> {
        if let Streams { stream: Some(_), number, .. } = *self.state.lock() {
            return Ok(number);
        }
        let live = self.link.live().await?;
        let mut state = self.state.lock();
        if state.stream.is_none() {
            let (requests, receiver) = unbounded();
            let (asked, keys, ids) = Default::default();
            state.number += 1;
            state.stream = Some(Stream { live: live.clone(), requests, asked, keys, ids });
            let following = follow(Arc::downgrade(self), live, state.number, receiver);
            self.link.runtime.spawn(Box::pin(following));
        }
        Ok(state.number)
    }

    /// This entry is not watched for this session any more.
    pub(super) fn forget(&self, of: SessionId, rank: &Rank) {
        if let Some(stream) = &mut self.state.lock().stream {
            stream.forget(of, rank.name());
        }
    }

    /// A session is over.
    pub(super) fn forget_all(&self, of: SessionId) {
        if let Some(stream) = &mut self.state.lock().stream {
            let keys: Vec<_> = stream.keys.keys().cloned().collect();
            for key in keys {
                stream.forget(of, &key);
            }
        }
    }

    fn notify(&self, notices: Notices) {
        for (session, notice) in notices {
            let sink = self.sessions.lock().get(&session).cloned();
            if let Some(sink) = sink {
                sink(notice);
            }
        }
    }

    /// The server has sent something over the stream of this number.
    fn received(&self, number: u64, answer: WatchAnswer) -> Result<(), Error> {
        let mut state = self.state.lock();
        let present = state.number == number;
        let Some(stream) = state.stream.as_mut().filter(|_| present) else { return Ok(()) };
        let notices = stream.received(answer)?;
        drop(state);
        self.news.notify(usize::MAX);
        self.notify(notices);
        Ok(())
    }

    /// The stream of this number is over.
    fn lose(&self, number: u64, why: Error) {
        let mut state = self.state.lock();
        if state.number != number {
            return;
        }
        let Some(stream) = state.stream.take() else { return };
        state.lost = Some(why);
        drop(state);
        let sessions: BTreeSet<_> =
            stream.keys.into_values().flat_map(|watched| watched.sessions).collect();
        self.news.notify(usize::MAX);
        self.notify(sessions.into_iter().map(|session| (session, QueueNotice::Gap)).collect());
    }
}

impl Stream {
    /// Watches an entry for a session. Answers whether the watch is there.
    fn add_entry(&mut self, of: SessionId, lock: &LockKey, standing: &Standing) -> bool {
        let rank = &standing.rank;
        let entry = Subject::Entry { lock: lock.clone(), rank: rank.clone() };
        self.add(of, rank.name().to_owned(), entry)
    }

    fn add(&mut self, of: SessionId, key: String, subject: Subject) -> bool {
        if let Some(watched) = self.keys.get_mut(&key) {
            watched.sessions.insert(of);
            return watched.id.is_some();
        }
        let watched = Watched { subject, id: None, sessions: BTreeSet::from([of]) };
        self.asked.push_back(key.clone());
        self.send(CreateWatch { key: key.clone().into() });
        self.keys.insert(key, watched);
        false
    }

    fn send(&self, request: impl Into<WatchRequest>) {
        // A stream that is over is told by its own task.
        let _ = self.requests.unbounded_send(request.into());
    }

    fn forget(&mut self, of: SessionId, key: &str) {
        let Some(watched) = self.keys.get_mut(key) else { return };
        watched.sessions.remove(&of);
        if watched.sessions.is_empty() {
            self.remove(key);
        }
    }

    /// Ends a watch. One that is not there yet is ended when it is.
    fn remove(&mut self, key: &str) -> Option<Watched> {
        let watched = self.keys.remove(key)?;
        if let Some(id) = watched.id {
            self.ids.remove(&id);
            self.send(CancelWatch { id });
        }
        Some(watched)
    }

    fn received(&mut self, answer: WatchAnswer) -> Result<Notices> {
        let WatchAnswer { id, created, canceled, events } = answer;
        if created {
            let key = self.asked.pop_front().unwrap_or_default();
            if canceled {
                return Err(refused());
            }
            match self.keys.get_mut(&key).filter(|watched| watched.id.is_none()) {
                Some(watched) => {
                    watched.id = Some(id);
                    self.ids.insert(id, key);
                }
                None => self.send(CancelWatch { id }),
            }
            return Ok(Notices::new());
        }
        let Some(key) = self.ids.get(&id).cloned() else { return Ok(Notices::new()) };
        if canceled {
            self.ids.remove(&id);
            let watched = self.keys.remove(&key);
            return Ok(
                watched.map_or(Notices::new(), |watched| watched.to_sessions(&QueueNotice::Gap))
            );
        }
        let watched = self.keys.get(&key);
        let notices =
            watched.and_then(|watched| events.iter().find_map(|event| watched.end_of(event)));
        if notices.is_some() {
            self.remove(&key);
        }
        Ok(notices.unwrap_or_default())
    }
}

impl Watched {
    /// The end of a watch: the key is gone.
    fn end_of(&self, event: &Event) -> Option<Notices> {
        match &self.subject {
            _ if !event.is_removal() => None,
            Subject::Session => {
                let ended = |&session: &SessionId| (session, QueueNotice::Ended { session });
                Some(self.sessions.iter().map(ended).collect())
            }
            Subject::Entry { lock, rank } => Some(
                self.to_sessions(&QueueNotice::Gone { lock: lock.clone(), rank: rank.clone() }),
            ),
        }
    }

    fn to_sessions(&self, notice: &QueueNotice) -> Notices {
        self.sessions.iter().map(|session| (*session, notice.clone())).collect()
    }
}

fn refused() -> Error {
    let message = "the server refuses to watch: the token is old, or the user's role lacks reading of all keys behind the prefix";
    Error::new(Code::Auth, message)
}

/// Hears what the server tells over one stream, until that is lost or the connection is left.
async fn follow(
    watches: Weak<Watches>,
    live: Arc<Live>,
    number: u64,
    requests: UnboundedReceiver<WatchRequest>,
) {
    let leaving = live.leaving();
    let hearing = pin!(async {
        let judged = |status| judge(&live.host, &status);
        let mut stream = live.watch(requests).await.map_err(judged)?;
        while let Some(answer) = stream.message().await.map_err(judged)? {
            let Some(watches) = watches.upgrade() else { break };
            if let Err(error) = watches.received(number, answer) {
                return Ok(Some(error));
            }
        }
        Ok(None)
    });
    let over = || unanswered(&live.host, "the stream of watches was closed");
    let (why, next) = if live.is_retired() {
        (over(), Next::Keep)
    } else {
        match select(hearing, leaving).await {
            Either::Left((Ok(Some(refused)), _)) => (refused, Next::Token),
            Either::Left((Ok(None), _)) | Either::Right(_) => (over(), Next::Keep),
            Either::Left((Err(fault), _)) => {
                let fault: super::fault::Fault = fault;
                (fault.failure.error, fault.next)
            }
        }
    };
    let Some(watches) = watches.upgrade() else { return };
    watches.link.leave(&live, next);
    watches.lose(number, why);
}
