//! A fleet of all languages at once: one counter under one lock, exact, while members are killed.
//!
//! 20 kills a store; 200 with `FENCELOCK_FULL=1`.

use std::path::Path;

use fencelock_peers::{DOORS, Door, Lack, Program, Role};
use fencelock_tests::servers::RedisServer;
use fencelock_tests::shop::kill_holders;

fn kills() -> usize {
    if std::env::var_os("FENCELOCK_FULL").is_some() { 200 } else { 20 }
}

/// One actor of every language the machine has and this goes for, Rust first.
fn fleet(joins: fn(&Door) -> bool) -> Vec<Program> {
    let rust = Path::new(env!("CARGO_BIN_EXE_actor"));
    let strict = std::env::var_os("FENCELOCK_STRICT").is_some();
    let target = fencelock_peers::target(rust);
    let doors = DOORS.iter().filter(|door| joins(door));
    let doors = doors.filter_map(|door| match door.install(Role::Actor, &target) {
        Ok(program) => Some(program),
        Err(Lack::Language(lack)) if !strict => {
            println!("skipped: {}: {lack}", door.language);
            None
        }
        Err(lack) => panic!("{}: {lack}", door.language),
    });
    std::iter::once(Program::new(rust)).chain(doors).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_languages_on_redis() {
    let server = RedisServer::start();
    kill_holders(server.url().as_str(), &fleet(|_| true), kills()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_languages_in_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("locks.db").display());
    kill_holders(&url, &fleet(|door| !door.is_hosted()), kills()).await;
}
