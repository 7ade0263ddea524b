//! The recipe of the crate `zookeeper-client`, in Curator's layout.

use std::time::Duration;

use zookeeper_client::{Acls, Client, CreateMode, LockOptions, LockPrefix, OwnedLockClient};

use super::course::{Contestant, Course};

const SESSION: Duration = Duration::from_secs(30);

/// See the module.
#[derive(Clone)]
pub(super) struct ZookeeperClient(Client);

impl ZookeeperClient {
    pub(super) async fn connect(course: &Course) -> Self {
        let connector = Client::connector().with_session_timeout(SESSION);
        let client = connector.connect(course.text("server")).await;
        Self(client.expect("the server is there"))
    }
}

impl Contestant for ZookeeperClient {
    type Guard = OwnedLockClient;

    async fn acquire(&self, key: &str) -> OwnedLockClient {
        let parent = format!("/{key}");
        let prefix = LockPrefix::new_curator(&parent, "lock-").expect("a path");
        let options = LockOptions::new(Acls::anyone_all())
            .with_ancestor_options(CreateMode::Container.with_acls(Acls::anyone_all()))
            .expect("a node that lasts");
        self.0.lock(prefix, b"", options).await.expect("an answer").into_owned()
    }

    async fn release(&self, guard: OwnedLockClient) {
        self.0.delete(guard.lock_path(), None).await.expect("it was held");
        // Dropped it would be deleted again, in the background.
        std::mem::forget(guard);
    }
}
