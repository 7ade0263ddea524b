//! PostgreSQL as programs use it, and its faults.
#![allow(missing_docs)]

/// These tests, with either way in which sessions lock.
macro_rules! in_both_ways {
    ($($test:ident),+ $(,)?) => {
        in_both_ways!(advisory Advisory: $($test),+);
        in_both_ways!(rows Rows: $($test),+);
    };
    ($name:ident $way:ident: $($test:ident),+) => {
        mod $name {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                super::$test(fencelock_tests::postgres::Way::$way).await;
            })+
        }
    };
}

mod faults;
mod figures;
mod gate;
mod input;
mod inside;
mod jobs;
mod libraries;
mod model;
mod own_rows;
mod own_table;
mod rows;
mod session_clauses;
mod session_faults;
mod sessions;
mod standby;
