//! Locks written by hand with the crate `tokio-postgres`: two updates of a row, an advisory lock, or a row that a transaction keeps
//! locked. Each task that waits or holds has a connection; they are used again.

use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::join;
use tokio_postgres::{Client, NoTls, Statement};

use super::course::{Contestant, Course};

/// The holder that is written to the row.
const OWNER: &str = "0123456789abcdef0123456789abcdef";

/// How it locks.
#[derive(Clone, Copy)]
enum By {
    /// It does not wait, so it has no part in hand-overs.
    Updates,
    Advisory,
    Row,
}

/// See the module.
#[derive(Clone)]
pub(super) struct PostgresBare {
    url: String,
    by: By,
    idle: Arc<Mutex<Vec<Session>>>,
}

pub(super) struct Session {
    client: Client,
    take: Statement,
    free: Statement,
}

impl PostgresBare {
    pub(super) fn new(course: &Course) -> Self {
        let by = match course.text("by") {
            "" => By::Updates,
            "advisory" => By::Advisory,
            "row" => By::Row,
            other => panic!("PostgreSQL has no locks by {other}"),
        };
        // Our options are none of its own.
        let url = course.text("url").split('?').next().unwrap_or_default().to_owned();
        Self { url, by, idle: Arc::default() }
    }

    async fn open(&self) -> Session {
        let connected = tokio_postgres::connect(&self.url, NoTls).await;
        let (client, connection) = connected.expect("the server is there");
        tokio::spawn(connection);
        let (take, free) = match self.by {
            By::Updates => (
                "UPDATE bare SET owner = $2 WHERE name = $1 AND owner IS NULL",
                "UPDATE bare SET owner = NULL WHERE name = $1 AND owner = $2",
            ),
            By::Advisory => (
                "SELECT pg_advisory_lock(hashtextextended($1, 0))",
                "SELECT pg_advisory_unlock(hashtextextended($1, 0))",
            ),
            By::Row => ("SELECT owner FROM bare WHERE name = $1 FOR UPDATE", "COMMIT"),
        };
        let take = client.prepare(take).await.expect("a statement");
        let free = client.prepare(free).await.expect("a statement");
        Session { client, take, free }
    }
}

impl Session {
    /// How many rows were found.
    async fn take(&self, by: By, key: &str) -> u64 {
        let Self { client, take, .. } = self;
        let taken = match by {
            By::Updates => client.execute(take, &[&key, &OWNER]).await,
            By::Advisory => client.execute(take, &[&key]).await,
            By::Row => {
                // One flight.
                let (begun, found) =
                    join(client.batch_execute("BEGIN"), client.execute(take, &[&key])).await;
                begun.and(found)
            }
        };
        taken.expect("an answer")
    }

    async fn free(&self, by: By, key: &str) {
        let Self { client, free, .. } = self;
        let freed = match by {
            By::Updates => client.execute(free, &[&key, &OWNER]).await,
            By::Advisory => client.execute(free, &[&key]).await,
            By::Row => client.execute(free, &[]).await,
        };
        freed.expect("an answer");
    }
}

impl Contestant for PostgresBare {
    type Guard = (Session, String);

    async fn acquire(&self, key: &str) -> Self::Guard {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let session = match idle {
            Some(session) => session,
            None => self.open().await,
        };
        while session.take(self.by, key).await == 0 {
            let row = "INSERT INTO bare (name) VALUES ($1) ON CONFLICT DO NOTHING";
            session.client.execute(row, &[&key]).await.expect("a row");
            if matches!(self.by, By::Row) {
                session.free(self.by, key).await;
            }
        }
        (session, key.to_owned())
    }

    async fn release(&self, (session, key): Self::Guard) {
        session.free(self.by, &key).await;
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(session);
    }
}
