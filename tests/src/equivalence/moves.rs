//! The events that may happen to a store in a run, and how they are drawn.

use std::time::Duration;

use fencelock::Token;
use fencelock::port::{Action, Kind, Layout, LockKey, Mode, OwnerId, Step, Take, Vote};
use proptest::prelude::*;

use super::world::World;

mod found;

pub use self::found::found;

/// Clients in a run.
pub const CLIENTS: usize = 2;
/// Locks in a run.
pub const LOCKS: u8 = 2;
/// How long a node must have kept its data to vote.
const AGED: Duration = Duration::from_secs(5);
/// Owner ids in a run.
const OWNERS: u8 = 5;

/// The times of a run.
#[derive(Clone, Debug)]
pub struct Scale {
    /// The leases asked for.
    pub ttls: [Duration; 3],
    /// The step in which time passes.
    pub unit: Duration,
    /// The most units at once.
    pub leap: u32,
    /// The life of tombstones.
    pub tombstone: Duration,
    /// Whether Takes carry floors above the counter.
    pub high_floors: bool,
    /// How long the moves between two passes may really take.
    pub patience: Duration,
    /// How the locks are laid out.
    pub layout: Layout,
    /// Whether the store is a node of a quorum: Takes are votes, and nobody waits.
    pub votes: bool,
}

impl Scale {
    /// For a clock that the test moves. No sum of units comes near the end of a lease, so that what really passes in
    /// the meantime decides nothing; the other limits are met exactly.
    pub fn moved() -> Self {
        Self {
            ttls: [3_850, 20_350, 600_050].map(Duration::from_millis),
            unit: Duration::from_millis(1_100),
            leap: 500,
            tombstone: Duration::from_secs(66),
            high_floors: true,
            patience: Duration::from_millis(400),
            layout: Layout::Own,
            votes: false,
        }
    }

    /// For a clock that runs.
    pub fn running() -> Self {
        Self {
            ttls: [Duration::from_millis(300), Duration::from_mins(10), Duration::from_mins(12)],
            unit: Duration::from_millis(750),
            leap: 1,
            tombstone: Duration::from_mins(1),
            high_floors: false,
            patience: Duration::from_millis(200),
            layout: Layout::Own,
            votes: false,
        }
    }

    /// The same where the locks are laid out as Redisson does.
    #[must_use]
    pub fn as_redisson(self) -> Self {
        Self { layout: Layout::Redisson, ..self }
    }

    /// The same on a node of a quorum.
    #[must_use]
    pub fn voting(self) -> Self {
        Self { votes: true, ..self }
    }

    /// The lock's key.
    pub(super) fn lock(&self, number: u8) -> LockKey {
        LockKey::laid_out(self.layout, ["orders:42", "shelf {7}:}*"][usize::from(number)])
    }
}

/// One thing that happens.
#[derive(Clone, Debug)]
pub enum Move {
    /// A client sends steps.
    Batch {
        /// Which client.
        client: usize,
        /// The steps that it sends.
        steps: Vec<StepPlan>,
    },
    /// A client takes all locks as one, or none.
    All {
        /// Which client.
        client: usize,
        /// Its Takes.
        takes: Vec<StepPlan>,
    },
    /// So many units of time pass.
    Pass(u32),
    /// A lock is deleted by somebody who is not fencelock.
    Vanish {
        /// Which lock.
        lock: u8,
    },
    /// A client goes away without a word.
    HangUp {
        /// Which client.
        client: usize,
    },
}

/// A step, before it is known which tokens there are.
#[derive(Clone, Debug)]
pub struct StepPlan {
    lock: u8,
    who: Who,
    kind: Kind,
    action: ActionPlan,
}

/// The owner of a step; most steps are by an owner whom they concern.
#[derive(Clone, Copy, Debug)]
enum Who {
    Owner(u8),
    Holder(usize),
    Head,
}

#[derive(Clone, Copy, Debug)]
enum ActionPlan {
    Take { ttl: usize, wait: bool, block: u32, floor: Floor, share: usize },
    Refresh { ttl: usize },
    Renew { ttl: usize },
    Free { open: bool },
    Leave { tombstone: bool },
    Read,
}

#[derive(Clone, Copy, Debug)]
enum Floor {
    None,
    Seen,
    Above,
    FarAbove,
}

/// How a read-write lock may be held. Plain readers are the most.
const SHARES: [Mode; 3] = [Mode::Read, Mode::Write, Mode::Read];

/// Owner ids are alike on purpose: whoever looks for one within others must not mistake them.
fn owner(number: u8) -> OwnerId {
    let text = format!("{:032x}", 0x1111_1110 + u32::from(number));
    OwnerId::parse(&text).expect("32 hexadecimal digits")
}

