//! The clauses of the entry queue, each with a world in virtual time: it keeps what is promised as it stands, and fails with
//! the clause broken.
#![cfg(all(feature = "test-hooks", feature = "mutants"))]
#![allow(missing_docs)]

use crate::entries;

use std::pin::pin;
use std::time::Duration;

use fencelock::mutation::{Mutant, activate};
use futures_util::future::{BoxFuture, Either, FutureExt, select};

use self::entries::{World, late, modes, order, random, sessions, unknown};

/// What a world takes at most, in its own time.
const LONGEST: Duration = Duration::from_secs(1000);
const SEEDS: u64 = 16;
/// How many random worlds there are.
const WORLDS: u64 = 600;
/// Worlds that have shown something once.
const KEPT: [u64; 1] = [13_207];

type Ended = Result<(), String>;

/// The world of a clause.
fn world_of(clause: Mutant, world: &World) -> BoxFuture<'_, Ended> {
    match clause {
        Mutant::QueueHoldsBehindOne => order::behind_one_that_leaves(world).boxed(),
        Mutant::QueueWatchesEverybody => order::one_is_woken(world).boxed(),
        Mutant::QueueAsksOneByOne => order::looks_are_few(world).boxed(),
        Mutant::QueueReaderPassesWriter => modes::reader_behind_a_writer(world).boxed(),
        Mutant::QueueWriterBesideReaders => modes::writer_alone(world).boxed(),
        Mutant::QueueTwoUpgradeable => modes::one_upgradeable(world).boxed(),
        Mutant::QueueUpgradeBesideReaders => modes::upgrade(world).boxed(),
        Mutant::QueueUpgradeJoinsAgain => modes::upgrade_asked_again(world).boxed(),
        Mutant::QueueReaderEntersBesideUpgrade => modes::reader_behind_an_upgrade(world).boxed(),
        Mutant::QueueFenceNotDrawn => modes::writer_after_an_upgrade(world).boxed(),
        Mutant::QueueOutrankedHolds => order::mutex_behind_a_writer(world).boxed(),
        Mutant::QueueEntersTwice => modes::one_fence(world).boxed(),
        Mutant::QueueEntryNotWeakened => modes::downgrade(world).boxed(),
        Mutant::QueueOnePermitTooMany => order::permits(world).boxed(),
        Mutant::QueueKindIgnored => order::kinds(world).boxed(),
        Mutant::QueueBlockNotCut => order::passes_inside(world).boxed(),
        Mutant::QueueCountsFromReply => sessions::cut_off(world, true).boxed(),
        Mutant::QueueSessionResumed => sessions::not_resumed(world).boxed(),
        Mutant::QueueLeaseBeyondSession => sessions::cut_off(world, false).boxed(),
        Mutant::QueueDoubtAnswered => sessions::in_doubt(world).boxed(),
        Mutant::QueueOpensInTurn => sessions::tries_without_a_store(world).boxed(),
        Mutant::QueueTryStands => order::tries_beside_tries(world).boxed(),
        Mutant::QueueTakesInDoubt => sessions::granted_in_doubt(world, false).boxed(),
        Mutant::QueuePushIsWhole => sessions::pushed_in_doubt(world).boxed(),
        Mutant::QueueLossNotTold => sessions::told_at_once(world).boxed(),
        Mutant::QueueLeaseNotEnded => sessions::short_lease(world).boxed(),
        Mutant::QueueOrphanForgotten => unknown::unanswered_join(world).boxed(),
        Mutant::QueueLeaveRefusesNothing => unknown::late_join(world).boxed(),
        Mutant::QueueLeaveForgotten => late::take_after_its_leave(world).boxed(),
        Mutant::QueueOwnEntryUnwatched => unknown::own_entry_gone(world).boxed(),
        Mutant::QueueRefreshDoesNotLook => unknown::lost_watch(world).boxed(),
        Mutant::QueueEndOnce => sessions::ended_again(world).boxed(),
        Mutant::QueueCloseLeavesSession => sessions::closed(world).boxed(),
        _ => async { Err("it has no world of its own".to_owned()) }.boxed(),
    }
}

/// Runs a world, with a clause broken or none.
fn run(
    broken: Option<Mutant>,
    seed: u64,
    work: impl for<'a> FnOnce(&'a World) -> BoxFuture<'a, Ended>,
) -> Ended {
    let world = World::new(seed);
    let ends = async {
        match select(pin!(work(&world)), pin!(world.sleep(LONGEST))).await {
            Either::Left((ended, _)) => ended,
            Either::Right(_) => Err("it does not end".to_owned()),
        }
    };
    activate(broken);
    let ended = world.sim.block_on(ends);
    activate(None);
    ended.unwrap_or_else(|stuck| Err(stuck.to_string()))
}

#[test]
fn every_clause_of_the_queue_holds() {
    for clause in Mutant::QUEUES {
        for seed in 0..SEEDS {
            let ended = run(None, seed, |world| world_of(*clause, world));
            assert_eq!(ended, Ok(()), "the world of {clause:?}, seed {seed}");
        }
    }
}

#[test]
fn every_broken_clause_of_the_queue_is_seen() {
    for clause in Mutant::QUEUES {
        let ended = |seed| run(Some(*clause), seed, |world| world_of(*clause, world));
        let seen = (0..SEEDS).filter(|seed| ended(*seed).is_err()).count();
        assert_eq!(seen, SEEDS as usize, "{clause:?} passes unseen");
    }
}

fn holds(work: impl for<'a> Fn(&'a World) -> BoxFuture<'a, Ended>) {
    for seed in 0..SEEDS {
        assert_eq!(run(None, seed, &work), Ok(()), "seed {seed}");
    }
}

#[test]
fn clients_are_served_in_their_order() {
    holds(|world| order::in_turn(world).boxed());
}

/// Who tries a name as another kind costs nobody the place in the queue.
#[test]
fn a_mutex_keeps_its_place_behind_one_of_another_kind_that_never_held() {
    holds(|world| order::mutex_keeps_its_place(world).boxed());
}

/// B72, B74: a holder and a waiter whose session has ended know it.
#[test]
fn b72_b74_a_session_that_ended_ends_what_hangs_on_it() {
    holds(|world| sessions::stood_still(world).boxed());
    holds(|world| unknown::waiters_session_ends(world).boxed());
}

/// B02: a lock is not lost right after it came to a waiter in a session that was about to end.
#[test]
fn b02_what_was_waited_for_can_be_renewed() {
    holds(|world| sessions::granted_in_doubt(world, true).boxed());
}

/// B63: what was not confirmed to be freed is freed in the end.
#[test]
fn b63_a_release_without_an_answer_frees_the_lock() {
    holds(|world| unknown::unanswered_release(world).boxed());
}

#[test]
fn random_worlds_keep_the_promises() {
    let failed = |seed: &u64| run(None, *seed, |world| random::any(world, *seed).boxed());
    let wrong = (0..WORLDS).chain(KEPT).find_map(|seed| Some((seed, failed(&seed).err()?)));
    assert_eq!(wrong, None);
}
