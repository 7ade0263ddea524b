//! The clauses of the entry queue, each with a world in virtual time.
#![cfg(feature = "test-hooks")]
#![allow(missing_docs)]

use crate::entries;

use std::pin::pin;
use std::time::Duration;

use futures_util::future::{BoxFuture, Either, FutureExt, select};

use self::entries::{World, late, modes, order, random, sessions, unknown};

/// The longest time that a world may take, in its own time.
const LONGEST: Duration = Duration::from_secs(1000);
const SEEDS: u64 = 16;
/// How many random worlds there are.
const WORLDS: u64 = 600;
/// Worlds that have shown something once.
const KEPT: [u64; 1] = [13_207];

type Ended = Result<(), String>;

/// Runs a world.
fn run(seed: u64, work: impl for<'a> FnOnce(&'a World) -> BoxFuture<'a, Ended>) -> Ended {
    let world = World::new(seed);
    let ends = async {
        match select(pin!(work(&world)), pin!(world.sleep(LONGEST))).await {
            Either::Left((ended, _)) => ended,
            Either::Right(_) => Err("it does not end".to_owned()),
        }
    };
    world.sim.block_on(ends).unwrap_or_else(|stuck| Err(stuck.to_string()))
}

fn holds(work: impl for<'a> Fn(&'a World) -> BoxFuture<'a, Ended>) {
    for seed in 0..SEEDS {
        assert_eq!(run(seed, &work), Ok(()), "seed {seed}");
    }
}

holds! { world:
    behind_one_that_leaves: order::behind_one_that_leaves(world),
    one_is_woken: order::one_is_woken(world),
    looks_are_few: order::looks_are_few(world),
    reader_behind_a_writer: modes::reader_behind_a_writer(world),
    writer_alone: modes::writer_alone(world),
    mutex_behind_a_writer: order::mutex_behind_a_writer(world),
    permits: order::permits(world),
    kinds: order::kinds(world),
    passes_inside: order::passes_inside(world),
    cut_off_before_the_answer: sessions::cut_off(world, true),
    not_resumed: sessions::not_resumed(world),
    cut_off: sessions::cut_off(world, false),
    in_doubt: sessions::in_doubt(world),
    tries_without_a_store: sessions::tries_without_a_store(world),
    tries_beside_tries: order::tries_beside_tries(world),
    granted_in_doubt: sessions::granted_in_doubt(world, false),
    pushed_in_doubt: sessions::pushed_in_doubt(world),
    told_at_once: sessions::told_at_once(world),
    short_lease: sessions::short_lease(world),
    unanswered_join: unknown::unanswered_join(world),
    late_join: unknown::late_join(world),
    take_after_its_leave: late::take_after_its_leave(world),
    own_entry_gone: unknown::own_entry_gone(world),
    lost_watch: unknown::lost_watch(world),
    ended_again: sessions::ended_again(world),
    closed: sessions::closed(world),
}

#[test]
fn clients_are_served_in_their_order() {
    holds(|world| order::in_turn(world).boxed());
}

/// A client that tries a name as another kind costs nobody the place in the queue.
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
    let failed = |seed: &u64| run(*seed, |world| random::any(world, *seed).boxed());
    let wrong = (0..WORLDS).chain(KEPT).find_map(|seed| Some((seed, failed(&seed).err()?)));
    assert_eq!(wrong, None);
}