impl StepPlan {
    pub(super) fn step(&self, scale: &Scale, world: &World) -> Step {
        let kind = match self.kind {
            // A quorum has no permits, and none are shared with Redisson.
            Kind::Semaphore if scale.votes || scale.layout == Layout::Redisson => Kind::ReadWrite,
            kind => kind,
        };
        let lock = scale.lock(self.lock);
        let owner = match self.who {
            Who::Owner(number) => owner(number),
            Who::Holder(number) => world.holder(&lock, number).unwrap_or_else(|| owner(0)),
            Who::Head => world.head(&lock).unwrap_or_else(|| owner(1)),
        };
        let action = match self.action {
            ActionPlan::Take { ttl, wait, block, floor, share } => {
                let floor = match floor {
                    // Where both clocks run, a floor that either clamps to its own is not the same one.
                    Floor::Above | Floor::FarAbove if !scale.high_floors => 0,
                    Floor::None => 0,
                    Floor::Seen => world.last(&lock),
                    Floor::Above => world.last(&lock) + 1_000_000,
                    Floor::FarAbove => world.now + 3_600_000_000,
                };
                let info = format!("{{\"owner\":\"{owner}\"}}").into();
                let floor = Token::new(floor);
                let (mode, limit, permits) = match kind {
                    Kind::ReadWrite => (SHARES[share], 1, 1),
                    Kind::Semaphore => (Mode::Permit, share as u32 % 3 + 1, ttl as u32 + 1),
                    _ => (Mode::Exclusive, 1, 1),
                };
                let ttl = scale.ttls[ttl];
                // Of those that would wait none does on a quorum; the others write their token back.
                let vote = scale.votes.then_some(Vote { aged: AGED, again: !wait });
                let wait = wait && !scale.votes;
                Action::Take(Take { mode, limit, permits, ttl, wait, block, floor, info, vote })
            }
            ActionPlan::Refresh { ttl } => Action::Refresh { ttl: scale.ttls[ttl] },
            ActionPlan::Renew { ttl } => Action::Renew { ttl: scale.ttls[ttl] },
            ActionPlan::Free { open } => Action::Free { open },
            ActionPlan::Leave { tombstone } => {
                Action::Leave { tombstone: tombstone.then_some(scale.tombstone) }
            }
            ActionPlan::Read => Action::Read,
        };
        Step { lock, owner, kind, action }
    }
}

/// Random moves, fit for any store.
pub fn moves(scale: &Scale) -> impl Strategy<Value = Vec<Move>> + use<> {
    let leap = scale.leap;
    // Some runs are nearly all `fair: false`: only there a head is passed over again and again.
    let open = prop_oneof![2 => Just(0.3), 1 => Just(0.95)];
    // Most steps of a run are for locks of one kind.
    let kind = prop_oneof![
        3 => Just(Kind::Mutex),
        3 => Just(Kind::ReadWrite),
        2 => Just(Kind::Semaphore),
    ];
    let run = move |(open, kind)| prop::collection::vec(one(leap, open, kind), 1..50);
    (open, kind).prop_flat_map(run)
}

fn one(leap: u32, open: f64, kind: Kind) -> impl Strategy<Value = Move> {
    let some_kind = prop::sample::select(&[Kind::Mutex, Kind::ReadWrite, Kind::Semaphore][..]);
    let kind = prop_oneof![30 => Just(kind), 1 => some_kind];
    let share = 0..SHARES.len();
    let floor = prop_oneof![
        6 => Just(Floor::None),
        1 => Just(Floor::Seen),
        1 => Just(Floor::Above),
        1 => Just(Floor::FarAbove),
    ];
    let ttl = 0..3usize;
    let number = (0..OWNERS).prop_map(Who::Owner);
    let holder = (0..3usize).prop_map(Who::Holder);
    let anyone = prop_oneof![2 => number.clone(), 2 => holder.clone(), 2 => Just(Who::Head)];
    let block = prop_oneof![Just(1u32), Just(16)];
    let take = (ttl.clone(), prop::bool::weighted(0.8), block, floor, share).prop_map(
        |(ttl, wait, block, floor, share)| ActionPlan::Take { ttl, wait, block, floor, share },
    );
    let refresh = ttl.clone().prop_map(|ttl| ActionPlan::Refresh { ttl });
    let renew = ttl.prop_map(|ttl| ActionPlan::Renew { ttl });
    let free = prop::bool::weighted(open).prop_map(|open| ActionPlan::Free { open });
    let leave = any::<bool>().prop_map(|tombstone| ActionPlan::Leave { tombstone });
    let lock = prop_oneof![5 => Just(0), 1 => 0..LOCKS];
    // What a client sends that releases while others of its own wait: stores may carry it out as one.
    let pass = (lock.clone(), kind.clone(), free.clone(), number.clone(), take.clone()).prop_map(
        |(lock, kind, free, who, take)| {
            let free = StepPlan { lock, kind, who: Who::Holder(0), action: free };
            vec![free, StepPlan { lock, kind, who, action: take }]
        },
    );
    let takes = (number.clone(), take.clone(), take.clone()).prop_map(|(who, first, second)| {
        let plan = |(lock, action)| {
            let ActionPlan::Take { ttl, block, floor, share, .. } = action else {
                unreachable!("only Takes are drawn here")
            };
            let action = ActionPlan::Take { ttl, wait: false, block, floor, share };
            StepPlan { lock, kind: Kind::Mutex, who, action }
        };
        (0..LOCKS).zip([first, second]).map(plan).collect()
    });
    let step = prop_oneof![
        10 => (number.clone(), take.clone()),
        3 => (anyone.clone(), refresh),
        2 => (anyone.clone(), renew),
        2 => (anyone.clone(), free.clone()),
        6 => (holder, free),
        3 => (anyone.clone(), leave),
        2 => (anyone, Just(ActionPlan::Read)),
    ];
    let step = (lock.clone(), kind, step).prop_map(|(lock, kind, (who, action))| StepPlan {
        lock,
        who,
        kind,
        action,
    });
    let several = prop::collection::vec(step.clone(), 2..5);
    let batch = prop_oneof![6 => prop::collection::vec(step, 1), 2 => several, 1 => pass];
    prop_oneof![
        24 => (0..CLIENTS, batch).prop_map(|(client, steps)| Move::Batch { client, steps }),
        1 => (0..CLIENTS, takes).prop_map(|(client, takes)| Move::All { client, takes }),
        4 => (1..=leap.min(4)).prop_map(Move::Pass),
        1 => (1..=leap).prop_map(Move::Pass),
        1 => lock.prop_map(|lock| Move::Vanish { lock }),
        1 => Just(Move::HangUp { client: 1 }),
    ]
}
