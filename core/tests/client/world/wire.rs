//! A wire to a store that can be tampered with.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use fencelock::driver::memory::MemoryStore;
use fencelock::port::{
    Action, Answer, Capabilities, Failure, LeaseStore, LockKey, Notice, NoticeSink, Outcome,
    OwnerId, Step,
};
use fencelock::{Code, Error, Result, Token};

#[derive(Clone)]
pub(crate) struct Wire {
    store: Arc<MemoryStore>,
    ways: Arc<Mutex<Ways>>,
}

/// The messages that are lost on the way.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Loses {
    #[default]
    Nothing,
    /// Batches with a Refresh, unanswered.
    Refreshes,
    /// Releases: each is confirmed, and then lost with the server that confirmed it.
    Ends,
}

/// The changes to answers on the way.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Distorts {
    #[default]
    Nothing,
    /// Leases have an hour left.
    Leases,
    /// Tokens are two minutes older.
    Tokens,
}

impl Distorts {
    fn change(self, answer: &mut Answer) {
        let Ok(Outcome::Granted { token, left, .. }) = answer else { return };
        match self {
            Self::Nothing => {}
            Self::Leases => *left = Duration::from_secs(3600),
            Self::Tokens => *token = older(*token),
        }
    }
}

fn older(token: Token) -> Token {
    Token::new(token.get() - 120_000_000)
}

#[derive(Default)]
struct Ways {
    sink: Option<NoticeSink>,
    deaf: bool,
    loses: Loses,
    distorts: Distorts,
    estranges: bool,
    calls: bool,
    /// How many steps each batch had.
    batches: Vec<usize>,
    /// The owner that asked last.
    newest: Option<OwnerId>,
}

impl Wire {
    pub(crate) fn of(store: MemoryStore) -> Self {
        Self { store: Arc::new(store), ways: Arc::default() }
    }

    /// Whether the store's notices are lost.
    pub(crate) fn deafen(&self, deaf: bool) {
        self.ways.lock().unwrap().deaf = deaf;
    }

    /// Sets the messages that are lost from now on.
    pub(crate) fn lose(&self, loses: Loses) {
        self.ways.lock().unwrap().loses = loses;
    }

    /// Sets the changes to answers from now on.
    pub(crate) fn distort(&self, distorts: Distorts) {
        self.ways.lock().unwrap().distorts = distorts;
    }

    /// Whether every holder seems to be somebody else's, without an end.
    pub(crate) fn estrange(&self, estranges: bool) {
        self.ways.lock().unwrap().estranges = estranges;
    }

    /// Whether whoever is granted the lock is told to come and ask for it.
    pub(crate) fn call(&self, calls: bool) {
        self.ways.lock().unwrap().calls = calls;
    }

    /// How many steps each batch had since [`Wire::forget`].
    pub(crate) fn batches(&self) -> Vec<usize> {
        self.ways.lock().unwrap().batches.clone()
    }

    /// Begins to count batches anew.
    pub(crate) fn forget(&self) {
        self.ways.lock().unwrap().batches.clear();
    }

    /// The owner id of the newest Take.
    pub(crate) fn newest(&self) -> OwnerId {
        self.ways.lock().unwrap().newest.expect("somebody has asked")
    }

    /// Says something in the store's name.
    pub(crate) fn tell(&self, notice: Notice) {
        let sink = self.ways.lock().unwrap().sink.clone();
        sink.expect("the client listens")(notice);
    }
}

impl LeaseStore for Wire {
    fn capabilities(&self) -> Capabilities {
        self.store.capabilities()
    }

    async fn step(&self, batch: &[Step]) -> Vec<Answer> {
        let takes = |step: &&Step| matches!(step.action, Action::Take(_));
        if let Some(take) = batch.iter().rev().find(takes) {
            self.ways.lock().unwrap().newest = Some(take.owner);
        }
        self.ways.lock().unwrap().batches.push(batch.len());
        let refreshes = batch.iter().any(|step| matches!(step.action, Action::Refresh { .. }));
        let loses = self.ways.lock().unwrap().loses;
        if refreshes && loses == Loses::Refreshes {
            let lost = || Failure::unknown(Error::new(Code::Unavailable, "lost on purpose"));
            return batch.iter().map(|_| Err(lost())).collect();
        }
        let ends = |step: &Step| matches!(step.action, Action::Free { .. } | Action::Leave { .. });
        if batch.iter().all(ends) && loses == Loses::Ends {
            return batch.iter().map(|_| Ok(Outcome::Freed)).collect();
        }
        let mut answers = self.store.step(batch).await;
        let distorts = self.ways.lock().unwrap().distorts;
        for answer in &mut answers {
            distorts.change(answer);
        }
        if self.ways.lock().unwrap().estranges {
            for answer in &mut answers {
                if let Ok(Outcome::Queued { left, foreign, .. }) = answer {
                    (*left, *foreign) = (None, true);
                }
            }
        }
        answers
    }

    async fn listen(&self, sink: NoticeSink) -> Result<()> {
        self.ways.lock().unwrap().sink = Some(sink.clone());
        let ways = self.ways.clone();
        let deliver = move |notice| {
            let (deaf, calls, distorts) = {
                let ways = ways.lock().unwrap();
                (ways.deaf, ways.calls, ways.distorts)
            };
            match notice {
                _ if deaf => {}
                Notice::Granted { owner, token, ttl, drawn } if distorts == Distorts::Tokens => {
                    sink(Notice::Granted { owner, token: older(token), ttl, drawn });
                }
                Notice::Granted { owner, .. } if calls => sink(Notice::Open { owner }),
                notice => sink(notice),
            }
        };
        self.store.listen(Arc::new(deliver)).await
    }

    async fn names(&self, prefix: &str) -> Result<Vec<LockKey>> {
        self.store.names(prefix).await
    }

    async fn close(&self) {
        self.store.close().await;
    }
}
