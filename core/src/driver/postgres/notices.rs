//! The connection for what is one statement, on which notices arrive too.

use std::sync::{Arc, Weak};
use std::time::Duration;

use super::connection::{Connection, FRESH, OnMessage, PATIENCE, PLAIN_WAIT, ServerMessage};
use super::dialect::Postgres;
use super::fault::{State, state};
use super::{dialect, schema};
use crate::driver::datagram;
use crate::driver::sql::fault::{Fault, Next, is_full, lost};
use crate::driver::sql::link::Link;
use crate::driver::sql::pool::REST;
use crate::driver::sql::pool::when_there_is_room;
use crate::driver::sql::statement::{Answer, Statement};
use crate::driver::within::within;
use crate::error::{Code, Error, Result};
use crate::port::backoff::Backoff;
use crate::port::failure::Failures;
use crate::port::{BoxFuture, Instant, Notice};

/// A connection that did not answer for so long is left, also when its caller stays for less than the time limit.
const SILENT: Duration = Duration::from_secs(1);

/// The connection for single statements, if there is one.
#[derive(Default)]
pub(super) struct Single {
    pub(super) connection: Option<Arc<Connection>>,
    /// When it answered or sent something last.
    seen: Instant,
    /// Attempts to connect.
    failures: Failures,
}

impl Link<Postgres> {
    /// The connection for single statements; one is made if there is none.
    pub(super) async fn single(&self) -> Result<Arc<Connection>> {
        let Postgres { single, connecting, .. } = &self.dialect;
        let before = match self.present()? {
            Ok(connection) if self.answers(&connection).await => return Ok(connection),
            Ok(_) => single.lock().failures.count(),
            Err(failed) => failed,
        };
        let _connecting = connecting.lock().await;
        if let Ok(connection) = self.present()? {
            return Ok(connection);
        }
        // Somebody else has tried while this one waited.
        if let Some(why) = single.lock().failures.since(before) {
            return Err(why);
        }
        match self.within_connect(Box::pin(self.open_single())).await {
            Ok(connection) => {
                let connection = Arc::new(connection);
                if self.is_closed() {
                    return Err(Error::closed());
                }
                let mut state = single.lock();
                state.connection = Some(connection.clone());
                state.seen = self.runtime.now();
                drop(state);
                let closing = close_at_rest(self.weak.clone(), Arc::downgrade(&connection));
                self.runtime.spawn(Box::pin(closing));
                self.tell_self([Notice::Gap]);
                Ok(connection)
            }
            Err(error) => {
                single.lock().failures.add(&error);
                Err(error)
            }
        }
    }

    /// Whether the connection answered lately, or answers now. If not, it is left.
    async fn answers(&self, connection: &Arc<Connection>) -> bool {
        let single = &self.dialect.single;
        if self.runtime.now().since(single.lock().seen) < FRESH {
            return true;
        }
        let asked = connection.client.batch_execute("");
        let answers = matches!(within(&self.runtime, PATIENCE, asked).await, Some(Ok(())));
        if answers {
            single.lock().seen = self.runtime.now();
        } else {
            // What dropped it has probably dropped the others too.
            self.drop_idle();
            self.leave(connection);
        }
        answers
    }

    /// The connection, or how many attempts have failed.
    fn present(&self) -> Result<Result<Arc<Connection>, u64>> {
        if self.is_closed() {
            return Err(Error::closed());
        }
        let state = self.dialect.single.lock();
        let connection = state.connection.clone().filter(|it| !it.client.is_closed());
        Ok(connection.ok_or(state.failures.count()))
    }

