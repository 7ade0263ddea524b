//! The clauses that only real servers show: sessions that lock, tables of other libraries, `ZooKeeper`'s driver.

/// Adds them to the last group of the others.
macro_rules! with_sessions {
    ($($others:tt)*) => {
        with_queues! {
            $($others)*
            /// A session asks for a lock that it has.
            SessionAsksTwice,
            /// A session that may have one lock is asked for others.
            SessionHoldsSeveral,
            /// The end of a session's connection ends no guard.
            SessionEndUnheard,
            /// A heartbeat that failed because its session is over is repeated.
            SessionEndOverlooked,
            /// A lock is given back in the common session, whichever has it.
            SessionUnlocksElsewhere,
            /// A session gets no heartbeats.
            SessionNotKept,
            /// A grant that was waited for counts from the request on, however long ago that was.
            SessionGrantBelieved,
            /// A wait that is given up before the server has said that the lock is taken ends like a try.
            SessionWaitEndsAsTry,
            /// A wait that nobody wants any more is interrupted once, whether the server has begun it or not.
            SessionInterruptedOnce,
            /// A Leave that comes before its Take does not keep that from being carried out.
            SessionLeaveRefusesNothing,
            /// Who needs one session too many does not wait for those that are about to be given back.
            SessionsNotAwaited,
            /// Nobody looks whether tokens lie behind the server's clock, as after a restore.
            SessionTokensNotAdvanced,
            /// Nobody looks whether a pooler hands the session's statements to others.
            PoolerNotSought,
            /// On a database, the row of another library does not end a hold of ours.
            ForeignRowNotBelieved,
            /// On a database, the row of another library is not locked while a step is carried out.
            ForeignRowNotLocked,
            /// On `MySQL`, listeners sleep, so that who wakes one holds up who connects.
            ListenersSleep,
            /// On `ZooKeeper`, what a join without an answer has made is not looked for.
            ZookeeperOrphanNotLookedFor,
            /// On `ZooKeeper`, an entry that was made stays though the list behind it was refused.
            ZookeeperMadeForgotten,
            /// On `ZooKeeper`, a join without an answer is taken back by removing whatever entry is first.
            ZookeeperOtherRemoved,
            /// On `ZooKeeper`, the end of a session is not told.
            ZookeeperEndUntold,
            /// On `ZooKeeper`, a watch that told a change is not placed anew.
            ZookeeperWatchNotPlacedAnew,
            /// On `ZooKeeper`, a watch that tells a change is believed to tell a removal.
            ZookeeperChangeIsRemoval,
            /// On `ZooKeeper`, a member that is behind the others is read.
            ZookeeperReadWithoutSync,
            /// On `ZooKeeper`, a heartbeat counts for the whole length of the session.
            ZookeeperBeatCountsInFull,
            /// On `ZooKeeper`, a session is used though the ensemble has given it another length.
            ZookeeperOtherLengthTaken,
            /// Whoever connects to the port that leads to `ZooKeeper` over TLS is let through.
            ZookeeperRelayOpenToAll,
        }
    };
}
