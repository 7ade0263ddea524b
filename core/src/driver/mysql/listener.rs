//! How one client wakes another. A client that waits has one connection more, the listener, which holds a named lock while it waits. Whoever has
//! told it something ends that wait. A wake-up that is lost costs what it costs on every store: a look by the clock.
//!
//! The name is the client's channel, which it draws. So no wake-up meets a connection that is another one by now, and only who has read
//! the name can send one.

use std::pin::pin;
use std::sync::{Arc, Weak};

use futures_channel::oneshot;
use futures_util::future::{Either, join, select};
use mysql_async::Conn;
use mysql_async::prelude::Queryable;

use super::link::Link;
use super::live::{Live, Statement, ask, ask_into};
use super::statement::LISTEN;
use super::{statement, told};
use crate::driver::sql::foreign::lock_of_row;
use crate::driver::within::within;
use crate::error::Result;
use crate::port::LockKey;
use crate::port::backoff::Backoff;

/// How often a wake-up is repeated that found nobody.
const REPEATS: u32 = 4;
/// What the server says of a connection that it does not have.
const ABSENT: u16 = 1094;

impl Link {
    /// Sees to it that this client listens.
    pub(super) fn start_listener(&self) {
        let mut state = self.state.lock();
        if state.listener.is_some() || state.closed {
            return;
        }
        let (listener, left) = oneshot::channel();
        state.listener = Some(listener);
        drop(state);
        self.runtime.spawn(Box::pin(serve(self.weak.clone(), left)));
    }

    /// Whether none of ours waits: then nobody listens from now on.
    fn stops_listening(&self) -> bool {
        let mut state = self.state.lock();
        let idle = state.heard.waits_at().is_empty();
        if idle {
            state.listener = None;
        }
        idle
    }

    /// Writes, commits and wakes those who listen on these channels, in one flight. An error behind the commit concerns only who is woken.
    pub(super) async fn write_and_wake(
        &self,
        live: &mut Live,
        statements: String,
        channels: Vec<Arc<str>>,
    ) -> Result<(), mysql_async::Error> {
        let mut sets = Vec::new();
        let ended = ask_into(&mut sets, &mut live.conn, &Statement::Text(statements)).await;
        // Behind the commit there is a row.
        let is_committed = sets.iter().any(|rows| !rows.is_empty());
        if !is_committed || !matches!(ended, Err(mysql_async::Error::Server(_))) {
            return ended.map(drop);
        }
        // Those behind the one that failed were not sought.
        let absent = wake_each(&mut live.conn, channels).await;
        self.wake_again(absent);
        Ok(())
    }

    /// Wakes those who were not found: they may be about to wait.
    fn wake_again(&self, mut absent: Vec<Arc<str>>) {
        let Some(link) = self.weak.upgrade().filter(|_| !absent.is_empty()) else { return };
        self.runtime.spawn(Box::pin(async move {
            let mut backoff = Backoff::new();
            for _ in 0..REPEATS {
                let pause = Backoff::spread(backoff.next(), &link.runtime);
                link.runtime.sleep_until(link.runtime.now() + pause).await;
                let Ok(mut live) = link.take().await else { return };
                let waking = wake_each(&mut live.conn, absent);
                let Some(left) = within(&link.runtime, link.timeout, waking).await else { return };
                link.put_back(live);
                if left.is_empty() {
                    return;
                }
                absent = left;
            }
        }));
    }

    /// Reads what is told where one of ours waits; whether it was answered. (Not on the connection that listens: a statement that is ended while it
    /// opens a table may have the server take the table's triggers for broken.)
    async fn read_told(&self) -> bool {
        let waits_at = self.state.lock().heard.waits_at();
        if waits_at.is_empty() {
            return true;
        }
        let asked = Statement::Text(statement::told(&self.tables, &waits_at));
        let Ok(answered) = self.ask(asked, false).await else { return false };
        for row in answered.rows() {
            let (name, version, text): (Vec<u8>, u64, Option<String>) =
                match mysql_async::from_row_opt(row) {
                    Ok(row) => row,
                    Err(_) => continue,
                };
            let Ok(name) = String::from_utf8(name) else { continue };
            // One that cannot be read is refused by the steps on its lock.
            let told = told::read(text.as_deref()).unwrap_or_default();
            self.hear(&lock_of_row(&name), version, &told);
        }
        true
    }

    /// A row that was read in this version is about to be written, and one of ours waits there, or none.
    pub(super) fn expect(&self, lock: &LockKey, version: u64, waits: bool) {
        self.state.lock().heard.expect(lock, version, waits);
        if waits {
            self.start_listener();
        }
    }

