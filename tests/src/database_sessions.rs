//! Locks that live with sessions of a database server: what all servers of that kind have to keep.

pub mod clauses;
pub mod faults;
pub mod own_rows;
pub mod sessions;

use std::time::{Duration, Instant};

use fencelock::Client;

use crate::database::connect;
use crate::session_store::{PATIENCE, SessionServer};

/// The objects that sessions lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Names, or numbers of names.
    Names,
    /// Rows of fencelock's own table.
    Rows,
}

impl Way {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Names, Self::Rows];
}

/// A server with the tables, and the user whose locks these are.
pub trait DatabaseSessions: SessionServer + Sized + Sync {
    /// The locks of a user who may do everything in the database.
    fn start(way: Way) -> Self;

    /// The locks of the user `locks`, who may lock and no more.
    fn start_with_rights(way: Way) -> Self;

    /// The port on 127.0.0.1.
    fn port(&self) -> u16;

    /// Where the locks are, on the server or the proxy of this port.
    fn at(&self, port: u16, query: &str) -> String;

    /// How many have a lock, and how many wait for one: `1|2`.
    fn locks(&self) -> String;

    /// Ends the connections that have a lock, or those that wait for one.
    fn end_connections(&self, holders: bool);

    /// Ends all connections of this user.
    fn end_all_connections(&self);

    /// How many connections this user has.
    fn connections(&self) -> usize;

    /// Sets tokens back, as a restore does.
    fn turn_tokens_back(&self);

    /// Whether the server sees that a process has died which waits.
    fn sees_dead_waiters(&self) -> bool;

    /// A client with these options.
    fn client(&self, query: &str) -> impl Future<Output = Client> {
        let url = self.at(self.port(), query);
        async move { connect(&url).await }
    }

    /// Completes when so many have one, and so many wait.
    fn comes_to(&self, locks: &str) -> impl Future<Output = ()> {
        async move {
            let began = Instant::now();
            while self.locks() != locks {
                assert!(began.elapsed() < PATIENCE, "{} instead of {locks}", self.locks());
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
    }
}

/// These tests of a module, on this server, with either way in which sessions lock.
#[macro_export]
macro_rules! in_both_ways {
    ($server:ident, $module:ident $(($argument:expr))?: $($test:ident),+ $(,)?) => {
        $crate::in_both_ways!(@names $server, $module, (Names $(, $argument)?): $($test),+);
        $crate::in_both_ways!(@rows $server, $module, (Rows $(, $argument)?): $($test),+);
    };
    (@$name:ident $server:ident, $module:ident, $arguments:tt: $($test:ident),+) => {
        mod $name {
            use fencelock_tests::database_sessions::Way::*;
            #[allow(unused_imports)] // What the arguments are made of.
            use super::*;
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                $module::$test::<$server> $arguments.await;
            })+
        }
    };
}
