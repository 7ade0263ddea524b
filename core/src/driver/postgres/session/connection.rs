//! One session: a connection that locks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio_postgres::types::ToSql;
use tokio_postgres::{CancelToken, NoTls, Row, Statement};

use super::unclosed::Unclosed;
use super::way::{Way, judge};
use crate::driver::postgres::address::Address;
use crate::driver::postgres::fault::pooled;
use crate::driver::postgres::live::{Live, connect};
use crate::driver::postgres::row::column;
use crate::driver::sql::fault::lost;
use crate::driver::sql::host::Host;
use crate::driver::within::within;
use crate::fence::Token;
use crate::port::{Failure, LockKey, Mode, RuntimeHandle, Session};
use crate::runtime::sync::Mutex;

/// How long a request to interrupt may take.
const INTERRUPT: Duration = Duration::from_secs(1);

/// The statements prepared on a connection.
pub(super) struct Prepared<S> {
    /// Answers the number of the backend, and no more.
    pub(super) beat: Statement,
    pub(super) locking: S,
}

/// A connection with its statements.
pub(super) type Locking<W> = Live<Prepared<<W as Way>::Statements>>;

/// See the module.
pub struct Connection<W: Way> {
    way: Arc<W>,
    address: Arc<Address>,
    host: Host,
    runtime: RuntimeHandle,
    /// The number of its process on the server.
    backend: i32,
    /// `None` once it was cut.
    live: Mutex<Option<Arc<Locking<W>>>>,
    /// A lock waits in it.
    waits: AtomicBool,
    over: Arc<AtomicBool>,
}

impl<W: Way> Connection<W> {
    pub(super) async fn new(
        way: Arc<W>,
        (address, host): (Arc<Address>, Host),
        runtime: RuntimeHandle,
        live: Locking<W>,
        over: Arc<AtomicBool>,
    ) -> Result<Self, Failure> {
        let (live, waits) = (Arc::new(live), AtomicBool::new(false));
        let row = live.client.query_one(&live.statements.beat, &[]).await;
        let row = row.map_err(|error| judge(&*way, &address, &error, false))?;
        let live = Mutex::new(Some(live));
        Ok(Self { way, address, host, runtime, backend: row.get(0), live, waits, over })
    }

    pub(super) fn live(&self) -> Result<Arc<Locking<W>>, Failure> {
        let ended = || lost(&*self.address, "the session has ended", false).failure;
        self.live.lock().clone().ok_or_else(ended)
    }

    /// Asks, and makes sure that it was this session's backend that answered. Each of these statements answers its number first.
    pub(super) async fn ask(
        &self,
        live: &Locking<W>,
        statement: &Statement,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Row, Failure> {
        let row = live.client.query_one(statement, values).await;
        let row = row.map_err(|error| self.judged(&error, true))?;
        let backend = column::<i32>(&row, 0, "pg_backend_pid").map_err(Failure::unknown)?;
        if backend != self.backend {
            return Err(Failure::unknown(pooled()));
        }
        Ok(row)
    }

    /// The failure that an error of a statement amounts to. `decides`: it may have been carried out though its answer was lost.
    pub(super) fn judged(&self, error: &tokio_postgres::Error, decides: bool) -> Failure {
        judge(&*self.way, &self.address, error, decides)
    }

    /// The token in the row by which a statement answers a request for a lock, if there is one.
    pub(super) fn token(row: &Row) -> Result<Option<Token>, Failure> {
        let token = column::<Option<i64>>(row, 1, "token").map_err(Failure::unknown)?;
        Ok(token.and_then(|token| u64::try_from(token).ok()).map(Token::new))
    }

    /// Has the server interrupt what this session does. The server ends the connection when it has told the session.
    async fn cancel(address: Arc<Address>, host: Host, token: CancelToken, runtime: RuntimeHandle) {
        let told = async {
            if let Ok(mut stream) = connect(&address, &host, &runtime).await
                && token.cancel_query_raw(Unclosed(&mut stream), NoTls).await.is_ok()
            {
                let _ = stream.read(&mut [0]).await;
            }
        };
        within(&runtime, INTERRUPT, told).await;
    }
}

impl<W: Way> Session for Connection<W> {
    async fn lock(&self, lock: &LockKey, mode: Mode, wait: bool) -> Result<Option<Token>, Failure> {
        self.waits.store(wait, Ordering::Release);
        let locked = self.way.lock(self, lock, mode, wait).await;
        self.waits.store(false, Ordering::Release);
        let state = |failure: &Failure| failure.error.fields().get("sqlstate").cloned();
        match locked {
            Err(failure) if wait && state(&failure).is_some_and(|state| state == "57014") => {
                Ok(None)
            }
            locked => locked,
        }
    }

    async fn unlock(&self, lock: &LockKey, mode: Mode) -> Result<bool, Failure> {
        self.way.unlock(self, lock, mode).await
    }

    async fn beat(&self) -> Result<(), Failure> {
        let live = self.live()?;
        let beaten = self.ask(&live, &live.statements.beat, &[]).await;
        if beaten.is_err() && W::IN_TRANSACTION {
            // A failure has ended the transaction.
            self.cut();
        }
        beaten.map(drop)
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
            let _ = self.way.unlock_all(self).await;
        };
        // If that takes too long, the server gives back what the session has when it ends.
        within(&self.runtime, INTERRUPT * 2, given_back).await;
        self.cut();
    }

    fn is_over(&self) -> bool {
        let closed = |live: &Arc<Locking<W>>| live.client.is_closed();
        self.over.load(Ordering::Acquire) || self.live.lock().as_ref().is_none_or(closed)
    }
}
