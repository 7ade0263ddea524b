//! The simulator can see: every clause that is broken on purpose is caught within 20,000 worlds, and healthy worlds break
//! no promise. The few it meets too rarely have worlds of their own, in `core/tests/client/clauses.rs`.
//!
//! A short run begins with the world in which a breakage was seen before, by `seen.txt`, and searches only where it is not
//! seen there any more. In full all are searched for. Either prints the lines that belong into the list by now.

use fencelock::mutation::Mutant;
use fencelock_worlds::campaign::{About, Campaign, Outcome};
use fencelock_worlds::cells;
use fencelock_worlds::checker::Rule;
use fencelock_worlds::plan::{Family, Plan};
use fencelock_worlds::world;

/// The most worlds it may take to catch a mutant.
const PATIENCE: u64 = 20_000;
/// In which world each was seen: what it is about, the breakage, its family, the seed.
const SEEN: &str = include_str!("../seen.txt");

/// Clauses that other suites see: a client undoes what a store wrongly gave it of several locks, and upgrades are rarely
/// disturbed here (`equivalence` sees these); whoever is passed a hold looks at it itself (`clauses` sees this); no world
/// drops a downgrade (`awaits` sees this); here a client is never closed, and never told of a loss, in the middle of its
/// own step, as threads do it (`shuttle` sees these).
const ELSEWHERE: &[Mutant] = &[
    Mutant::AllTakesSome,
    Mutant::ClosingAsks,
    Mutant::ClosingGrants,
    Mutant::ClosingServes,
    Mutant::CleanupConfirmedBeforehand,
    Mutant::DowngradeForgotten,
    Mutant::FailureDecidesVote,
    Mutant::ForgottenBeforeCleanup,
    Mutant::LateChangeBelieved,
    Mutant::LostHoldPassedOn,
    Mutant::LostToldAsReleased,
    Mutant::ReleaseForgotten,
    Mutant::RunBeginsUnseen,
    Mutant::UntakenRunFails,
    Mutant::UpgradeLetsReadersIn,
];

/// Those of entry queues that are seen here. The others are too rare here, or cost only time: `core/tests/client/queue.rs`
/// has a world for each.
const QUEUES: &[Mutant] = &[
    Mutant::QueueHoldsBehindOne,
    Mutant::QueueReaderPassesWriter,
    Mutant::QueueWriterBesideReaders,
    Mutant::QueueTwoUpgradeable,
    Mutant::QueueUpgradeBesideReaders,
    Mutant::QueueReaderEntersBesideUpgrade,
    Mutant::QueueFenceNotDrawn,
    Mutant::QueueOnePermitTooMany,
    Mutant::QueueKindIgnored,
    Mutant::QueueCountsFromReply,
    Mutant::QueueLeaseBeyondSession,
    Mutant::QueueOrphanForgotten,
    Mutant::QueueLeaveRefusesNothing,
    Mutant::QueueRefreshDoesNotLook,
];

/// The family in which a clause matters, where all families in turn would take long.
fn family_for(mutant: Mutant) -> Option<Family> {
    match mutant {
        Mutant::LatePushBelieved => Some(Family::Replay),
        Mutant::CleanupNotRepeated => Some(Family::Lossy),
        Mutant::CrowdHalfServed => Some(Family::Crowd),
        Mutant::AmnesiacVotes => Some(Family::Amnesia),
        Mutant::QuorumTooSmall
        | Mutant::LostVoteKept
        | Mutant::QuorumFreesWhereGranted
        | Mutant::QuorumForgetsOvertaken
        | Mutant::WaitingWriterNotRenewed
        | Mutant::RaiseTakesAnew => Some(Family::Quorum),
        Mutant::QuorumLeftOfBest | Mutant::UnknownVoteCounts | Mutant::RenewByMinority => {
            Some(Family::Votes)
        }
        Mutant::TokenNotWrittenBack
        | Mutant::UpgradeNotWrittenBack
        | Mutant::QuorumForgetsMode
        | Mutant::QuorumForgetsCleanups
        | Mutant::HealAfterFree => Some(Family::Minority),
        _ => None,
    }
}

fn campaign(seeds: u64, mutant: Option<Mutant>) -> Campaign {
    let family = mutant.and_then(family_for);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    Campaign { from: 0, seeds, mutant, family, threads }
}

/// Looks for the breakage of a campaign, first where it was seen before.
fn hunt(about: About, campaign: &Campaign) -> Outcome {
    let mutant = campaign.mutant.map(|mutant| format!("{mutant:?}")).unwrap_or_default();
    let family = campaign.family.map_or("any".into(), |family| format!("{family:?}"));
    let about_what = match about {
        About::Locks => "Locks",
        About::Sessions => "Sessions",
        About::Cells(_) => "Cells",
    };
    let hunted = format!("{about_what} {mutant} {family}");
    let seen = SEEN.lines().find_map(|line| line.strip_prefix(&hunted)?.trim().parse().ok());
    if let Some(seed) = seen.filter(|_| !fencelock_tests::in_full()) {
        let known = about.run(&Campaign { from: seed, seeds: 1, ..*campaign });
        if known.found.is_some() {
            return known;
        }
        println!("{hunted} is not seen in world {seed} any more");
    }
    let outcome = about.run(campaign);
    if let Some((seed, _)) = outcome.found {
        println!("for seen.txt: {hunted} {seed}");
    }
    outcome
}

#[test]
fn every_broken_clause_of_locks_is_caught() {
    let elsewhere = [ELSEWHERE, Mutant::RARE, cells::MUTANTS].concat();
    let of_locks = Mutant::ALL.iter().filter(|mutant| !elsewhere.contains(mutant));
    all_caught(of_locks, About::Locks);
}

