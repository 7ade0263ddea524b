//! The cases themselves put to the test: a deliberate breakage has to fail one of them.
//!
//! Cases are played in a calm world. Breakages that show only where messages are late or lost, or where waiting a little
//! longer is within the promise, are for others to catch: `mutants` has a test of this kind.

use std::path::Path;

use fencelock::mutation::{Mutant, activate};
use fencelock_tests::conformance::{Backend, case, first_failure};

const SEEN: &[Mutant] = &[
    Mutant::DeadlineWithoutDrift,
    Mutant::CancelForgets,
    Mutant::SameOwnerForEveryAttempt,
    Mutant::RenewAfterRelease,
    Mutant::TicketsNotRefreshed,
    Mutant::LateLocalDropFreesNext,
    Mutant::LocalTokenRepeats,
    Mutant::LineServedFromTheBack,
    Mutant::TryQueuesLocally,
    Mutant::ReadersPassInside,
    Mutant::LeaderForgetsFollowers,
    Mutant::MaxHoldIgnored,
    Mutant::FreeWithoutOwnerCheck,
    Mutant::RenewWithoutOwnerCheck,
    Mutant::RenewShortens,
    Mutant::BareCounterToken,
    Mutant::TokenRepeats,
    Mutant::TakePassesWaiters,
    Mutant::OnlyFreeSettles,
    Mutant::QueueServedFromTheBack,
    Mutant::ExpiryIgnored,
    Mutant::ReaderBesideWriter,
    Mutant::WriterBesideReaders,
    Mutant::ReadersPassWriters,
    Mutant::TwoUpgradeable,
    Mutant::UpgradeLetsReadersIn,
    Mutant::UpgradeBesideReaders,
    Mutant::UpgradeKeepsToken,
    Mutant::OnePermitTooMany,
    Mutant::PermitNeverExpires,
    Mutant::KindIgnored,
    Mutant::ReentrantFreesEarly,
    Mutant::SwapWithoutVersionCheck,
    Mutant::DeadRunRetried,
    Mutant::JobOverlaps,
    Mutant::JobTwiceInPeriod,
    Mutant::FarInstantAccepted,
    Mutant::ObserverGoesByFirstLook,
];

/// Those of entry queues. The others show where heartbeats, watches or answers are late or lost, or are about how often the
/// store is asked: `core/tests/client/queue.rs` has a world for each.
const SEEN_ON_QUEUES: &[Mutant] = &[
    Mutant::QueueHoldsBehindOne,
    Mutant::QueueReaderPassesWriter,
    Mutant::QueueWriterBesideReaders,
    Mutant::QueueTwoUpgradeable,
    Mutant::QueueUpgradeBesideReaders,
    Mutant::QueueEntryNotWeakened,
    Mutant::QueueOnePermitTooMany,
    Mutant::QueueKindIgnored,
    Mutant::QueueLeaseNotEnded,
    Mutant::QueueOrphanForgotten,
];

#[test]
fn a_broken_clause_fails_a_case() {
    all_seen(Backend::Sim, SEEN);
}

#[test]
fn a_broken_clause_of_entry_queues_fails_a_case() {
    all_seen(Backend::Queue, SEEN_ON_QUEUES);
}

fn all_seen(backend: Backend, mutants: &[Mutant]) {
    let cases = case::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("cases"));
    assert_eq!(first_failure(backend, &cases, 2), None, "with nothing broken");
    let mut unseen = Vec::new();
    for mutant in mutants {
        activate(Some(*mutant));
        let failure = first_failure(backend, &cases, 2);
        activate(None);
        match failure {
            Some((case, _)) => println!("{mutant:?}: `{case}`"),
            None => unseen.push(mutant),
        }
    }
    assert!(unseen.is_empty(), "no case sees {unseen:?}");
}
