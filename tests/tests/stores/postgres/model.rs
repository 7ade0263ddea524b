//! The table on a PostgreSQL server beside the model, outcome by outcome, at every isolation level.

use fencelock_tests::equivalence::{Scale, cells, draw, search, search_among};
use fencelock_tests::postgres::{MovedClock, PostgresServer, PostgresSubject};
use proptest::test_runner::Config;

const LEVELS: [&str; 4] = ["read committed", "repeatable read", "serializable", "read uncommitted"];

fn share(cases: u32) -> u32 {
    if fencelock_tests::in_full() { cases * 10 } else { cases }
}

#[test]
fn locks_at_every_isolation_level() {
    let server = PostgresServer::start();
    std::thread::scope(|scope| {
        for (number, level) in LEVELS.into_iter().enumerate() {
            let server = &server;
            scope.spawn(move || {
                let place = MovedClock::on(server, &format!("level{number}"), level);
                let (seed, cases) = draw(20 + number as u8, share(6));
                let found =
                    search(seed, cases, 200, &Scale::moved(), || PostgresSubject::new(&place));
                if let Some((moves, difference)) = found {
                    panic!("{level}: {difference}\nin {moves:#?}");
                }
            });
        }
    });
}

#[test]
fn cells_at_every_isolation_level() {
    let server = PostgresServer::start();
    for (number, level) in LEVELS.into_iter().enumerate() {
        let place = MovedClock::on(&server, &format!("level{number}"), level);
        let (seed, cases) = draw(30 + number as u8, share(3));
        let config = Config { cases, ..Config::default() };
        let found =
            search_among(seed, &config, &cells::moves(), &async |moves: &[cells::Move]| {
                cells::run(&PostgresSubject::new(&place), moves).await
            });
        if let Some((moves, difference)) = found {
            panic!("{level}: {difference}\nin {moves:#?}");
        }
    }
}