#[test]
fn every_broken_clause_of_cells_is_caught() {
    all_caught(cells::MUTANTS, About::Cells(None));
}

#[test]
fn every_broken_clause_of_entry_queues_is_caught() {
    all_caught(QUEUES, About::Sessions);
}

fn all_caught<'a>(mutants: impl IntoIterator<Item = &'a Mutant>, about: About) {
    let mut missed = Vec::new();
    for &mutant in mutants {
        let outcome = hunt(about, &campaign(PATIENCE, Some(mutant)));
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

/// A loss that only the store knows of is told with the next renewal, whatever it was that the store lost.
#[test]
fn a_loss_that_is_not_told_is_caught_wherever_there_is_one() {
    for family in [Family::Wiped, Family::Restored, Family::Jumped, Family::Deleted] {
        let untold =
            Campaign { family: Some(family), ..campaign(PATIENCE, Some(Mutant::GoneIsNotLost)) };
        let found = hunt(About::Locks, &untold).found;
        let rule = found.map(|(_, violation)| violation.rule);
        assert_eq!(rule, Some(Rule::LossUntold), "in {family:?}");
    }
}

#[test]
fn healthy_worlds_keep_every_promise() {
    let outcome = campaign(200, None).run();
    println!("{outcome}");
    assert!(!outcome.failed(), "{:?}, unsteady {:?}", outcome.found, outcome.unsteady);
    assert_eq!(outcome.worlds(), 200);
    let figures = outcome.figures;
    let all = [figures.grants, figures.hand_overs, figures.cancels, figures.losses];
    assert!(all.iter().all(|count| *count > 200), "worlds in which little happens: {figures:?}");
}

/// Worlds that broke a promise once: the first of several locks was lost with the store's data and acquired by another
/// task before the last was won; a renewal that a cancelled upgrade overtook failed; readers of a quorum showed the same
/// token and their losses looked like one; a writer that died waiting kept readers out of a free lock; a cancelled upgrade
/// found the hold gone and gave the rest of it up, and the guard did not know; a renewal was answered by a clock that had
/// jumped, and the checker did not know of that lease; a node granted a hold once more behind the cleanup of its end, whose answer
/// was taken to pay for that too; what a crashed client had asked for arrived so late that the checker did not wait
/// for the end of that lease; a push with half of its lease was renewed as late as a whole one.
const FOUND: [(Family, u64); 9] = [
    (Family::Wiped, 16_267),
    (Family::Quorum, 134),
    (Family::Minority, 584),
    (Family::Votes, 1001),
    (Family::Votes, 2_012_366),
    (Family::Jumped, 30_175_272),
    (Family::Amnesia, 50_045_119),
    (Family::Storm, 50_036_939),
    (Family::Slow, OLD_LEASE),
];
/// The world of [`Mutant::OldLeaseRenewedLate`]. One of sixty thousand shows it.
const OLD_LEASE: u64 = 500_059_210;
/// The world of [`Mutant::StartRestsTooLong`]. One of a hundred thousand shows it.
const LONG_REST: u64 = 510_006_241;

#[test]
fn what_was_found_once_is_not_found_again() {
    for (family, seed) in FOUND {
        let ending = world::run(&Plan::of_family(seed, family), false);
        assert_eq!(ending.violations, [], "{family:?}, seed {seed}");
    }
    let ending = cells::run(&cells::Plan::draw(LONG_REST), false);
    assert_eq!(ending.violations, [], "cells, seed {LONG_REST}");
}

/// The worlds that showed these breakages.
#[test]
fn a_late_renewal_and_a_long_rest_are_caught() {
    for (about, mutant, seed, rule) in [
        (About::Locks, Mutant::OldLeaseRenewedLate, OLD_LEASE, Rule::FalselyLost),
        (About::Cells(None), Mutant::StartRestsTooLong, LONG_REST, Rule::WrongError),
    ] {
        let found = about.run(&Campaign { from: seed, ..campaign(1, Some(mutant)) }).found;
        assert_eq!(found.map(|(_, violation)| violation.rule), Some(rule), "{mutant:?}");
    }
}

/// The world that showed this breakage. One of fifty thousand worlds shows it.
#[test]
fn a_debt_that_is_paid_beforehand_is_caught() {
    let of = Campaign {
        from: 50_045_119,
        seeds: 1,
        ..campaign(1, Some(Mutant::CleanupConfirmedBeforehand))
    };
    let found = Campaign { family: Some(Family::Amnesia), ..of }.run().found;
    assert_eq!(found.map(|(_, violation)| violation.rule), Some(Rule::Ghost));
}

#[test]
fn healthy_worlds_over_sessions_keep_every_promise() {
    let outcome = campaign(200, None).run_sessions();
    println!("{outcome}");
    assert!(!outcome.failed(), "{:?}, unsteady {:?}", outcome.found, outcome.unsteady);
    let figures = outcome.figures;
    let all = [figures.grants, figures.hand_overs, figures.cancels, figures.losses];
    assert!(all.iter().all(|count| *count > 200), "worlds in which little happens: {figures:?}");
}

#[test]
fn healthy_worlds_of_cells_keep_every_promise() {
    let outcome = campaign(500, None).run_cells(None);
    println!("{outcome}");
    assert!(!outcome.failed(), "{:?}, unsteady {:?}", outcome.found, outcome.unsteady);
    let figures = outcome.figures;
    let all = [figures.grants, figures.cancels, figures.losses, figures.refusals];
    assert!(all.iter().all(|count| *count > 100), "worlds in which little happens: {figures:?}");
}
