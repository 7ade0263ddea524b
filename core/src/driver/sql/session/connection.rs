//! One session: a connection that locks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::{SessionDialect, Way, Wire};
use crate::driver::sql::fault::bad_column;
use crate::driver::sql::statement::{Answer, Row, Statement, column};
use crate::driver::within::within;
use crate::error::Result as Outcome;
use crate::fence::Token;
use crate::port::{Failure, LockKey, Mode, RuntimeHandle, Session};

/// How long a request to interrupt may take.
pub(in crate::driver) const INTERRUPT: Duration = Duration::from_secs(1);

/// A session of the server, and what it locks.
pub struct Connection<D: SessionDialect, W: Way<D>> {
    way: Arc<W>,
    pub(super) wire: D::Wire,
    /// Its number on the server.
    number: i64,
    pub(super) found: W::Found,
    /// A lock waits in it.
    waits: AtomicBool,
    runtime: RuntimeHandle,
}

impl<D: SessionDialect, W: Way<D>> Connection<D, W> {
    pub(super) fn new(
        way: Arc<W>,
        wire: D::Wire,
        number: i64,
        found: W::Found,
        runtime: RuntimeHandle,
    ) -> Self {
        Self { way, wire, number, found, waits: AtomicBool::new(false), runtime }
    }

    /// Asks, and makes sure that it was this session that answered.
    pub(super) async fn ask(&self, statements: Vec<Statement>) -> Result<Answer, Failure> {
        let answer = self.wire.ask(statements, true).await.map_err(|fault| fault.failure)?;
        for row in answer.all() {
            if number(Some(row)).map_err(Failure::unknown)? != self.number {
                // What this session had is nobody's business any more.
                self.wire.is_another();
                return Err(Failure::unknown(D::pooled()));
            }
        }
        Ok(answer)
    }
}

impl<D: SessionDialect, W: Way<D>> Session for Connection<D, W> {
    async fn lock(&self, lock: &LockKey, mode: Mode, wait: bool) -> Result<Option<Token>, Failure> {
        self.waits.store(wait, Ordering::Release);
        let locked = self.way.lock(self, lock, mode, wait).await;
        self.waits.store(false, Ordering::Release);
        match locked {
            Err(failure) if wait && D::was_interrupted(&failure.error) => Ok(None),
            locked => locked,
        }
    }

    async fn unlock(&self, lock: &LockKey, mode: Mode) -> Result<bool, Failure> {
        self.way.unlock(self, lock, mode).await
    }

    async fn beat(&self) -> Result<(), Failure> {
        // Not prepared: another session would not know it, and its answer is what shows that it is another.
        let beaten = self.ask(vec![Statement::once(D::BEAT, [])]).await;
        if beaten.is_err() && W::ROWS {
            // A failure may have ended the transaction.
            self.cut();
        }
        beaten.map(drop)
    }

    async fn interrupt(&self) {
        if !self.wire.is_over() {
            self.wire.interrupt().await;
        }
    }

    fn cut(&self) {
        if self.wire.is_over() {
            return;
        }
        let interrupt = self.wire.interrupt();
        self.wire.cut();
        // Who waits in the server's queue may not see that its client has gone.
        if self.waits.load(Ordering::Acquire) {
            self.runtime.spawn(Box::pin(interrupt));
        }
    }

    async fn end(&self) {
        let given_back = async {
            if self.waits.load(Ordering::Acquire) {
                self.interrupt().await;
            }
            let _ = self.way.unlock_all(self).await;
        };
        // If that takes too long, the server gives back what the session has when it ends.
        within(&self.runtime, INTERRUPT * 2, given_back).await;
        self.cut();
    }

    fn is_over(&self) -> bool {
        self.wire.is_over()
    }
}

/// The number of the session, which is the first column.
pub(super) fn number(row: Option<&Row>) -> Outcome<i64> {
    column(row.ok_or_else(|| bad_column("session"))?, 0, "session")
}

/// The second column of the answer, if it is there.
pub(super) fn second(answer: &Answer) -> Result<Option<i64>, Failure> {
    let second = answer.row().map(|row| column::<Option<i64>>(row, 1, "answer"));
    Ok(second.transpose().map_err(Failure::unknown)?.flatten())
}
