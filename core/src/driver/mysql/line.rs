//! The connection of a session: statements are carried out one after the other in the order in which they are asked first, whoever stays
//! for them, until it ends.
//!
//! The client of the server hears of the end of a connection only when it asks something. So a connection on which nothing else happens is
//! asked once a second.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use event_listener::Event;
use futures_util::future::{Either, select};

use super::connection::{Connection, kill_query};
use super::dialect::Mysql;
use super::fault::Number;
use crate::driver::sql::dialect::{AddressOf, Connection as _};
use crate::driver::sql::fault::{Fault, Next, lost};
use crate::driver::sql::host::Host;
use crate::driver::sql::session::{INTERRUPT, Wire};
use crate::driver::sql::statement::{Answer, Statement};
use crate::driver::within::within;
use crate::port::detach_on_drop::DetachOnDrop;
use crate::port::{EndSink, Instant, RuntimeHandle};
use crate::runtime::sync::Mutex;

/// How long a connection may be silent before it is asked whether it is still there.
const SILENT: Duration = Duration::from_secs(1);

/// A connection that carries statements out in the order in which they are asked.
pub struct Line {
    /// Its number on the server.
    number: i64,
    host: Host,
    conn: tokio::sync::Mutex<Option<Connection>>,
    address: Arc<AddressOf<Mysql>>,
    /// The errors of the server that have another meaning on this connection.
    numbers: &'static [Number],
    runtime: RuntimeHandle,
    /// When it answered last.
    last_answer: Mutex<Instant>,
    over: AtomicBool,
    /// Is told that what is under way is not waited for.
    cut: Event,
    /// There until it is told.
    ended: Mutex<Option<EndSink>>,
}

impl Line {
    pub(super) fn new(
        conn: Connection,
        number: i64,
        (address, host): (Arc<AddressOf<Mysql>>, Host),
        numbers: &'static [Number],
        runtime: RuntimeHandle,
        ended: EndSink,
    ) -> Arc<Self> {
        let line = Arc::new(Self {
            number,
            host,
            conn: tokio::sync::Mutex::new(Some(conn)),
            address,
            numbers,
            last_answer: Mutex::new(runtime.now()),
            runtime,
            over: AtomicBool::new(false),
            cut: Event::new(),
            ended: Mutex::new(Some(ended)),
        });
        let watched = watch(Arc::downgrade(&line), line.runtime.clone());
        line.runtime.spawn(Box::pin(watched));
        line
    }

    async fn carry(
        self: Arc<Self>,
        statements: Vec<Statement>,
        decides: bool,
    ) -> Result<Answer, Fault> {
        let mut conn = self.conn.lock().await;
        let cut = self.cut.listen();
        let answered = match conn.as_mut().filter(|_| !self.is_over()) {
            None => return Err(lost(&self.address, "the session has ended", false)),
            Some(present) => {
                match select(pin!(present.ask_of(&statements, decides, self.numbers)), cut).await {
                    Either::Left((answered, _)) => answered,
                    Either::Right(_) => Err(lost(&self.address, "the session was ended", decides)),
                }
            }
        };
        *self.last_answer.lock() = self.runtime.now();
        if answered.as_ref().is_err_and(|fault| fault.next == Next::Reconnect) {
            *conn = None;
            self.end();
        }
        answered
    }

    /// Ends the connection, and tells that it has ended.
    fn end(self: &Arc<Self>) {
        let ended = self.ended.lock().take();
        self.cut();
        if let Some(ended) = ended {
            ended();
        }
    }
}

impl Wire for Arc<Line> {
    async fn ask(&self, statements: Vec<Statement>, decides: bool) -> Result<Answer, Fault> {
        let work = Box::pin(self.clone().carry(statements, decides));
        DetachOnDrop::new(work, &self.runtime).await
    }

    fn interrupt(&self) -> impl Future<Output = ()> + Send + 'static + use<> {
        let line = self.clone();
        async move {
            let killed = kill_query(&line.address, &line.host, line.number, &line.runtime);
            within(&line.runtime, INTERRUPT, killed).await;
        }
    }

    fn cut(&self) {
        drop(self.ended.lock().take());
        self.over.store(true, Ordering::Release);
        self.cut.notify(usize::MAX);
        // Where something is under way, that lets go of it.
        if let Ok(mut conn) = self.conn.try_lock() {
            *conn = None;
        }
    }

    fn is_another(&self) {
        self.end();
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }
}

/// Asks now and then whether the connection is still there.
async fn watch(line: Weak<Line>, runtime: RuntimeHandle) {
    let mut next = runtime.now() + SILENT;
    loop {
        runtime.sleep_until(next).await;
        let Some(line) = line.upgrade().filter(|line| !line.is_over()) else { return };
        next = *line.last_answer.lock() + SILENT;
        // While something is under way, that hears of the end.
        let is_busy = line.conn.try_lock().is_err();
        if is_busy || next <= runtime.now() {
            if !is_busy {
                let _ = line.ask(vec![Statement::bare("DO 0")], false).await;
            }
            next = runtime.now() + SILENT;
        }
    }
}
