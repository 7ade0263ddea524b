//! The client's task: it refreshes tickets and renews holds, one batch a tick, and finds holds whose time is over.

use std::future::poll_fn;
use std::sync::{Arc, Weak};
use std::task::Poll;

use super::Engine;
use super::table::{Renewal, Table};
use crate::event::Event;
use crate::port::{Instant, RuntimeHandle};
use crate::runtime::sync::Mutex;

/// Runs until the client closes or its engine is gone.
pub(super) async fn run(engine: Weak<Engine>, runtime: RuntimeHandle, table: Arc<Mutex<Table>>) {
    while !rest(&table, &runtime).await {
        let Some(engine) = engine.upgrade() else { return };
        engine.tick();
    }
}

/// Completes when something is due or the client closes (then true).
pub(super) async fn rest(table: &Mutex<Table>, runtime: &RuntimeHandle) -> bool {
    loop {
        let until = {
            let mut table = table.lock();
            if table.closed {
                return true;
            }
            table.due.rests_until = table.due.first();
            table.due.rests_until
        };
        if until <= runtime.now() {
            return false;
        }
        let mut sleep = (until != Instant::FAR).then(|| runtime.sleep_until(until));
        poll_fn(|context| {
            let mut table = table.lock();
            if table.closed || table.due.rests_until < until {
                return Poll::Ready(());
            }
            table.due.task = Some(context.waker().clone());
            drop(table);
            sleep.as_mut().map_or(Poll::Pending, |sleep| sleep.as_mut().poll(context))
        })
        .await;
    }
}

impl Engine {
    /// Sends what is due as one batch, unless that would be too large. It goes out beside the task, so that a stalled store stalls nothing.
    fn tick(self: &Arc<Self>) {
        let work = self.table.lock().take_due(self.runtime.now());
        for hold in work.lost {
            self.lose(&hold, false);
        }
        if work.steps.is_empty() {
            return;
        }
        let owners: Vec<_> = work.steps.iter().map(|step| step.owner).collect();
        let sent = self.runtime.now();
        let answers = self.store.step(work.steps);
        let engine = Arc::downgrade(self);
        self.runtime.spawn(Box::pin(async move {
            let answers = answers.await;
            let Some(engine) = engine.upgrade() else { return };
            for ((owner, slot), answer) in owners.into_iter().zip(work.slots).zip(&answers) {
                let now = engine.runtime.now();
                let renewal = engine.table.lock().answered(owner, slot, sent, answer, now);
                engine.renewed(renewal);
            }
            if work.more {
                engine.table.lock().go_on();
            }
        }));
    }

    fn renewed(self: &Arc<Self>, renewal: Option<Renewal>) {
        match renewal {
            Some(Renewal::Lost(hold)) => self.lose(&hold, true),
            Some(Renewal::Renewed(hold)) => {
                self.events.emit(|| Event::renewed(hold.lock.name(), hold.token));
            }
            Some(Renewal::Late(hold, left)) => {
                self.events.warn(Event::late_renewal(hold.lock.name(), hold.token, left));
            }
            None => {}
        }
    }
}
