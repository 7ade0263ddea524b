//! Locks written by hand with the crate `mysql_async`: two updates of a row, `GET_LOCK`, or a row that a transaction keeps locked. Each task
//! that waits or holds has a connection; they are used again.

use std::sync::{Arc, Mutex, PoisonError};

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts, OptsBuilder, Row, Statement};

use super::course::{Contestant, Course};

/// The holder that is written to the row.
const OWNER: &str = "0123456789abcdef0123456789abcdef";

/// How it locks.
#[derive(Clone, Copy)]
enum By {
    /// It does not wait, so it has no part in hand-overs.
    Updates,
    GetLock,
    Row,
}

/// See the module.
#[derive(Clone)]
pub(super) struct MysqlBare {
    opts: Opts,
    by: By,
    idle: Arc<Mutex<Vec<Session>>>,
}

pub(super) struct Session {
    conn: Conn,
    take: Statement,
    free: Statement,
}

impl MysqlBare {
    pub(super) fn new(course: &Course) -> Self {
        let by = match course.text("by") {
            "" => By::Updates,
            "getlock" => By::GetLock,
            "row" => By::Row,
            other => panic!("MariaDB has no locks by {other}"),
        };
        let opts = Opts::from_url(course.text("url")).expect("a URL of MariaDB");
        // Everybody goes the way that the URL says; this crate would look for a socket file.
        let opts = OptsBuilder::from_opts(opts).prefer_socket(false).into();
        Self { opts, by, idle: Arc::default() }
    }

    async fn open(&self) -> Session {
        let mut conn = Conn::new(self.opts.clone()).await.expect("the server is there");
        let (take, free) = match self.by {
            By::Updates => (
                "UPDATE bare SET owner = ? WHERE name = ? AND owner IS NULL",
                "UPDATE bare SET owner = NULL WHERE name = ? AND owner = ?",
            ),
            By::GetLock => ("SELECT GET_LOCK(?, 3600)", "SELECT RELEASE_LOCK(?)"),
            By::Row => ("SELECT 1", "COMMIT"),
        };
        let take = conn.prep(take).await.expect("a statement");
        let free = conn.prep(free).await.expect("a statement");
        Session { conn, take, free }
    }
}

impl Session {
    /// How many rows were found.
    async fn take(&mut self, by: By, key: &str) -> u64 {
        let Self { conn, take, .. } = self;
        match by {
            By::Updates => {
                conn.exec_drop(&*take, (OWNER, key)).await.expect("an answer");
                conn.affected_rows()
            }
            By::GetLock => {
                let got: Option<Option<u64>> =
                    conn.exec_first(&*take, (key,)).await.expect("an answer");
                assert_eq!(got, Some(Some(1)), "the lock was not granted");
                1
            }
            By::Row => {
                // One flight, and so a text; keys here need no quoting.
                let text = format!("BEGIN; SELECT owner FROM bare WHERE name = '{key}' FOR UPDATE");
                let mut answers = conn.query_iter(text).await.expect("an answer");
                answers.collect::<Row>().await.expect("an answer");
                let rows = answers.collect::<Row>().await.expect("an answer");
                rows.len() as u64
            }
        }
    }

    async fn free(&mut self, by: By, key: &str) {
        let Self { conn, free, .. } = self;
        let freed = match by {
            By::Updates => conn.exec_drop(&*free, (key, OWNER)).await,
            By::GetLock => conn.exec_drop(&*free, (key,)).await,
            By::Row => conn.exec_drop(&*free, ()).await,
        };
        freed.expect("an answer");
    }
}

impl Contestant for MysqlBare {
    type Guard = (Session, String);

    async fn acquire(&self, key: &str) -> Self::Guard {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut session = match idle {
            Some(session) => session,
            None => self.open().await,
        };
        while session.take(self.by, key).await == 0 {
            if matches!(self.by, By::Row) {
                session.free(self.by, key).await;
            }
            let row = "INSERT IGNORE INTO bare (name) VALUES (?)";
            session.conn.exec_drop(row, (key,)).await.expect("a row");
        }
        (session, key.to_owned())
    }

    async fn release(&self, (mut session, key): Self::Guard) {
        session.free(self.by, &key).await;
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(session);
    }
}
