//! The table on a MariaDB server beside the model, outcome by outcome, at every isolation level.

use fencelock_tests::equivalence::{Scale, cells, draw, search, search_among};
use fencelock_tests::mysql::{MovedClock, MysqlServer, MysqlSubject};
use proptest::test_runner::Config;

/// The isolation levels with which sessions begin.
const LEVELS: [&str; 4] = ["READ-COMMITTED", "REPEATABLE-READ", "SERIALIZABLE", "READ-UNCOMMITTED"];

fn share(cases: u32) -> u32 {
    if fencelock_tests::in_full() { cases * 10 } else { cases }
}

#[test]
fn locks_at_every_isolation_level() {
    let servers = LEVELS.map(|level| format!("transaction-isolation={level}"));
    std::thread::scope(|scope| {
        for (number, level) in servers.iter().enumerate() {
            scope.spawn(move || {
                let server = MysqlServer::start_with(&[level]);
                let place = MovedClock::on(&server, "moved");
                let (seed, cases) = draw(40 + number as u8, share(6));
                let found = search(seed, cases, 200, &Scale::moved(), || MysqlSubject::new(&place));
                if let Some((moves, difference)) = found {
                    panic!("{level}: {difference}\nin {moves:#?}");
                }
            });
        }
    });
}

#[test]
fn cells() {
    let server = MysqlServer::start();
    let place = MovedClock::on(&server, "moved");
    let (seed, cases) = draw(50, share(8));
    let config = Config { cases, ..Config::default() };
    let found = search_among(seed, &config, &cells::moves(), &async |moves: &[cells::Move]| {
        cells::run(&MysqlSubject::new(&place), moves).await
    });
    if let Some((moves, difference)) = found {
        panic!("{difference}\nin {moves:#?}");
    }
}
