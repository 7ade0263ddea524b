//! The cases themselves put to the test: a deliberate breakage has to fail one of them.
//!
//! Cases are played in a calm world. Breakages that show only where messages are late or lost, or where waiting a little
//! longer is within the promise, are for others to catch: `mutants` has a test of this kind.

use std::path::Path;

use fencelock::mutation::{Mutant, activate};
use fencelock_tests::conformance::{case, first_failure};

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

#[test]
fn a_broken_clause_fails_a_case() {
    let cases = case::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("cases"));
    assert_eq!(first_failure(&cases, 2), None, "with nothing broken");
    let mut unseen = Vec::new();
    for mutant in SEEN {
        activate(Some(*mutant));
        let failure = first_failure(&cases, 2);
        activate(None);
        match failure {
            Some((case, _)) => println!("{mutant:?}: `{case}`"),
            None => unseen.push(mutant),
        }
    }
    assert!(unseen.is_empty(), "no case sees {unseen:?}");
}
