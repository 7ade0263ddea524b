//! The changes to the store of a case from outside, and the state seen there.

use std::sync::Mutex;

use tokio::runtime::Handle;

use super::ground::{Ground, lock};
use super::step::Server;
use crate::etcd::PREFIX;
use crate::mysql::mark;
use crate::servers::RedisServer;
use crate::session_store::SessionServer;
use crate::zookeeper::CHROOT;

impl Ground {
    /// A raw command, as somebody else; what the server answers, as text.
    pub(super) fn command(&self, words: &[String]) -> Result<String, String> {
        let server = self.redis.as_ref().ok_or("this store takes no raw commands")?;
        tokio::task::block_in_place(|| run(&lock(server), words))
    }

    /// Statements, as the owner of the database.
    pub(super) fn sql(&self, statements: &str) -> Result<String, String> {
        tokio::task::block_in_place(|| match (&self.postgres, &self.mysql) {
            (Some(server), _) => Ok(server.sql(statements)),
            (_, Some(server)) => Ok(server.sql(&format!("USE locks; {statements}"))),
            _ => Err("this store takes no SQL".to_owned()),
        })
    }

    /// Has something happen to the server.
    pub(super) fn control(&self, what: Server) -> Result<(), String> {
        tokio::task::block_in_place(|| match (&self.etcd, &self.zookeeper, &self.redis) {
            (Some(server), ..) => {
                control(server, what);
                Ok(())
            }
            (_, Some(server), _) => {
                control(server, what);
                Ok(())
            }
            (.., Some(server)) => {
                let mut server = lock(server);
                match what {
                    Server::Restart => server.restart(),
                    Server::Stop => server.stop(),
                    Server::Resume => server.cont(),
                    Server::Kill => server.kill_hard(),
                }
                Ok(())
            }
            _ => Err("this store has no server".to_owned()),
        })
    }

    /// Every key of the case that has no end, and every lock key that is still there: there must be none. On etcd all
    /// keys are such, on ZooKeeper all entries.
    pub(super) fn leftovers(&self, prefix: &str) -> Result<Vec<String>, String> {
        let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
        tokio::task::block_in_place(|| {
            let guard = self.redis.as_ref().map(|server| lock(server));
            let nodes = self.cluster.iter().flat_map(|cluster| cluster.masters());
            let nodes = nodes.chain(self.quorum.iter().flat_map(|quorum| &quorum.masters));
            let entries = self.etcd.iter();
            let entries = entries.flat_map(|etcd| lock(etcd).keys(&format!("{PREFIX}/{prefix}")));
            let mut left: Vec<_> = entries.map(|key| format!("the key {key}")).collect();
            if let Some(server) = &self.zookeeper {
                let path = format!("/{CHROOT}/{}", prefix.trim_end_matches('/'));
                let entries = Handle::current().block_on(lock(server).entries(&path));
                left.extend(entries.into_iter().map(|path| format!("the node {path}")));
            }
            if let Some(server) = &self.postgres {
                let held = server.sql(&format!(
                    "SELECT name FROM fencelock WHERE name LIKE '%{prefix}%' AND expires_at > clock_timestamp()
                     UNION ALL SELECT r.name FROM fencelock_row AS r JOIN pg_locks AS l ON l.transactionid = r.xmax
                     WHERE l.locktype = 'transactionid' AND l.granted AND r.name LIKE '%{prefix}%'"
                ));
                left.extend(held.lines().map(|name| format!("a hold of {name}")));
            }
            if let Some(server) = &self.mysql {
                let held = server.sql(&format!(
                    "USE locks; SELECT name FROM locks.fencelock WHERE name LIKE '%{prefix}%' AND expires_at > UTC_TIMESTAMP(6)
                     UNION ALL SELECT name FROM locks.fencelock_row WHERE name LIKE '%{prefix}%' AND IS_USED_LOCK({}) IS NOT NULL",
                    mark("name")
                ));
                left.extend(held.lines().map(|name| format!("a hold of {name}")));
            }
            for server in guard.as_deref().into_iter().chain(nodes) {
                let keys = run(server, &words(&["KEYS", &format!("*{prefix}*")]))?;
                for key in keys.lines().filter(|key| !key.is_empty()) {
                    let endless = run(server, &words(&["PTTL", key]))? == "-1";
                    if key.contains("}:version:") {
                        // A user's value stays for as long as the user wants.
                        continue;
                    }
                    let record = key.starts_with("fencelock:{") && !key.contains("}:held:");
                    if !record {
                        left.push(format!("the key {key}"));
                    } else if endless {
                        left.push(format!("the key {key}, which has no end"));
                    }
                }
            }
            Ok(left)
        })
    }
}

/// Has something happen to a server that keeps its data.
fn control(server: &Mutex<impl SessionServer>, what: Server) {
    let mut server = lock(server);
    match what {
        Server::Restart => {
            server.kill_hard();
            server.start_again();
        }
        Server::Stop => server.stop(),
        Server::Resume => server.cont(),
        Server::Kill => server.kill_hard(),
    }
}

pub(super) fn run(server: &RedisServer, words: &[String]) -> Result<String, String> {
    let (name, arguments) = words.split_first().ok_or("a command has a name")?;
    let answer = redis::cmd(name).arg(arguments).query(&mut server.admin());
    answer.map(|value| text(&value)).map_err(|error| error.to_string())
}

fn text(value: &redis::Value) -> String {
    match value {
        redis::Value::Nil => "nil".to_owned(),
        redis::Value::Int(number) => number.to_string(),
        redis::Value::BulkString(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        redis::Value::SimpleString(text) => text.clone(),
        redis::Value::Okay => "OK".to_owned(),
        redis::Value::Array(values) => values.iter().map(text).collect::<Vec<_>>().join("\n"),
        other => format!("{other:?}"),
    }
}
