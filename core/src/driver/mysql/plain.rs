//! The statements of the plain cases.

use std::sync::Arc;

use mysql_async::Value;

use super::link::Link;
use super::live::{Answered, Statement};
use super::row::column;
use super::statement;
use crate::driver::sql::fault::Fault;
use crate::driver::sql::plain::{Drawn, Plain, Renewed, Renewing, Taking};
use crate::driver::sql::tables::Tables;
use crate::port::OwnerId;

/// The texts of those that are prepared.
pub(super) struct Statements {
    make: Arc<str>,
    take: Arc<str>,
    free: Arc<str>,
}

impl Statements {
    pub(super) fn new(tables: &Tables) -> Self {
        Self {
            make: statement::make(tables).into(),
            take: statement::take(tables).into(),
            free: statement::free(tables).into(),
        }
    }
}

impl Link {
    async fn change(&self, text: &Arc<str>, values: Vec<Value>) -> Result<Answered, Fault> {
        self.ask(Statement::Prepared(text.clone(), values), true).await
    }
}

impl Plain for &Link {
    async fn make(&self, taking: &Taking<'_>) -> Result<Option<Drawn>, Fault> {
        let Taking { name, owner, info, ttl, behind, .. } = *taking;
        let owner = owner.to_string();
        let values = vec![
            name.into(),
            owner.into(),
            info.into(),
            ttl.into(),
            behind.into(),
            behind.into(),
            ttl.into(),
            ttl.into(),
        ];
        Ok(drawn(&self.change(&self.statements.make, values).await?, behind))
    }

    async fn take(&self, taking: &Taking<'_>) -> Result<Option<Drawn>, Fault> {
        let Taking { name, owner, info, ttl, behind, floor } = *taking;
        let owner = owner.to_string();
        let values = vec![
            owner.into(),
            info.into(),
            ttl.into(),
            ttl.into(),
            ttl.into(),
            behind.into(),
            name.into(),
            floor.into(),
            behind.into(),
        ];
        Ok(drawn(&self.change(&self.statements.take, values).await?, behind))
    }

    async fn free(&self, name: &str, owner: OwnerId) -> Result<bool, Fault> {
        let values = vec![name.into(), owner.to_string().into()];
        Ok(self.change(&self.statements.free, values).await?.changed == 1)
    }

    async fn renew(&self, holds: &[Renewing<'_>]) -> Result<Vec<Renewed>, Fault> {
        let renewed =
            self.ask(Statement::Text(statement::renew(&self.tables, holds)), true).await?;
        let rows = renewed.rows();
        let read = |row: &mysql_async::Row| {
            let name = String::from_utf8(column(row, 0, "name").ok()?).ok()?;
            Some((name, column(row, 1, "token").ok()?, column(row, 2, "left").ok()?))
        };
        Ok(rows.iter().filter_map(read).collect())
    }
}

/// The first and the last token drawn, if a row was changed.
fn drawn(answered: &Answered, behind: i64) -> Option<Drawn> {
    let first = answered.last_id.filter(|_| answered.changed == 1)?;
    let first = i64::try_from(first).ok()?;
    Some((first, first + behind))
}
