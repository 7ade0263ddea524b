//! Whether a pooler stands before the server that hands each transaction to another session.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio_postgres::{Client, SimpleQueryMessage};

use super::connection::{Connection, SERVER};
use super::dialect::Postgres;
use super::fault::{judge, pooled};
use crate::driver::sql::dialect::AddressOf;
use crate::driver::sql::room::when_there_is_room;
use crate::error::Result;
use crate::port::RuntimeHandle;

/// Whether a client has already checked that there is no such pooler.
#[derive(Default)]
pub(super) struct Pooling(AtomicBool);

impl Pooling {
    /// Refuses such a pooler. It is looked for once, by connections that set nothing: a setting would stay in a session that others use.
    pub(super) async fn refuse(
        &self,
        address: &AddressOf<Postgres>,
        runtime: &RuntimeHandle,
        limit: Duration,
    ) -> Result<()> {
        if self.0.load(Ordering::Acquire) {
            return Ok(());
        }
        // Both or none: clients that hold one each would wait for each other.
        let both = || async {
            let open = || Connection::open_first(address, SERVER, None, runtime, limit);
            Ok((open().await?.0, open().await?.0))
        };
        let (one, two) = when_there_is_room(runtime, limit, both).await?;
        let asked = async {
            let before = backend(&one.client, "").await?;
            let other = backend(&two.client, "BEGIN; ").await?;
            // While the other one has a transaction open, which keeps a session for it.
            let after = backend(&one.client, "").await?;
            two.client.batch_execute("COMMIT").await?;
            Ok(before == after && other != before)
        };
        let keeps: std::result::Result<bool, tokio_postgres::Error> = asked.await;
        if !keeps.map_err(|error| judge(address, &error, false).failure.error)? {
            return Err(pooled());
        }
        self.0.store(true, Ordering::Release);
        Ok(())
    }
}

/// The number of the process that answers, behind these statements.
async fn backend(
    client: &Client,
    before: &str,
) -> std::result::Result<Option<String>, tokio_postgres::Error> {
    let told = client.simple_query(&format!("{before}SELECT pg_backend_pid()")).await?;
    Ok(told.iter().find_map(|answer| match answer {
        SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
        _ => None,
    }))
}
