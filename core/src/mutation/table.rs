//! The clauses that can be broken.

with_sessions! {
    in clients:
    /// A look at a guard does not compare its deadline with the clock.
    ClockNotCompared,
    /// An answer that another one overtook moves the deadline back.
    DeadlineMovesBack,
    /// An extension counts from its answer.
    ExtendCountsFromReply,
    /// A grant that was pushed in time counts though nobody looked before its end.
    LateTurnAccepted,
    /// A hold whose deadline has passed is lost without a word.
    ExpiryUntold,
    /// The deadline counts from the reply instead of the sending.
    DeadlineFromReply,
    /// The deadline leaves no room for drift.
    DeadlineWithoutDrift,
    /// A grant is counted with the client's own ttl instead of what the store says is left.
    GrantCountedWithOwnTtl,
    /// A grant counts whose token lies below one that was seen before.
    GrantBelowFloorAccepted,
    /// What a store says is left is believed though it is more than was asked for.
    LeftBelievedUnbounded,
    /// A grant whose deadline has passed on arrival is returned as held.
    LateGrantAccepted,
    /// A Renew answered after the deadline revives the hold.
    LateRenewRevives,
    /// A try whose grant came too late asks again instead of saying so.
    LateTryAsksAgain,
    /// A cancelled attempt is forgotten instead of undone.
    CancelForgets,
    /// The Leave of a ticket that was served and renewed is repeated only as long as a ticket would have lived.
    ServedTicketKept,
    /// A Take whose answer was lost is taken for granted.
    UnknownTakeBelieved,
    /// A request whose outcome is unknown is not undone.
    UnknownNotCleanedUp,
    /// An unconfirmed undo is not repeated.
    CleanupNotRepeated,
    /// A retry after an unknown outcome keeps its owner id.
    SameOwnerForEveryAttempt,
    /// The renewer goes on renewing a hold that was released.
    RenewAfterRelease,
    /// However many leases are due, they are renewed in one batch.
    AllAtOnce,
    /// A lease is renewed when nine tenths of it are over.
    RenewedLate,
    /// Renewal stops at the first error.
    RenewalDiesOfOneError,
    /// A renewal that finds nothing is not told as lost.
    GoneIsNotLost,
    /// An answer that a newer one overtook moves the base of a push back.
    BaseMovesBack,
    /// A push counts from a Refresh that nobody has answered.
    BaseFromUnanswered,
    /// A push that overtakes the answer of its Take counts from that answer.
    EarlyPushCountedFromAnswer,
    /// A push is believed whatever its token.
    LatePushBelieved,
    /// After a push the deadline counts from the push's arrival.
    PushCountedFromArrival,
    /// A push that overtakes the answer of its Take is thrown away and its ticket is not refreshed.
    EarlyPushDropped,
    /// A client that closes asks once more, behind the back of its own close.
    ClosingAsks,
    /// What a client that closes had asked for is granted to it all the same.
    ClosingGrants,
    /// A ticket of a client that closes is served to it all the same, or waited for.
    ClosingServes,
    /// A release that comes after the client's own close is told that the lock was lost.
    CloseToldAsLoss,
    /// An upgrade that is given up takes the others of its guard with it.
    OneGivesUpForAll,
    /// A guard is lost when a downgrade arrives after the upgrade that was asked for after it.
    LateDowngradeLoses,
    /// An upgrade that is given up takes back what was asked for since.
    OldUpgradeGivenUp,
    /// A run that nobody has taken yet when the client closes is told as failed.
    UntakenRunFails,
    /// What is to be taken back leaves the renewer before the cleanup task knows of it.
    ForgottenBeforeCleanup,
    /// A hold leaves the renewer as soon as its release begins.
    ReleaseForgotten,
    /// A client that closes does not know of a run that is being started.
    RunBeginsUnseen,
    /// A push that leaves less than half of its grant is believed without a Refresh.
    ShortRestBelieved,
    /// A fixed lease that was pushed is not renewed before it begins.
    FixedLeaseNotRenewedFirst,
    /// A lease of which much is over when it is told, or passed on, is renewed as if it had just begun.
    OldLeaseRenewedLate,
    /// A hold that `max_hold` ends soon is renewed ever more often.
    CapShortensLease,
    /// What was given back just before the store came back is not given back again.
    EndNotRepeated,
    /// An end of a hold is forgotten before the hold would have ended by itself.
    EndForgottenSoon,
    /// Every gap repeats every end, also those whose repetition is under way.
    EndsPileUp,
    /// A grant pushed to somebody who waits no more is left to its end.
    EndedTicketKeepsGrant,
    /// The same for who is told to come and ask.
    EndedTicketKeepsTurn,
    /// Notices that may have been lost move no ticket to be refreshed.
    GapIgnored,
    /// A loss that the store tells without being asked is not believed until a renewal is answered.
    GoneNotBelieved,
    /// A foreign holder, which tells nobody, is not looked at sooner.
    ForeignHolderNotPolled,
    /// A foreign holder is looked at as often after a minute as at first.
    ForeignPollSteady,
    /// What is freed when its turns inside are over, and the next one's Take, are two requests.
    FreedThenTaken,
    /// A hold that is passed on inside leaves the renewer with the guard it began with.
    RenewerForgetsPassed,
    /// Whoever enters a scope once more stands in its client's line.
    ReentryStandsInLine,
    /// A hold goes round inside for as long as somebody waits there.
    LocalBudgetIgnored,
    /// A hold goes on inside as long after its grant as its turns last.
    PassedLongAfterGrant,
    /// A foreign holder is looked at often by everybody in the queue, not only by the head.
    AllPollForeign,
    /// Tickets rest twice as long between two looks.
    TicketsRestLong,
    /// Tickets are not refreshed.
    TicketsNotRefreshed,
    /// A ticket that is gone is waited for all the same.
    GoneTicketKeptWaiting,
    /// Whoever stood behind a waiter that gives up begins at the end of the queue.
    PlaceNotInherited,
    /// A hold passes on inside whatever the next one asks for: a fixed lease, another order.
    PassesToOtherKinds,
    /// The last in the line of a client is served first.
    LineServedFromTheBack,
    /// A try stands in the line of its client.
    TryQueuesLocally,
    /// Readers and permits stand in the line of their client, and their holds pass on inside.
    ReadersPassInside,
    /// A hold that was passed on inside in time counts though nobody looked before its end.
    LatePassAccepted,
    /// Whoever looks at such a hold only after its end stands behind all who have asked meanwhile.
    LatePassLosesTurn,
    /// A release that finds nothing is told to have freed the lock.
    GoneToldAsReleased,
    /// A release whose answer was lost is told to have freed the lock.
    UnknownToldAsReleased,
    /// A release that comes while another thread tells the loss says that the lock was held until then.
    LostToldAsReleased,
    /// A late drop of one local guard frees the hold of the next one.
    LateLocalDropFreesNext,
    /// A hold is passed on inside though little or nothing is left of it.
    LostHoldPassedOn,
    /// All local holders of one hold show its first token.
    LocalTokenRepeats,
    /// A cancelled leader forgets the local waiters behind it.
    LeaderForgetsFollowers,
    /// The hold is renewed beyond `max_hold`.
    MaxHoldIgnored,
    /// A hold that `max_hold` has ended keeps its lease on the store.
    MaxHoldKeepsLease,
    in records:
    /// The undo of an unknown outcome lays no tombstone.
    NoTombstone,
    /// The store frees without comparing the owner.
    FreeWithoutOwnerCheck,
    /// The store renews without comparing the owner.
    RenewWithoutOwnerCheck,
    /// A grant draws as many tokens as are asked for, however far ahead of the clock.
    TokensOutrunClock,
    /// An end that is further away than the longest lease asked for stays there.
    FarEndKept,
    /// A renewal can bring the end of a lease nearer.
    RenewShortens,
    /// Tokens are a bare counter.
    BareCounterToken,
    /// The counter does not rise with a grant.
    TokenRepeats,
    /// A Take's floor is ignored.
    FloorIgnored,
    /// The lock is handed to a waiter whose ticket has ended.
    HandOverToDeadWaiter,
    /// The lock is handed to a waiter nobody has heard of for a while and nobody can reach.
    UnreachableWaiterServed,
    /// A waiter that cannot be told is passed over however lately it was heard of.
    DeafCountsAtOnce,
    /// Where one step grants to as many as it may, nobody has the others served.
    CrowdHalfServed,
    /// An open lock (`fair: false`) stays open for ever.
    OpenWithoutEnd,
    /// An open lock stays open though a hold beside it has vanished.
    OpenSurvivesVanishing,
    /// The head of the queue cannot enter while the lock is open.
    HeadMayNotEnter,
    /// The head of the queue is not told that the lock is open.
    OpenNotTold,
    /// When the head of the queue leaves an open lock, the next is not told that it is open.
    OpenHeadLeavesAlone,
    /// When somebody enters an open lock, whoever may hold beside it is not served.
    OpenEnteredByOne,
    /// Whoever is granted the lock in its turn is not told.
    HandOverNotTold,
    /// The head of the queue is passed over as often as somebody comes.
    HeadPassedWithoutEnd,
    /// A waiter nobody can push to is passed over though it is asking itself.
    CallerCountsAsDeaf,
    /// A hand-over grants the whole lease, to a client that may be dead.
    HandOverGrantsWholeLease,
    /// The counter of a lock is forgotten with its lease.
    CounterForgottenEarly,
    /// A floor counts only for whoever is granted at once.
    FloorOnlyWhenGranted,
    /// A floor lifts the counter however far ahead of the clock it is.
    FloorUnclamped,
    /// A refresh that finds the lock held does not renew it.
    RefreshDoesNotRenew,
    /// A refresh makes the ticket it does not find.
    RefreshCreatesTicket,
    /// A Take wins past those who wait.
    TakePassesWaiters,
    /// A Free leaves the next waiter unserved and untold.
    FreeDoesNotSettle,
    /// A Take serves nobody before it looks for itself.
    TakeDoesNotSettle,
    /// A Refresh serves nobody.
    RefreshDoesNotSettle,
    /// A Renew serves nobody.
    RenewDoesNotSettle,
    /// A Leave serves nobody.
    LeaveDoesNotSettle,
    /// Only Free serves the queue: a lock that vanished is served by nobody.
    OnlyFreeSettles,
    /// A Leave leaves the ticket in the queue.
    LeaveForgetsTicket,
    /// A tombstone ends long before what it is for may arrive.
    TombstoneTooShort,
    /// A Leave that finds the hold does not free it.
    LeaveForgetsHold,
    /// A Take whose owner id has a tombstone is granted.
    TombstoneIgnored,
    /// The last in the queue is served first.
    QueueServedFromTheBack,
    /// An expired lease still counts as held.
    ExpiryIgnored,
    /// A reader enters beside the writer.
    ReaderBesideWriter,
    /// A writer enters beside readers.
    WriterBesideReaders,
    /// A reader enters past a writer that waits.
    ReadersPassWriters,
    /// Two upgradeable readers hold at once.
    TwoUpgradeable,
    /// New readers enter while an upgrade waits for the old ones to leave.
    UpgradeLetsReadersIn,
    /// An upgrade does not wait for the readers to leave.
    UpgradeBesideReaders,
    /// An upgrade draws no token.
    UpgradeKeepsToken,
    /// A change of mode that a newer one has overtaken is carried out.
    LateChangeBelieved,
    /// One permit more is given out than there are.
    OnePermitTooMany,
    /// The permit of a crashed holder never comes back.
    PermitNeverExpires,
    /// A name in use as one kind can be taken as another.
    KindIgnored,
    /// Several locks as one: those that are free are kept though others are not.
    AllTakesSome,
    in quorums and cells:
    /// A vote is lost as soon as too many nodes refused or failed, though those that answer would tell why.
    FailureDecidesVote,
    /// Half of the nodes of a quorum, rounded down, are enough.
    QuorumTooSmall,
    /// A node that has lost its data votes at once.
    AmnesiacVotes,
    /// A hold on a quorum counts by the node that keeps it longest.
    QuorumLeftOfBest,
    /// A node that does not answer counts as one that grants.
    UnknownVoteCounts,
    /// A renewal on a quorum stands with any node that confirms it.
    RenewByMinority,
    /// A token that only some nodes keep is not written to the others.
    TokenNotWrittenBack,
    /// The token of an upgrade that only some nodes keep is not written to the others.
    UpgradeNotWrittenBack,
    /// A node that missed the change of a hold's mode is never told of it again.
    QuorumForgetsMode,
    /// A node that takes a hold once more when it was given back keeps it, if others are still late.
    FreedHealForgotten,
    /// A confirmed cleanup counts for what was added behind it, too.
    CleanupConfirmedBeforehand,
    /// A reader that asks once more to become the writer is renewed as the reader it was made again.
    WaitingWriterNotRenewed,
    /// Writing a token back takes the lock anew where it was given back meanwhile.
    RaiseTakesAnew,
    /// What a lost vote was granted is not given back.
    LostVoteKept,
    /// What a lost vote was granted is given back only where it is known to be.
    QuorumFreesWhereGranted,
    /// A node to which the end of a hold came before its vote keeps what it then granted.
    QuorumForgetsOvertaken,
    /// What a node did not confirm to have freed is not repeated to it.
    QuorumForgetsCleanups,
    /// A hold that is taken once more on a node stays there though it was freed meanwhile.
    HealAfterFree,
    /// The first guard of a scope that is given back frees the hold of all.
    ReentrantFreesEarly,
    /// Whoever enters a scope once more for longer gets what is left of the lease.
    LongerInnerNotRenewed,
    /// Whoever enters a scope once more and gives up on the way leaves its share behind.
    ScopeForgets,
    /// A downgrade that nobody stays for is not repeated.
    DowngradeForgotten,
    /// Several as one are returned though the first was lost while the last was waited for.
    AllWithoutALook,
    /// The gate lets older tokens pass.
    GateLetsOlderPass,
    /// A cell is replaced whatever its version.
    SwapWithoutVersionCheck,
    /// Versions are a bare counter, which starts over when the cell is gone.
    BareCounterVersion,
    /// A deleted cell leaves no memory of its version.
    DeletionForgotten,
    /// A cell remembers only its newest change.
    TrailForgotten,
    /// A compare-and-set that was not answered is taken for done.
    UnknownSwapBelieved,
    /// A compare-and-set that was not answered is made anew, without a look at whether it was carried out.
    BlindRetry,
    /// A run ends a job's record whoever it belongs to.
    JobEndsWithoutToken,
    /// A run is named by the moment it is asked for instead of its scheduled instant.
    JobByAskingTime,
    /// A run is named by its client's clock instead of the store's.
    JobByLocalClock,
    /// A dead run is run again though nobody asked for that.
    DeadRunRetried,
    /// A job starts while its last run is still alive.
    JobOverlaps,
    /// A job is run for the nearest instant, and a timer in the middle of the period meets now this one, now that.
    JobByNearestInstant,
    /// A job may start for another instant right after its last start.
    JobTwiceInPeriod,
    /// An instant is run however far it lies ahead of the store's clock.
    FarInstantAccepted,
    /// What a clock that was ahead has left in a job's record keeps it from running until then.
    WrongRecordBelieved,
    /// A run counts though its start was answered, or looked at, only after its lease.
    LateStartBelieved,
    /// A run frees its job's lock before it is marked as over.
    JobFreedBeforeMarked,
    /// A start that was given up is not taken back.
    GivenUpRunForgotten,
    /// A start that found the job's lock taken rests longer than its caller stays, and says that the store was silent.
    StartRestsTooLong,
    /// An observer of an election tells only who leads at its first look.
    ObserverGoesByFirstLook,
    on servers:
    /// What no replica has acknowledged is a grant all the same.
    AcksIgnored,
    /// A push is believed though replicas have to acknowledge.
    PushNeedsNoAcks,
    /// Only Takes have to be acknowledged.
    RenewalNeedsNoAcks,
    /// A step whose answer was lost is sent again by the driver.
    SentAgainAfterUnknown,
    /// A slot that is still coming is asked for without saying so.
    NotAsking,
    /// A server is not asked whether it evicts keys.
    EvictionNotAsked,
    /// The locks of a file belong to the process, as SQLite takes them by itself.
    LocksOfTheProcess,
    /// Nobody looks whether the log that is written to is still everybody's.
    LogNotLookedAt,
    /// Nobody looks whether the file that is written to is still the one under its path.
    FileNotLookedAt,
    /// A file is opened though it has another name beside this one.
    SecondNameAccepted,
    /// Each cancelled Take leaves a tombstone, also where what takes it back comes behind it on the same connection.
    EachCancelBuried,
}
