//! A server whose locks lie there as Redisson writes them, looked at byte by byte.

use std::collections::BTreeMap;
use std::time::Duration;

use fencelock::options::Options;
use fencelock::port::{
    Action, Answer, Kind, Layout, LeaseStore, LockKey, LockState, Mode, Outcome, OwnerId, Step,
};
use redis::Commands;
use url::Url;

use crate::bare::{Bare, PATIENCE, TTL, taking};
use crate::servers::RedisServer;

/// A release.
pub const FREE: Action = Action::Free { open: false };
/// A holder of Redisson's.
pub const THEIRS: &str = "0f8fad5b-d9cb-469f-a165-70867728950e:7";

/// One client of ours, and somebody who reads and writes beside it.
pub struct Scene {
    /// The client.
    pub client: Bare,
    /// The other.
    pub admin: redis::Connection,
    /// The server.
    pub server: RedisServer,
}

impl Scene {
    /// A server of its own.
    pub async fn new() -> Self {
        let server = RedisServer::start();
        let url = server.url();
        Self::on(server, &url).await
    }

    /// On this server, with a client that comes by this URL.
    pub async fn on(server: RedisServer, url: &Url) -> Self {
        let client = Bare::connect(url, &Options::default()).await.expect("it runs");
        Self { client, admin: server.admin(), server }
    }

    /// One step.
    pub async fn step(&self, name: &str, kind: Kind, owner: OwnerId, action: Action) -> Answer {
        let lock = LockKey::laid_out(Layout::Redisson, name);
        self.client.store.step(&[Step { lock, owner, kind, action }]).await.remove(0)
    }

    /// One step that is answered.
    pub async fn ask(&self, name: &str, kind: Kind, owner: OwnerId, action: Action) -> Outcome {
        self.step(name, kind, owner, action).await.expect("the server answers")
    }

    /// Tries to take it; of permits there are two.
    pub async fn take(&self, name: &str, mode: Mode) -> (OwnerId, Outcome) {
        let owner = self.client.owner();
        let take = Action::Take(taking(mode, 2, false));
        (owner, self.ask(name, mode.kind(), owner, take).await)
    }

    /// Takes what is free.
    pub async fn hold(&self, name: &str, mode: Mode) -> OwnerId {
        let (owner, outcome) = self.take(name, mode).await;
        assert!(matches!(outcome, Outcome::Granted { .. }), "{outcome:?}");
        owner
    }

    /// Finds it held.
    pub async fn miss(&self, name: &str, mode: Mode) {
        let (_, outcome) = self.take(name, mode).await;
        assert!(matches!(outcome, Outcome::Held { .. }), "{outcome:?}");
    }

    /// Gives it back.
    pub async fn free(&self, name: &str, mode: Mode, owner: OwnerId) {
        assert_eq!(self.ask(name, mode.kind(), owner, FREE).await, Outcome::Freed);
    }

    /// The holders and the waiters of a lock.
    pub async fn look(&self, name: &str) -> LockState {
        match self.ask(name, Kind::Mutex, self.client.owner(), Action::Read).await {
            Outcome::State(state) => state,
            other => panic!("{other:?}"),
        }
    }

    /// The fields of the hash under the name.
    pub fn fields(&mut self, name: &str) -> BTreeMap<String, String> {
        self.admin.hgetall(name).expect("it is a hash or nothing")
    }

    /// How many milliseconds a key lives; negative without an end.
    pub fn left(&mut self, key: &str) -> i64 {
        self.admin.pttl(key).expect("it answers")
    }

    /// Whether a key lives as long as a lease at most.
    pub fn lasts(&mut self, key: &str) -> bool {
        (1..=TTL.as_millis() as i64).contains(&self.left(key))
    }

    /// The messages published on all of Redisson's channels while the work is done.
    pub async fn heard<T>(
        &self,
        count: usize,
        work: impl Future<Output = T>,
    ) -> Vec<(String, String)> {
        let mut listener = self.server.admin();
        let mut heard = listener.as_pubsub();
        heard.psubscribe("redisson_*").unwrap();
        heard.set_read_timeout(Some(PATIENCE)).unwrap();
        work.await;
        let next = |_| heard.get_message().expect("a message comes");
        let messages = (0..count).map(next);
        let told = |message: redis::Msg| {
            (message.get_channel_name().to_owned(), message.get_payload().unwrap())
        };
        messages.map(told).collect()
    }

    /// Lets a reader of theirs in for so long.
    pub fn reader(&mut self, name: &str, field: &str, lease: Duration) {
        let lease = lease.as_millis() as u64;
        let left = self.left(name);
        let () = self.admin.hset_multiple(name, &[("mode", "read"), (field, "1")]).unwrap();
        let () = self.admin.pset_ex(lease_of(name, field), 1, lease).unwrap();
        let () = self.admin.pexpire(name, left.max(lease.cast_signed())).unwrap();
    }
}

/// The owner as a holder of Redisson's.
pub fn field(owner: OwnerId) -> String {
    let text = owner.to_string();
    let part = |from: usize, to: usize| &text[from..to];
    let parts = [part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32)];
    format!("{}:0", parts.join("-"))
}

/// The key that lives as long as a reader's lease.
pub fn lease_of(name: &str, field: &str) -> String {
    format!("{{{name}}}:{field}:rwlock_timeout:1")
}
