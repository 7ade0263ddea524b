//! One session: a connection that locks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio_postgres::{CancelToken, NoTls};

use super::unclosed::Unclosed;
use super::way::{Way, known};
use crate::driver::postgres::connection::{Connection as Live, connect};
use crate::driver::postgres::dialect::Postgres;
use crate::driver::postgres::fault::{pooled, state};
use crate::driver::sql::dialect::AddressOf;
use crate::driver::sql::fault::{bad_column, lost};
use crate::driver::sql::host::Host;
use crate::driver::sql::statement::{Answer, Row, Statement, column};
use crate::driver::within::within;
use crate::fence::Token;
use crate::port::{Failure, LockKey, Mode, RuntimeHandle, Session};
use crate::runtime::sync::Mutex;

/// How long a request to interrupt may take.
const INTERRUPT: Duration = Duration::from_secs(1);

/// Answers the number of the backend, and no more.
const BEAT: &str = "SELECT pg_backend_pid()";

/// See the module.
pub struct Connection<W: Way> {
    way: Arc<W>,
    address: Arc<AddressOf<Postgres>>,
    host: Host,
    runtime: RuntimeHandle,
    /// The number of its process on the server.
    backend: i64,
    pub(super) found: W::Found,
    /// `None` once it was cut.
    live: Mutex<Option<Arc<Live>>>,
    /// A lock waits in it.
    waits: AtomicBool,
    over: Arc<AtomicBool>,
}

impl<W: Way> Connection<W> {
    pub(super) async fn new(
        way: Arc<W>,
        (address, host): (Arc<AddressOf<Postgres>>, Host),
        runtime: RuntimeHandle,
        live: Live,
        found: W::Found,
        over: Arc<AtomicBool>,
    ) -> Result<Self, Failure> {
        let answer = live.send(&[Statement::kept(&BEAT.into(), [])], false, &[]).await;
        let backend = number(answer.map_err(|fault| fault.failure)?.row())?;
        let (live, waits) = (Mutex::new(Some(Arc::new(live))), AtomicBool::new(false));
        Ok(Self { way, address, host, runtime, backend, found, live, waits, over })
    }

    pub(super) fn live(&self) -> Result<Arc<Live>, Failure> {
        let ended = || lost(&*self.address, "the session has ended", false).failure;
        self.live.lock().clone().ok_or_else(ended)
    }

    /// Asks. `decides`: it may have been carried out though its answer was lost.
    pub(super) async fn send(
        &self,
        statements: &[Statement],
        decides: bool,
    ) -> Result<Answer, Failure> {
        let answer = self.live()?.send(statements, decides, known(&*self.way)).await;
        answer.map_err(|fault| fault.failure)
    }

    /// The same, and makes sure that it was this session's backend that answered. The last of these statements answers its number first.
    pub(super) async fn ask(&self, statements: &[Statement]) -> Result<Row, Failure> {
        let rows = self.send(statements, true).await?.rows();
        if number(rows.first())? != self.backend {
            return Err(Failure::unknown(pooled()));
        }
        Ok(rows.into_iter().next().expect("it has a number"))
    }

    /// The token in the row by which a statement answers a request for a lock, if there is one.
    pub(super) fn token(row: &Row) -> Result<Option<Token>, Failure> {
        let token = column::<Option<i64>>(row, 1, "token").map_err(Failure::unknown)?;
        Ok(token.and_then(|token| u64::try_from(token).ok()).map(Token::new))
    }

    /// Has the server interrupt what this session does. The server ends the connection when it has told the session.
    async fn cancel(
        address: Arc<AddressOf<Postgres>>,
        host: Host,
        token: CancelToken,
        runtime: RuntimeHandle,
    ) {
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
        match locked {
            Err(failure) if wait && state(&failure.error) == "57014" => Ok(None),
            locked => locked,
        }
    }

    async fn unlock(&self, lock: &LockKey, mode: Mode) -> Result<bool, Failure> {
        self.way.unlock(self, lock, mode).await
    }

    async fn beat(&self) -> Result<(), Failure> {
        let beaten = self.ask(&[Statement::kept(&BEAT.into(), [])]).await;
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
        let closed = |live: &Arc<Live>| live.client.is_closed();
        self.over.load(Ordering::Acquire) || self.live.lock().as_ref().is_none_or(closed)
    }
}

/// The number of the backend, which is the first column.
fn number(row: Option<&Row>) -> Result<i64, Failure> {
    let number = row.ok_or_else(|| bad_column("pg_backend_pid"));
    number.and_then(|row| column(row, 0, "pg_backend_pid")).map_err(Failure::unknown)
}
