//! The SQL. Each statement tells which backend carried it out.

use tokio_postgres::{Client, Error, Statement};

use crate::driver::postgres::statement::prepare;

pub(super) struct Statements {
    pub(super) take: [Statement; 2],
    pub(super) wait: [Statement; 2],
    pub(super) free: [Statement; 2],
    pub(super) free_all: Statement,
    pub(super) beat: Statement,
    pub(super) look: Statement,
}

impl Statements {
    pub(super) async fn prepare(client: &Client) -> Result<Self, Error> {
        let texts = [
            take("pg_try_advisory_lock"),
            take("pg_try_advisory_lock_shared"),
            wait("pg_advisory_lock"),
            wait("pg_advisory_lock_shared"),
            free("pg_advisory_unlock"),
            free("pg_advisory_unlock_shared"),
            "SELECT pg_backend_pid(), pg_advisory_unlock_all()::text".to_owned(),
            "SELECT pg_backend_pid()".to_owned(),
            LOOK.to_owned(),
        ];
        let [take, take_shared, wait, wait_shared, free, free_shared, free_all, beat, look] =
            prepare(client, &texts).await?;
        let (take, wait) = ([take, take_shared], [wait, wait_shared]);
        Ok(Self { take, wait, free: [free, free_shared], free_all, beat, look })
    }
}

/// Takes a lock that nobody has and nobody waits for. Only then a token is drawn.
fn take(function: &str) -> String {
    format!(
        "SELECT pg_backend_pid(), CASE WHEN {function}(fencelock_key($1)) THEN nextval('fencelock_token') END"
    )
}

/// The same, but it waits.
fn wait(function: &str) -> String {
    // What answers nothing answers an empty text.
    format!(
        "SELECT pg_backend_pid(), CASE WHEN {function}(fencelock_key($1))::text IS NOT NULL THEN nextval('fencelock_token') END"
    )
}

fn free(function: &str) -> String {
    format!("SELECT pg_backend_pid(), {function}(fencelock_key($1))")
}

/// Who has a lock and who waits for it, in the order in which they came as far as the server tells it.
const LOOK: &str = "SELECT l.granted, l.mode, a.application_name,
        (extract(epoch FROM clock_timestamp() - l.waitstart) * 1000)::bigint, l.pid
    FROM pg_locks AS l LEFT JOIN pg_stat_activity AS a ON a.pid = l.pid
    WHERE l.locktype = 'advisory' AND l.objsubid = 1
        AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND (l.classid::bigint << 32 | l.objid::bigint) = fencelock_key($1)
    ORDER BY l.granted DESC, l.waitstart, l.pid";