    async fn open_single(&self) -> Result<Connection> {
        let link = self.weak.clone();
        let on_message: OnMessage = Arc::new(move |message| {
            let Some(link) = link.upgrade() else { return };
            match message {
                ServerMessage::Notice(text) => link.tell_self(datagram::read(text.as_bytes())),
                // That of one that was let go of is no news.
                ServerMessage::End if link.dialect.single.lock().connection.is_none() => {}
                ServerMessage::End => link.runtime.clone().spawn(link.listen_again()),
            }
        });
        let mut setup = self.patient_setup();
        if self.sink().is_some() {
            setup = format!("{}; {setup}", self.listen_text());
        }
        let (runtime, limit) = (&self.runtime, self.connect_timeout);
        let open = || async {
            let on_message = Some(on_message.clone());
            let opened =
                Connection::open_first(&self.address, &setup, on_message, runtime, limit).await;
            // As in `make_room`.
            if opened.as_ref().is_err_and(is_full) {
                self.drop_idle();
            }
            opened
        };
        let (mut connection, _) = when_there_is_room(runtime, limit, open).await?;
        let texts = &self.texts;
        let kept = [&texts.make, &texts.take, &texts.free, &texts.names, &texts.sweep_look];
        let kept = kept.into_iter().chain(&texts.look).chain(&texts.cell_look);
        let renew = dialect::renew(&self.tables).into();
        let kept: Vec<_> = kept.cloned().chain([renew]).collect();
        let prepared = match connection.prepare(&kept, &[]).await {
            Err(fault) if self.create && state(&fault.failure.error) == "42P01" => {
                let created = schema::create(&mut connection, &self.tables).await;
                created.map_err(|fault| fault.failure.error)?;
                connection.prepare(&kept, &[]).await
            }
            prepared => prepared,
        };
        // Only then: whoever has the whole table for a moment, as a vacuum does, must not refuse a connection.
        let hasty = [Statement::bare(format!("SET lock_timeout = {PLAIN_WAIT}"))];
        let set = match prepared {
            Ok(()) => connection.send(&hasty, false, &[]).await.map(drop),
            Err(fault) => Err(fault),
        };
        set.map(|()| connection).map_err(|fault| fault.failure.error)
    }

    /// Sends statements that count by themselves, and waits for their answers.
    pub(super) async fn ask_single(
        &self,
        statements: &[Statement],
        decides: bool,
        known: &[State],
    ) -> Result<Answer, Fault> {
        let connection = self.single().await.map_err(Fault::refused)?;
        let sent = self.runtime.now();
        let given_up = scopeguard::guard((), |()| {
            if self.runtime.now().since(sent) >= SILENT {
                self.leave(&connection);
            }
        });
        let asked = connection.send(statements, decides, known);
        let answer = within(&self.runtime, self.timeout, asked).await;
        scopeguard::ScopeGuard::into_inner(given_up);
        let fault = match answer {
            Some(Ok(answer)) => {
                self.dialect.single.lock().seen = self.runtime.now();
                return Ok(answer);
            }
            Some(Err(fault)) => fault,
            None => lost(&self.address, "it took too long", decides),
        };
        if fault.next == Next::Reconnect {
            self.leave(&connection);
        }
        Err(fault)
    }

    /// Uses this connection no more. Whoever listens needs another one.
    fn leave(&self, connection: &Arc<Connection>) {
        let is_it = |present: &mut Arc<Connection>| Arc::ptr_eq(present, connection);
        let present = self.dialect.single.lock().connection.take_if(is_it);
        if let (Some(_), Some(link)) = (present, self.weak.upgrade()) {
            self.runtime.spawn(link.listen_again());
        }
    }

    fn listen_text(&self) -> String {
        format!("LISTEN {}", self.channel)
    }

    pub(super) async fn begin_listening(&self) -> Result<()> {
        let asked = [Statement::bare(self.listen_text())];
        let listens = self.ask_single(&asked, false, &[]).await;
        listens.map(drop).map_err(|fault| fault.failure.error)
    }

    /// Connects anew for as long as somebody listens.
    fn listen_again(self: Arc<Self>) -> BoxFuture<'static, ()> {
        let (runtime, link) = (self.runtime.clone(), self.weak.clone());
        Box::pin(async move {
            let mut backoff = Backoff::new();
            while let Some(link) = link.upgrade().filter(|link| link.sink().is_some()) {
                match link.single().await {
                    Err(error) if error.code() != Code::Closed => {}
                    _ => return,
                }
                drop(link);
                let pause = Backoff::spread(backoff.next(), &runtime);
                runtime.sleep_until(runtime.now() + pause).await;
            }
        })
    }
}

/// Closes the connection when nothing was asked for long, nor in a transaction: a server has few, and who waits asks once a second. The next one
/// who asks connects anew, and listens again.
async fn close_at_rest(weak: Weak<Link<Postgres>>, connection: Weak<Connection>) {
    while let Some(link) = weak.upgrade() {
        let runtime = link.runtime.clone();
        drop(link);
        runtime.sleep_until(runtime.now() + REST).await;
        let Some(link) = weak.upgrade() else { return };
        let mut single = link.dialect.single.lock();
        let is_it =
            |present: &Arc<Connection>| std::ptr::eq(&raw const **present, connection.as_ptr());
        if !single.connection.as_ref().is_some_and(is_it) {
            return;
        }
        if runtime.now().since(single.seen.max(link.used())) >= REST {
            single.connection = None;
            return;
        }
    }
}
