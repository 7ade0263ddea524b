//! The worlds of the entry queue's clauses, which the core plays in virtual time, on a real server in real time. All are played at
//! once, each at a place of its own.

// Each file has worlds beside these that only virtual time can play: a machine stands still, or microseconds count.
#[path = "../../../core/tests/entries/line.rs"]
#[allow(dead_code)]
mod line;
#[path = "../../../core/tests/entries/modes.rs"]
mod modes;
#[path = "../../../core/tests/entries/order.rs"]
#[allow(dead_code)]
mod order;
#[path = "../../../core/tests/entries/unknown.rs"]
mod unknown;

use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use fencelock::port::{EntryView, LockKey, OwnerId, QueueStore};
use fencelock::runtime::TokioRuntime;
use fencelock::{Client, Guard, Queue};
use futures_util::future::{BoxFuture, FutureExt, join_all};
use url::Url;

use self::line::Call;
use super::{Server, Store, connect};

pub(crate) const MS: Duration = Duration::from_millis(1);
pub(crate) const S: Duration = Duration::from_secs(1);
/// How long a session lives.
const TTL: Duration = Duration::from_secs(3);
/// The bound for work that takes no time in a simulated world.
const REAL: Duration = Duration::from_millis(350);

/// The longest time that a world may take.
const LONGEST: Duration = Duration::from_secs(60);

type Line = line::Line<Store>;
type Won = futures_channel::oneshot::Receiver<Guard>;
type Ended = Result<(), String>;

struct World {
    url: Url,
    node: Arc<TokioRuntime>,
}

struct Machine {
    client: Client,
    line: Line,
}

impl World {
    fn new(server: &Server, name: &str) -> Self {
        let node = TokioRuntime::current().expect("the test runs on tokio");
        Self { url: server.url(name), node: Arc::new(node) }
    }

    /// Nothing changes any more after two sessions.
    async fn sleep(&self, time: Duration) {
        tokio::time::sleep(time.min(2 * TTL) + REAL).await;
    }

    async fn store(&self) -> Store {
        connect(&self.url, self.node.clone()).await
    }

    async fn machine(&self) -> Machine {
        let line = Line::of(self.store().await, self.node.clone());
        let queue = Queue::new(line.clone(), self.node.clone(), TTL);
        let builder = Client::builder().runtime(self.node.clone());
        let builder = builder.option("ttl", "3s");
        Machine { client: builder.store(queue).await.expect("it connects"), line }
    }

    async fn client(&self) -> Client {
        self.machine().await.client
    }

    async fn entries(&self) -> Vec<EntryView> {
        self.store().await.list(&LockKey::new("x")).await.expect("it answers")
    }

    /// Removes an entry, as a person does it by hand.
    async fn remove(&self, entry: &EntryView) {
        let store = self.store().await;
        let session = store.open(TTL, Arc::new(|_| {})).await.expect("it answers");
        let nobody = OwnerId::draw(&*self.node);
        let (lock, rank) = (LockKey::new("x"), &entry.standing.rank);
        let found = store.leave(session, &lock, nobody, Some(rank)).await;
        assert!(found.expect("it answers"), "it was there");
        store.end(session).await.expect("it answers");
    }

    #[expect(clippy::unused_self, reason = "as the world in memory is asked")]
    fn start(&self, work: impl Future<Output = fencelock::Result<Guard>> + Send + 'static) -> Won {
        let (sender, won) = futures_channel::oneshot::channel();
        tokio::spawn(async move {
            if let Ok(guard) = work.await {
                let _ = sender.send(guard);
            }
        });
        won
    }
}

fn check(holds: bool, why: impl FnOnce() -> String) -> Ended {
    if holds { Ok(()) } else { Err(why()) }
}

fn granted(won: &mut Won) -> Option<Guard> {
    won.try_recv().ok().flatten()
}

async fn look<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    std::future::poll_fn(|context| Poll::Ready(Pin::new(&mut *future).poll(context))).await
}

/// Plays all that need no virtual time.
pub(crate) async fn play(server: &Server) {
    type Play = for<'a> fn(&'a World) -> BoxFuture<'a, Ended>;
    let plays: [(&str, Play); 13] = [
        ("in_turn", |world| order::in_turn(world).boxed()),
        ("behind_one_that_leaves", |world| order::behind_one_that_leaves(world).boxed()),
        ("looks_are_few", |world| order::looks_are_few(world).boxed()),
        ("permits", |world| order::permits(world).boxed()),
        ("kinds", |world| order::kinds(world).boxed()),
        ("reader_behind_a_writer", |world| modes::reader_behind_a_writer(world).boxed()),
        ("writer_alone", |world| modes::writer_alone(world).boxed()),
        ("unanswered_join", |world| unknown::unanswered_join(world).boxed()),
        ("late_join", |world| unknown::late_join(world).boxed()),
        ("lost_watch", |world| unknown::lost_watch(world).boxed()),
        ("unanswered_release", |world| unknown::unanswered_release(world).boxed()),
        ("own_entry_gone", |world| unknown::own_entry_gone(world).boxed()),
        ("waiters_session_ends", |world| unknown::waiters_session_ends(world).boxed()),
    ];
    let played = join_all(plays.map(|(name, play)| {
        let world = World::new(server, name);
        async move {
            let ended = tokio::time::timeout(LONGEST, play(&world)).await;
            (name, ended.unwrap_or_else(|_| Err("it does not end".to_owned())))
        }
    }));
    let wrong: Vec<_> = played.await.into_iter().filter(|(_, ended)| ended.is_err()).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}
