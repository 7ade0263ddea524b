//! Every store's cells against the model.

use fencelock_tests::equivalence::cells::{Move, moves, run};
use fencelock_tests::equivalence::{
    MemorySubject, RedisSubject, SqliteSubject, Subject, draw, search_among,
};
use fencelock_tests::servers::RedisServer;
use proptest::test_runner::Config;

/// A case that differs, if there is one among so many.
fn search<S: Subject>(
    seed: [u8; 32],
    cases: u32,
    subject: impl Fn() -> S,
) -> Option<(Vec<Move>, String)> {
    let config = Config { cases, ..Config::default() };
    search_among(seed, &config, &moves(), &async |moves: &[Move]| run(&subject(), moves).await)
}

fn check<S: Subject>(cases: u32, subject: impl Fn() -> S) {
    let (seed, cases) = draw(11, cases);
    if let Some((moves, difference)) = search(seed, cases, subject) {
        panic!("{difference}\nin {moves:#?}");
    }
}

#[test]
fn memory() {
    check(500, MemorySubject::new);
}

#[test]
fn sqlite() {
    check(200, SqliteSubject::new);
}

#[test]
fn redis() {
    let server = RedisServer::start();
    check(400, || RedisSubject::new(server.url()));
}
