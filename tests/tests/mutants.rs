//! The simulator can see: every clause that is broken on purpose is caught within 20,000 worlds, and healthy worlds break
//! no promise.

use fencelock::mutation::Mutant;
use fencelock_tests::sim::campaign::Campaign;
use fencelock_tests::sim::plan::Family;

/// The most worlds it may take to catch a mutant.
const PATIENCE: u64 = 20_000;

/// Clauses that other suites see: a client undoes what a store wrongly gave it of several locks (`equivalence`), and no
/// world has scopes (below).
const ELSEWHERE: &[Mutant] = &[Mutant::AllTakesSome, Mutant::ReentrantFreesEarly];

/// The family in which a clause matters, where all families in turn would take long.
fn family_for(mutant: Mutant) -> Option<Family> {
    match mutant {
        Mutant::LatePushBelieved => Some(Family::Replay),
        Mutant::LostHoldPassedOn => Some(Family::Tiny),
        Mutant::AmnesiacVotes => Some(Family::Amnesia),
        Mutant::QuorumTooSmall
        | Mutant::LostVoteKept
        | Mutant::QuorumFreesWhereGranted
        | Mutant::RaiseTakesAnew => Some(Family::Quorum),
        Mutant::QuorumLeftOfBest | Mutant::UnknownVoteCounts | Mutant::RenewByMinority => {
            Some(Family::Votes)
        }
        Mutant::TokenNotWrittenBack | Mutant::QuorumForgetsDebts | Mutant::HealAfterFree => {
            Some(Family::Minority)
        }
        Mutant::LateChangeBelieved => Some(Family::Replay),
        _ => None,
    }
}

fn campaign(seeds: u64, mutant: Option<Mutant>) -> Campaign {
    let family = mutant.and_then(family_for);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    Campaign { from: 0, seeds, mutant, family, threads }
}

#[test]
fn every_broken_clause_is_caught() {
    let mut missed = Vec::new();
    for &mutant in Mutant::ALL.iter().filter(|mutant| !ELSEWHERE.contains(mutant)) {
        let outcome = campaign(PATIENCE, Some(mutant)).run();
        let worlds = outcome.worlds();
        match outcome.found {
            Some((seed, violation)) => {
                let (mutant, rule) = (format!("{mutant:?}"), format!("{:?}", violation.rule));
                println!("{mutant:<24} {rule:<12} seed {seed:<6} {worlds:>6} worlds");
            }
            None => missed.push(mutant),
        }
    }
    assert!(missed.is_empty(), "not caught in {PATIENCE} worlds each: {missed:?}");
}

#[test]
fn healthy_worlds_keep_every_promise() {
    let outcome = campaign(500, None).run();
    println!("{outcome}");
    assert!(!outcome.failed(), "{:?}, unsteady {:?}", outcome.found, outcome.unsteady);
    assert_eq!(outcome.worlds(), 500);
    let figures = outcome.figures;
    let all = [figures.grants, figures.hand_overs, figures.cancels, figures.losses];
    assert!(all.iter().all(|count| *count > 500), "worlds in which little happens: {figures:?}");
}

/// Whether a scope keeps its lock until its last guard is given back.
async fn a_scope_keeps_its_lock() -> bool {
    let client = fencelock::connect("memory:mutants").await.unwrap();
    let scope = client.scope();
    let outer = scope.lock("x").acquire().await.unwrap();
    let inner = scope.lock("x").acquire().await.unwrap();
    inner.release().await.check().unwrap();
    let kept = client.lock("x").try_acquire().await.unwrap().is_none();
    drop(outer);
    client.close().await;
    kept
}

#[tokio::test]
async fn a_scope_that_frees_early_is_seen() {
    assert!(a_scope_keeps_its_lock().await);
    fencelock::mutation::activate(Some(Mutant::ReentrantFreesEarly));
    let kept = a_scope_keeps_its_lock().await;
    fencelock::mutation::activate(None);
    assert!(!kept);
}
