//! Trouble with a store: somebody takes a lock away there, a password is not right, a server is not there.

use std::time::Duration;

use rusqlite::Connection;
use serde_json::Value;
use tokio::runtime::Handle;
use url::Url;

use super::ground::{Ground, lock};
use super::outside::run;
use super::player::CANARY;
use crate::etcd::PREFIX;
use crate::mysql::{key, mark};
use crate::zookeeper::CHROOT;

impl Ground {
    /// Deletes all that is stored of a lock, or ends the session it lives with, as somebody with all rights does.
    pub(super) fn take_away(&self, name: &str) -> Result<(), String> {
        let was_there = tokio::task::block_in_place(|| self.taken_away(name))?;
        if was_there { Ok(()) } else { Err(format!("nothing is stored of `{name}`")) }
    }

    /// Whether there was anything.
    fn taken_away(&self, name: &str) -> Result<bool, String> {
        if let Some(file) = self.url.strip_prefix("sqlite:") {
            return delete_row(file, name).map_err(|error| error.to_string());
        }
        if let Some(server) = &self.postgres {
            let ended = server.sql(&format!(
                "WITH row AS (DELETE FROM fencelock WHERE name = '{name}' RETURNING true AS there)
                 SELECT there FROM row UNION ALL SELECT pg_terminate_backend(pid) FROM pg_locks
                 WHERE locktype = 'advisory' AND granted AND (classid::bigint << 32 | objid::bigint) = fencelock_key('{name}')
                 UNION ALL SELECT pg_terminate_backend(pid) FROM pg_locks AS l JOIN fencelock_row AS r ON l.transactionid = r.xmax
                 WHERE l.locktype = 'transactionid' AND l.granted AND r.name = '{name}'"
            ));
            return Ok(!ended.is_empty());
        }
        if let Some(server) = &self.mysql {
            let holder = format!(
                "IS_USED_LOCK({}), IS_USED_LOCK({})",
                key(name),
                mark(&format!("'{name}'"))
            );
            let holder = server.sql(&format!("USE locks; SELECT COALESCE({holder}, 0)"));
            if holder != "0" {
                server.sql(&format!("KILL {holder}"));
                return Ok(true);
            }
            let delete =
                format!("DELETE FROM locks.fencelock WHERE name = '{name}'; SELECT ROW_COUNT()");
            return Ok(server.sql(&delete).trim() == "1");
        }
        if let Some(server) = &self.zookeeper {
            let server = lock(server);
            let owner = Handle::current().block_on(async {
                let entries = server.entries(&format!("/{CHROOT}/{name}")).await;
                let (_, stat) = server.admin().await.get_data(entries.first()?).await.ok()?;
                Some(stat.ephemeral_owner)
            });
            if let Some(owner) = owner {
                server.expire(owner);
            }
            return Ok(owner.is_some());
        }
        if let Some(server) = &self.etcd {
            let server = lock(server);
            let found =
                server.ctl(&["get", "--prefix", &format!("{PREFIX}/{name}/"), "-w", "json"]);
            let found: Value = serde_json::from_str(&found).map_err(|error| error.to_string())?;
            let lease = found["kvs"][0]["lease"].as_u64();
            lease.map(|lease| server.ctl(&["lease", "revoke", &format!("{lease:x}")]));
            return Ok(lease.is_some());
        }
        let server = self.redis.as_ref().ok_or("nobody else takes anything away here")?;
        let server = lock(server);
        let keys = run(&server, &["KEYS".to_owned(), format!("*{name}*")])?;
        let keys = keys.lines().filter(|key| !key.is_empty()).map(str::to_owned);
        let words: Vec<_> = ["DEL".to_owned()].into_iter().chain(keys).collect();
        if words.len() > 1 {
            run(&server, &words)?;
        }
        Ok(words.len() > 1)
    }

    /// The store with a password that is not right.
    pub(super) fn intruder(&self) -> Result<String, String> {
        self.other(|url| url.set_password(Some(CANARY)))
    }

    /// The same where no server is: nobody listens on the first port.
    pub(super) fn nowhere(&self) -> Result<String, String> {
        self.other(|url| url.set_port(Some(1)))
    }

    fn other(&self, change: impl FnOnce(&mut Url) -> Result<(), ()>) -> Result<String, String> {
        let mut url: Url = self.url.parse().map_err(|error| format!("{error}"))?;
        change(&mut url).map_err(|()| "this store has no server".to_owned())?;
        Ok(url.into())
    }
}

/// Whether there was one.
fn delete_row(file: &str, name: &str) -> rusqlite::Result<bool> {
    let file = Connection::open(file)?;
    file.busy_timeout(Duration::from_secs(5))?;
    Ok(file.execute("DELETE FROM fencelock_lock WHERE name = ?1", [name])? > 0)
}
