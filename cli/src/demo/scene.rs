//! What is shown at this moment: the lanes of the workers, the shelf, and what was said last.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::event::Event;
use super::words::{self, Tone};

/// Lines kept: more than any window shows.
const MEMORY: usize = 100;

pub(super) struct Scene {
    /// The headline of the act, and its number.
    pub act: u32,
    pub pieces: u32,
    /// What the shop believes is left.
    pub stock: i64,
    pub sold: u32,
    pub oversold: u32,
    pub refused: u32,
    pub hand_overs: u32,
    pub ttl: Duration,
    pub store: String,
    pub lanes: Vec<Lane>,
    pub said: VecDeque<(Tone, String)>,
    last_holder: usize,
}

#[derive(Clone)]
pub(super) struct Lane {
    pub state: WorkerState,
    pub since: Instant,
    pub served: u32,
    pub buyer: u32,
    pub token: u64,
    /// When the hold ends unless it is renewed.
    pub lease_end: Option<Instant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WorkerState {
    Idle,
    Waiting,
    Holding,
    Writing,
    /// Sold without a lock; `again`: a piece that was somebody else's already.
    Raced {
        piece: i64,
        again: bool,
    },
    Killed,
    Frozen,
    Refused,
    Counting,
}

impl Scene {
    pub(super) fn new() -> Self {
        Self {
            act: 0,
            pieces: 0,
            stock: 0,
            sold: 0,
            oversold: 0,
            refused: 0,
            hand_overs: 0,
            ttl: Duration::ZERO,
            store: String::new(),
            lanes: Vec::new(),
            said: VecDeque::new(),
            last_holder: 0,
        }
    }

    /// Changes what is seen as the event says.
    pub(super) fn apply(&mut self, event: &Event) {
        // How far the sale has come is seen without words.
        if let Some(said) = words::line(event).filter(|_| !matches!(event, Event::Sold { .. })) {
            self.said.push_back(said);
            self.said.drain(..self.said.len().saturating_sub(MEMORY));
        }
        match *event {
            Event::Opened { pieces, workers, ttl_ms, ref store, .. } => {
                self.pieces = pieces;
                self.ttl = Duration::from_millis(ttl_ms);
                self.store.clone_from(store);
                self.lanes = vec![Lane::new(); workers];
            }
            Event::WithoutLock { .. } => self.begin(1),
            Event::WithLock { .. } => self.begin(2),
            Event::Counting { .. } => {
                self.act = 3;
                self.lanes.iter_mut().for_each(|lane| lane.enter(WorkerState::Counting));
            }
            Event::Counted { .. } => {
                self.lanes.iter_mut().for_each(|lane| lane.enter(WorkerState::Idle));
            }
            Event::Raced { worker, buyer, piece, again } => {
                self.stock = piece - 1;
                self.sold += 1;
                self.oversold = self.sold.saturating_sub(self.pieces);
                let lane = self.lane(worker);
                (lane.buyer, lane.served) = (buyer, lane.served + 1);
                lane.enter(WorkerState::Raced { piece, again });
            }
            Event::Waiting { worker, buyer } => {
                let lane = self.lane(worker);
                lane.buyer = buyer;
                lane.enter(WorkerState::Waiting);
            }
            Event::Granted { worker, token, left_ms, .. } => {
                self.hand_overs += u32::from(self.last_holder != worker);
                self.last_holder = worker;
                let lane = self.lane(worker);
                lane.token = token;
                lane.enter(WorkerState::Holding);
                lane.lease(left_ms);
            }
            Event::Holding { worker, left_ms } => self.lane(worker).lease(left_ms),
            Event::Writing { worker } | Event::Thawed { worker, .. } => {
                self.lane(worker).state = WorkerState::Writing;
            }
            Event::Sold { worker, piece, sold, .. } => {
                self.stock = piece - 1;
                self.sold = sold;
                self.lane(worker).served += 1;
            }
            Event::Killed { worker, .. } => self.lane(worker).state = WorkerState::Killed,
            Event::Frozen { worker, .. } => self.lane(worker).state = WorkerState::Frozen,
            Event::Refused { worker, .. } => {
                self.refused += 1;
                self.lane(worker).state = WorkerState::Refused;
            }
            Event::Idle { worker } | Event::Replaced { worker, .. } => {
                self.lane(worker).enter(WorkerState::Idle);
            }
            _ => {}
        }
    }

    fn begin(&mut self, act: u32) {
        self.act = act;
        (self.stock, self.sold, self.oversold) = (self.pieces.into(), 0, 0);
        for lane in &mut self.lanes {
            *lane = Lane::new();
        }
    }

    fn lane(&mut self, worker: usize) -> &mut Lane {
        &mut self.lanes[worker - 1]
    }
}

impl Lane {
    fn new() -> Self {
        let (state, since) = (WorkerState::Idle, Instant::now());
        Self { state, since, served: 0, buyer: 0, token: 0, lease_end: None }
    }

    fn enter(&mut self, state: WorkerState) {
        (self.state, self.since, self.lease_end) = (state, Instant::now(), None);
    }

    fn lease(&mut self, left_ms: u64) {
        self.lease_end = Some(Instant::now() + Duration::from_millis(left_ms));
    }
}
