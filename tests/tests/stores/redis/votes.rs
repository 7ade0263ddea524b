//! More subjects for the random steps of `equivalence`: votes on a node of a quorum, and Redisson's layout over a host.

use fencelock_tests::equivalence::{Hosted, RedisSubject, Scale, Subject, search};
use fencelock_tests::servers::RedisServer;

fn check<S: Subject>(cases: u32, scale: &Scale, subject: impl Fn() -> S) {
    if let Some((moves, difference)) = search([11; 32], cases, 500, scale, subject) {
        panic!("{difference}\nin {moves:#?}");
    }
}

#[test]
fn a_node_votes_as_the_model_does() {
    let (scale, server) = (Scale::moved().voting(), RedisServer::start());
    check(250, &scale, || RedisSubject::new(server.url()));
    check(80, &scale, || RedisSubject::<Hosted>::over(server.url()));
}

/// Locks that Redisson's clients share, over a client of a host's.
#[test]
fn redissons_layout_is_the_same_over_a_host() {
    let server = RedisServer::start();
    check(200, &Scale::moved().as_redisson(), || RedisSubject::<Hosted>::over(server.url()));
}