    /// Tells this client what is new of what a row says.
    pub(super) fn hear(&self, lock: &LockKey, version: u64, told: &[told::Told]) {
        let notices = self.state.lock().heard.read(lock, version, told, &self.channel);
        self.tell_self(notices);
    }

    /// A connection that can wait for long.
    async fn open_listener(&self) -> Result<Conn> {
        let Live { mut conn, .. } = self.open().await?;
        let asked = Statement::Text(statement::without_limits());
        let asked = self.within_connect(async { Ok(ask(&mut conn, &asked).await) }).await?;
        asked.map(|_| conn).map_err(|error| self.refusal(&error))
    }
}

/// Wakes those who listen there, one by one; those who were not found. Who is another user's looks by the clock.
async fn wake_each(conn: &mut Conn, channels: Vec<Arc<str>>) -> Vec<Arc<str>> {
    let mut absent = Vec::new();
    for channel in channels {
        let woken = conn.query_drop(statement::wake(&channel)).await;
        if matches!(woken, Err(mysql_async::Error::Server(said)) if said.code == ABSENT) {
            absent.push(channel);
        }
    }
    absent
}

/// What the server says where a statement was ended and its connection was not: by another client, or by a limit of the server's.
const ENDED: [u16; 3] = [1317, 1969, 3024];

/// Listens for as long as one of ours waits.
async fn serve(weak: Weak<Link>, mut left: oneshot::Receiver<()>) {
    let mut backoff = Backoff::new();
    // Has the lock that all listeners of the server wait for, if nobody else had it.
    let mut keeper: Option<Conn> = None;
    while let Some(link) = weak.upgrade() {
        let runtime = link.runtime.clone();
        let opened = link.open_listener().await;
        drop(link);
        if let Ok(conn) = opened {
            // The client may have gone while this was opened: then it begins no wait.
            match select(left, pin!(listen(conn, &weak, &mut backoff))).await {
                Either::Right((ListenEnd::Broken, still)) => left = still,
                Either::Right((ListenEnd::Keeps(conn), still)) => {
                    left = still;
                    if keeper.replace(conn).is_none() {
                        continue;
                    }
                }
                Either::Right((ListenEnd::NotNeeded, _)) | Either::Left(_) => return,
            }
        }
        let pause = Backoff::spread(backoff.next(), &runtime);
        match select(runtime.sleep_until(runtime.now() + pause), left).await {
            Either::Left(((), still)) => left = still,
            Either::Right(_) => return,
        }
    }
}

/// Why a connection listens no more.
enum ListenEnd {
    Broken,
    NotNeeded,
    /// It has the lock that listeners wait for, so another one has to listen.
    Keeps(Conn),
}

/// What is told is read while the next wait begins. Whoever tells something later finds the connection waiting and wakes it, or does not find
/// it and tries again.
async fn listen(mut conn: Conn, weak: &Weak<Link>, backoff: &mut Backoff) -> ListenEnd {
    while let Some(link) = weak.upgrade() {
        let (channel, runtime) = (link.channel.clone(), link.runtime.clone());
        // A connection may end without a word.
        let limit = LISTEN + link.timeout;
        let read = async {
            // The first connection that is asked may have ended while it lay idle.
            let _ = link.read_told().await || link.read_told().await;
            drop(link);
        };
        let asked = Statement::Text(statement::listen(&channel));
        let (waited, ()) = join(within(&runtime, limit, ask(&mut conn, &asked)), read).await;
        let told = match waited {
            Some(Ok(answered)) => {
                let row = answered.rows().pop();
                row.and_then(|row| row.get::<Option<u8>, _>(0)).flatten()
            }
            Some(Err(mysql_async::Error::Server(said))) if ENDED.contains(&said.code) => None,
            Some(Err(_)) | None => return ListenEnd::Broken,
        };
        if told == Some(2) {
            return ListenEnd::Broken;
        }
        let asked = Statement::Text(statement::stop_listening(&channel));
        if !matches!(within(&runtime, limit, ask(&mut conn, &asked)).await, Some(Ok(_))) {
            return ListenEnd::Broken;
        }
        if told == Some(3) {
            return ListenEnd::Keeps(conn);
        }
        *backoff = Backoff::new();
        if told == Some(0) && weak.upgrade().is_none_or(|link| link.stops_listening()) {
            return ListenEnd::NotNeeded;
        }
    }
    ListenEnd::NotNeeded
}
