//! The statements of the plain cases, many at once on one connection.

use std::sync::Arc;

use tokio_postgres::Row;

use super::link::Link;
use super::live::Live;
use super::statement::Single;
use super::value::Hidden;
use crate::driver::sql::fault::Fault;
use crate::driver::sql::plain::{Drawn, Plain, Renewed, Renewing, Taking};
use crate::error::Result;
use crate::port::OwnerId;

/// See the module.
pub(super) struct Statements<'a> {
    link: &'a Arc<Link>,
    live: Arc<Live<Single>>,
}

impl<'a> Statements<'a> {
    pub(super) async fn of(link: &'a Arc<Link>) -> Result<Self> {
        Ok(Self { link, live: link.single().await? })
    }
}

impl Plain for Statements<'_> {
    async fn make(&self, taking: &Taking<'_>) -> Result<Option<Drawn>, Fault> {
        let Live { client, statements, .. } = &*self.live;
        let Taking { name, owner, info, ttl, behind, .. } = taking;
        let owner = Hidden::owner(*owner);
        let made =
            async { client.query_opt(&statements.make, &[name, &owner, info, ttl, behind]).await };
        let row = self.link.ask(&self.live, made, true).await?;
        if row.is_some() {
            self.link.row_made();
        }
        Ok(drawn(row))
    }

    async fn take(&self, taking: &Taking<'_>) -> Result<Option<Drawn>, Fault> {
        let Live { client, statements, .. } = &*self.live;
        let Taking { name, owner, info, ttl, behind, floor } = taking;
        let owner = Hidden::owner(*owner);
        let asked = async {
            client.query_opt(&statements.take, &[name, &owner, info, ttl, behind, floor]).await
        };
        self.link.ask(&self.live, asked, true).await.map(drawn)
    }

    async fn free(&self, name: &str, owner: OwnerId) -> Result<bool, Fault> {
        let Live { client, statements, .. } = &*self.live;
        let owner = Hidden::owner(owner);
        let asked = async { client.execute(&statements.free, &[&name, &owner]).await };
        Ok(self.link.ask(&self.live, asked, true).await? == 1)
    }

    async fn renew(&self, holds: &[Renewing<'_>]) -> Result<Vec<Renewed>, Fault> {
        let Live { client, statements, .. } = &*self.live;
        let names: Vec<&str> = holds.iter().map(|hold| hold.name).collect();
        let owners: Vec<Hidden> = holds.iter().map(|hold| Hidden::owner(hold.owner)).collect();
        let leases: Vec<i64> = holds.iter().map(|hold| hold.ttl).collect();
        let asked = async { client.query(&statements.renew, &[&names, &owners, &leases]).await };
        let rows = self.link.ask(&self.live, asked, true).await?;
        Ok(rows.iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect())
    }
}

fn drawn(row: Option<Row>) -> Option<Drawn> {
    row.map(|row| (row.get(0), row.get(1)))
}
