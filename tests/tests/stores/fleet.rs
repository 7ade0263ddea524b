//! A fleet of all languages and of the command line at once: one counter under one lock, exact, while members are killed.
//!
//! 20 kills a store; 200 with `FENCELOCK_FULL=1`.

use std::io::Write;
use std::path::Path;

use fencelock_peers::{DOORS, Door, Lack, Program, Role};
use fencelock_tests::clerk::{Post, command_line};
use fencelock_tests::postgres::PostgresServer;
use fencelock_tests::servers::RedisServer;
use fencelock_tests::shop::kill_clerks;

fn kills() -> usize {
    if fencelock_tests::in_full() { 200 } else { 20 }
}

/// One actor of every language the machine has and this goes for, Rust first, and the command line.
fn fleet(joins: fn(&Door) -> bool) -> Vec<Post> {
    let rust = Path::new(env!("CARGO_BIN_EXE_actor"));
    let strict = std::env::var_os("FENCELOCK_STRICT").is_some();
    let target = fencelock_peers::target(rust);
    let doors = DOORS.iter().filter(|door| joins(door));
    let doors = doors.filter_map(|door| match door.install(Role::Actor, &target) {
        Ok(program) => Some(Post::Actor(program)),
        Err(Lack::Language(lack)) if !strict => {
            // Past the harness, which keeps to itself what tests print that pass.
            let mut out = std::io::stdout().lock();
            writeln!(out, "\nskipped: {}: {lack}", door.language).unwrap();
            None
        }
        Err(lack) => panic!("{}: {lack}", door.language),
    });
    let natives = [Post::Actor(Program::new(rust)), command_line(rust)];
    natives.into_iter().chain(doors).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_languages_on_redis() {
    let server = RedisServer::start();
    kill_clerks(server.url().as_str(), &fleet(|_| true), kills()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_languages_in_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("locks.db").display());
    kill_clerks(&url, &fleet(|door| !door.is_hosted()), kills()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_languages_on_postgres() {
    let server = PostgresServer::start();
    let url = server.place("shop");
    kill_clerks(&url, &fleet(|door| !door.is_hosted()), kills()).await;
}

/// A store for each process: a lock over it excludes nobody, which has to be seen.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[should_panic = "two holders at once"]
async fn a_lock_that_excludes_nobody_is_seen() {
    let rust = Post::Actor(Program::new(env!("CARGO_BIN_EXE_actor")));
    kill_clerks("memory:", &[rust.clone(), rust], 20).await;
}
