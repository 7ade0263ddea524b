//! The clauses that need a world of their own.

use super::Mutant;

impl Mutant {
    /// Those that random worlds meet too rarely: `core/tests/clauses.rs` has a world of its own for each.
    pub const RARE: &'static [Self] = &[
        Self::AllAtOnce,
        Self::CloseToldAsLoss,
        Self::OneGivesUpForAll,
        Self::OldUpgradeGivenUp,
        Self::LateDowngradeLoses,
        Self::FreedHealForgotten,
        Self::GapIgnored,
        Self::EndNotRepeated,
        Self::EndForgottenSoon,
        Self::EndsPileUp,
        Self::EndedTicketKeepsGrant,
        Self::EndedTicketKeepsTurn,
        Self::ShortRestBelieved,
        Self::FixedLeaseNotRenewedFirst,
        Self::RescheduledByWantedTtl,
        Self::MaxHoldKeepsLease,
        Self::ForeignHolderNotPolled,
        Self::ForeignPollSteady,
        Self::FreedThenTaken,
        Self::WheelForgetsPassed,
        Self::ReentryStandsInLine,
        Self::LocalBudgetIgnored,
        Self::UnreachableWaiterServed,
        Self::DeafCountsAtOnce,
        Self::OpenWithoutEnd,
        Self::HeadPassedWithoutEnd,
        Self::LateTryAsksAgain,
        Self::ServedTicketKept,
        Self::ClockNotCompared,
        Self::DeadlineMovesBack,
        Self::PlaceNotInherited,
        Self::PassesToOtherKinds,
        Self::CallerCountsAsDeaf,
        Self::OpenSurvivesVanishing,
        Self::BaseMovesBack,
        Self::AllPollForeign,
        Self::LongerInnerNotRenewed,
        Self::LatePassAccepted,
        Self::HandOverGrantsWholeLease,
        Self::FloorUnclamped,
    ];
}
