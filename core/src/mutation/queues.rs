//! The clauses of entry queues that can be broken.

/// Adds them to the others.
macro_rules! with_queues {
    ($($others:tt)*) => {
        mutants! {
            $($others)*
            in queues:
            /// An entry holds as soon as the one it watches is gone, whoever else stands before it.
            QueueHoldsBehindOne,
            /// An entry that waits is told of everybody before it.
            QueueWatchesEverybody,
            /// Whoever was waited for has gone, and those before it are asked for one after the other.
            QueueAsksOneByOne,
            /// A reader enters past a writer that waits.
            QueueReaderPassesWriter,
            /// A writer enters beside readers.
            QueueWriterBesideReaders,
            /// Two upgradeable readers hold at once.
            QueueTwoUpgradeable,
            /// An upgrade does not wait for the readers that hold.
            QueueUpgradeBesideReaders,
            /// A hold whose upgrade waits makes another entry for it, and forgets the first.
            QueueUpgradeJoinsAgain,
            /// A reader that waited enters beside an upgrade that has seen it wait.
            QueueReaderEntersBesideUpgrade,
            /// A writer that waited while an upgrade went past it has an older token.
            QueueFenceNotDrawn,
            /// A mutex holds with the token of its rank, though a writer before it may have drawn a greater one.
            QueueOutrankedHolds,
            /// An entry whose turn it is draws a second fence while it draws the first.
            QueueEntersTwice,
            /// A lesser mode is not written into the entry.
            QueueEntryNotWeakened,
            /// One permit more is given out than there are.
            QueueOnePermitTooMany,
            /// A name in use as one kind can be waited for as another.
            QueueKindIgnored,
            /// A grant draws as many tokens as it is asked for, and meets those of the next rank.
            QueueBlockNotCut,
            /// The session counts from the answer to its heartbeat.
            QueueCountsFromReply,
            /// A session whose deadline has passed is used again.
            QueueSessionResumed,
            /// A renewal is answered as if the session were whole.
            QueueLeaseBeyondSession,
            /// A renewal is answered though the store has not been heard of.
            QueueDoubtAnswered,
            /// All who need a session open one in turn, though nobody answers.
            QueueOpensInTurn,
            /// A try stands in the queue while the lock is held.
            QueueTryStands,
            /// A lock is taken in a session of which the store has not been heard.
            QueueTakesInDoubt,
            /// A pushed grant is as long as was asked for, whatever is left of the session.
            QueuePushIsWhole,
            /// A hold whose session or entry is gone is not told so.
            QueueLossNotTold,
            /// A lease that is shorter than the session is not ended.
            QueueLeaseNotEnded,
            /// What may lie on the store after an unknown outcome is left there.
            QueueOrphanForgotten,
            /// A removal without a rank does not refuse a later join.
            QueueLeaveRefusesNothing,
            /// A Leave that comes before its Take, while there is no session, does not refuse it.
            QueueLeaveForgotten,
            /// An entry that waits does not notice that it is gone itself.
            QueueOwnEntryUnwatched,
            /// A Refresh does not look, so that a watch that was lost is waited for.
            QueueRefreshDoesNotLook,
            /// A session that is not relied on any more is ended once, whether that is confirmed or not.
            QueueEndOnce,
            /// A client that closes leaves its session to end by itself.
            QueueCloseLeavesSession,
        }
    };
}
