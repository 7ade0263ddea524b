//! One session: a connection that locks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio_postgres::{CancelToken, NoTls, Row, Statement};

use super::statement::Statements;
use super::unclosed::Unclosed;
use crate::driver::postgres::address::Address;
use crate::driver::postgres::fault::{judge, pooled};
use crate::driver::postgres::live::{Live, connect};
use crate::driver::postgres::row::column;
use crate::driver::sql::host::Host;
use crate::driver::within::within;
use crate::error::Error;
use crate::fence::Token;
use crate::port::{Failure, LockKey, LockState, Mode, RuntimeHandle, Session};
use crate::runtime::sync::Mutex;

/// How long a request to interrupt may take.
const INTERRUPT: Duration = Duration::from_secs(1);

/// See the module.
pub struct AdvisorySession {
    address: Arc<Address>,
    host: Host,
    runtime: RuntimeHandle,
    /// The number of its process on the server.
    backend: i32,
    /// `None` once it was cut.
    live: Mutex<Option<Arc<Live<Statements>>>>,
    /// A lock waits in it.
    waits: AtomicBool,
    over: Arc<AtomicBool>,
}

impl AdvisorySession {
    pub(super) async fn new(
        (address, host): (Arc<Address>, Host),
        runtime: RuntimeHandle,
        live: Live<Statements>,
        over: Arc<AtomicBool>,
    ) -> Result<Self, Failure> {
        let (live, waits) = (Arc::new(live), AtomicBool::new(false));
        let row = live.client.query_one(&live.statements.beat, &[]).await;
        let row = row.map_err(|error| judge(&address, &error, false).failure)?;
        let live = Mutex::new(Some(live));
        Ok(Self { address, host, runtime, backend: row.get(0), live, waits, over })
    }

    /// The number of its process on the server.
    pub(super) fn backend(&self) -> i32 {
        self.backend
    }

    fn live(&self) -> Result<Arc<Live<Statements>>, Failure> {
        self.live.lock().clone().ok_or_else(|| Failure::refused(Error::closed()))
    }

    /// Asks, and makes sure that it was this session's backend that answered.
    async fn ask(
        &self,
        statement: impl Fn(&Statements) -> &Statement,
        lock: Option<&LockKey>,
    ) -> Result<Row, Failure> {
        let live = self.live()?;
        let name = lock.map(LockKey::as_str);
        let statement = statement(&live.statements);
        let row = match &name {
            Some(name) => live.client.query_one(statement, &[name]).await,
            None => live.client.query_one(statement, &[]).await,
        };
        let row = row.map_err(|error| judge(&self.address, &error, true).failure)?;
        let backend = column::<i32>(&row, 0, "pg_backend_pid").map_err(Failure::unknown)?;
        if backend != self.backend && !mutant!(PoolerNotSought) {
            return Err(Failure::unknown(pooled()));
        }
        Ok(row)
    }

    /// Who has a lock and who waits for it.
    pub(super) async fn look(&self, lock: &LockKey) -> Result<LockState, Failure> {
        let live = self.live()?;
        let rows = live.client.query(&live.statements.look, &[&lock.as_str()]).await;
        let rows = rows.map_err(|error| judge(&self.address, &error, false).failure)?;
        super::view::state(&rows).map_err(Failure::refused)
    }

    /// Has the server interrupt what this session does. The server ends the connection when it has told the session.
    async fn cancel(address: Arc<Address>, host: Host, token: CancelToken, runtime: RuntimeHandle) {
        let told = async {
            if let Ok(mut stream) = connect(&address, &host).await
                && token.cancel_query_raw(Unclosed(&mut stream), NoTls).await.is_ok()
            {
                let _ = stream.read(&mut [0]).await;
            }
        };
        within(&runtime, INTERRUPT, told).await;
    }
}

impl Session for AdvisorySession {
    async fn lock(&self, lock: &LockKey, mode: Mode, wait: bool) -> Result<Option<Token>, Failure> {
        let shared = usize::from(mode == Mode::Read);
        let asked = if wait {
            self.waits.store(true, Ordering::Release);
            let asked = self.ask(|statements| &statements.wait[shared], Some(lock)).await;
            self.waits.store(false, Ordering::Release);
            asked
        } else {
            self.ask(|statements| &statements.take[shared], Some(lock)).await
        };
        let row = match asked {
            Err(failure)
                if wait
                    && failure
                        .error
                        .fields()
                        .get("sqlstate")
                        .is_some_and(|state| state == "57014") =>
            {
                return Ok(None);
            }
            asked => asked?,
        };
        let token = column::<Option<i64>>(&row, 1, "fencelock_token").map_err(Failure::unknown)?;
        Ok(token.and_then(|token| u64::try_from(token).ok()).map(Token::new))
    }

    async fn unlock(&self, lock: &LockKey, mode: Mode) -> Result<bool, Failure> {
        let shared = usize::from(mode == Mode::Read);
        let row = self.ask(|statements| &statements.free[shared], Some(lock)).await?;
        column(&row, 1, "pg_advisory_unlock").map_err(Failure::unknown)
    }

    async fn beat(&self) -> Result<(), Failure> {
        self.ask(|statements| &statements.beat, None).await.map(drop)
    }

    async fn interrupt(&self) {
        let Ok(live) = self.live() else { return };
        let token = live.client.cancel_token();
        drop(live);
        let (address, host, runtime) =
            (self.address.clone(), self.host.clone(), self.runtime.clone());
        Self::cancel(address, host, token, runtime).await;
    }

    fn cut(&self) {
        let Some(live) = self.live.lock().take() else { return };
        live.end();
        // Who waits in the server's queue does not see that its client has gone.
        if self.waits.load(Ordering::Acquire) {
            let (address, host, runtime) =
                (self.address.clone(), self.host.clone(), self.runtime.clone());
            let token = live.client.cancel_token();
            self.runtime.spawn(Box::pin(Self::cancel(address, host, token, runtime)));
        }
    }

    async fn end(&self) {
        let given_back = async {
            if self.waits.load(Ordering::Acquire) {
                self.interrupt().await;
            }
            let _ = self.ask(|statements| &statements.free_all, None).await;
        };
        // If that takes too long, the server gives back what the session has when it ends.
        within(&self.runtime, INTERRUPT * 2, given_back).await;
        self.cut();
    }

    fn is_over(&self) -> bool {
        let closed = |live: &Arc<Live<Statements>>| live.client.is_closed();
        self.over.load(Ordering::Acquire) || self.live.lock().as_ref().is_none_or(closed)
    }
}
