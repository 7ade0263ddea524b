//! One session: a connection that locks.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::line::Line;
use super::way::Way;
use crate::driver::mysql::connection::kill_query;
use crate::driver::mysql::dialect::Mysql;
use crate::driver::mysql::fault::{number, pooled};
use crate::driver::sql::dialect::AddressOf;
use crate::driver::sql::host::Host;
use crate::driver::sql::statement::{Answer, Statement, column};
use crate::driver::within::within;
use crate::fence::Token;
use crate::port::{Failure, LockKey, Mode, RuntimeHandle, Session};

/// How long a request to interrupt may take.
const INTERRUPT: Duration = Duration::from_secs(1);
/// Answers the number of the connection, and no more.
const BEAT: &str = "SELECT CONNECTION_ID()";

/// See the module.
pub struct Connection<W: Way> {
    way: Arc<W>,
    address: Arc<AddressOf<Mysql>>,
    host: Host,
    runtime: RuntimeHandle,
    /// Its number on the server.
    number: u64,
    pub(super) line: Arc<Line>,
    pub(super) found: W::Found,
    /// A lock waits in it.
    waits: AtomicBool,
}

impl<W: Way> Connection<W> {
    pub(super) fn new(
        way: Arc<W>,
        (address, host): (Arc<AddressOf<Mysql>>, Host),
        runtime: RuntimeHandle,
        number: u64,
        line: Arc<Line>,
        found: W::Found,
    ) -> Self {
        Self { way, address, host, runtime, number, line, found, waits: AtomicBool::new(false) }
    }

    /// Asks, and makes sure that it was this session's connection that answered. Each row of these statements has its number first.
    pub(super) async fn ask(&self, statement: Statement) -> Result<Answer, Failure> {
        let answered = self.line.ask(vec![statement], true).await.map_err(|fault| fault.failure)?;
        for row in answered.all() {
            let number = column::<u64>(row, 0, "CONNECTION_ID").map_err(Failure::unknown)?;
            if number != self.number {
                // What this session had is nobody's business any more.
                self.line.end();
                return Err(Failure::unknown(pooled()));
            }
        }
        Ok(answered)
    }

    /// Has the server interrupt what this session does.
    fn kill(&self) -> impl Future<Output = ()> + Send + use<W> {
        let (address, host, number) = (self.address.clone(), self.host.clone(), self.number);
        let runtime = self.runtime.clone();
        async move {
            within(&runtime, INTERRUPT, kill_query(&address, &host, number)).await;
        }
    }
}

impl<W: Way> Session for Connection<W> {
    async fn lock(&self, lock: &LockKey, _: Mode, wait: bool) -> Result<Option<Token>, Failure> {
        self.waits.store(wait, Ordering::Release);
        let locked = self.way.lock(self, lock, wait).await;
        self.waits.store(false, Ordering::Release);
        match locked {
            Err(failure) if wait && number(&failure.error) == "1317" => Ok(None),
            locked => locked,
        }
    }

    async fn unlock(&self, lock: &LockKey, _: Mode) -> Result<bool, Failure> {
        self.way.unlock(self, lock).await
    }

    async fn beat(&self) -> Result<(), Failure> {
        let beaten = self.ask(Statement::bare(BEAT)).await;
        if beaten.is_err() && W::IN_TRANSACTION {
            // A failure may have ended the transaction.
            self.cut();
        }
        beaten.map(drop)
    }

    async fn interrupt(&self) {
        if self.line.is_over() {
            return;
        }
        self.kill().await;
    }

    fn cut(&self) {
        if self.line.is_over() {
            return;
        }
        self.line.cut();
        // Who waits in the server's queue may not see that its client has gone.
        if self.waits.load(Ordering::Acquire) {
            self.runtime.spawn(Box::pin(self.kill()));
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
        self.line.is_over()
    }
}
