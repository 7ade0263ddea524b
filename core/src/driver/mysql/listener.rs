//! How one client wakes another. A client that waits has one connection more, the listener, which holds a named lock while it sleeps. Whoever has
//! told it something ends that sleep. A wake-up that is lost costs what it costs on every store: a look by the clock.
//!
//! The name is the client's channel, which it draws. So no wake-up meets a connection that is another one by now, and only who has read
//! the name can send one.

use std::pin::pin;
use std::sync::{Arc, Weak};

use futures_channel::oneshot;
use futures_util::future::{Either, join, select};
use mysql_async::Conn;

use super::fault::judge;
use super::link::Link;
use super::live::{Live, Statement, ask};
use super::{statement, told};
use crate::driver::sql::foreign::lock_of_row;
use crate::error::Result;
use crate::port::LockKey;
use crate::port::backoff::Backoff;

/// How often somebody is woken who is not there.
const WAKES: u32 = 4;

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

    /// Wakes those who listen there, of whom one at least could not be woken: it may be about to sleep.
    pub(super) fn wake(&self, mut channels: Vec<Arc<str>>) {
        let Some(link) = self.weak.upgrade() else { return };
        self.runtime.spawn(Box::pin(async move {
            let mut backoff = Backoff::new();
            for _ in 0..WAKES {
                let pause = Backoff::spread(backoff.next(), &link.runtime);
                link.runtime.sleep_until(link.runtime.now() + pause).await;
                let mut absent = Vec::new();
                for channel in channels {
                    let wake = Statement::Text(statement::wake(&channel));
                    if link.ask(wake, false).await.is_err() {
                        absent.push(channel);
                    }
                }
                channels = absent;
            }
        }));
    }

    /// Reads what is told where one of ours waits. (Not on the connection that sleeps: a statement that is ended while it opens a table may have the
    /// server take the table's triggers for broken.)
    async fn read_told(&self) {
        let waits_at = self.state.lock().heard.waits_at();
        if waits_at.is_empty() {
            return;
        }
        let asked = Statement::Text(statement::told(&waits_at));
        let Ok(answered) = self.ask(asked, false).await else { return };
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

    /// A connection that can sleep.
    async fn open_listener(&self) -> Result<Conn> {
        let Live { mut conn, .. } = self.open().await?;
        let asked = ask(&mut conn, &Statement::Text(statement::without_limits())).await;
        asked.map(|_| conn).map_err(|error| judge(&self.address, &error, false).failure.error)
    }
}

/// What the server says where a statement was ended and its connection was not: by another client, or by a limit of the server's.
const ENDED: [u16; 3] = [1317, 1969, 3024];

/// Listens for as long as one of ours waits.
async fn serve(weak: Weak<Link>, mut left: oneshot::Receiver<()>) {
    let mut backoff = Backoff::new();
    while let Some(link) = weak.upgrade() {
        let runtime = link.runtime.clone();
        let opened = link.open_listener().await;
        drop(link);
        if let Ok(conn) = opened {
            match select(pin!(sleep(conn, &weak, &mut backoff)), left).await {
                Either::Left((SleepEnd::Broken, still)) => left = still,
                Either::Left((SleepEnd::NotNeeded, _)) | Either::Right(_) => return,
            }
        }
        let pause = Backoff::spread(backoff.next(), &runtime);
        match select(runtime.sleep_until(runtime.now() + pause), left).await {
            Either::Left(((), still)) => left = still,
            Either::Right(_) => return,
        }
    }
}

/// Why the listener sleeps no more.
enum SleepEnd {
    Broken,
    NotNeeded,
}

/// What is told is read while the next sleep begins. Whoever tells something later finds the connection asleep and wakes it, or does not find
/// it and tries again.
async fn sleep(mut conn: Conn, weak: &Weak<Link>, backoff: &mut Backoff) -> SleepEnd {
    // What was told while nobody listened.
    let mut told = true;
    while let Some(link) = weak.upgrade() {
        let channel = link.channel.clone();
        let read = async {
            if told {
                link.read_told().await;
            }
            drop(link);
        };
        let asked = Statement::Text(statement::sleep(&channel));
        let (slept, ()) = join(ask(&mut conn, &asked), read).await;
        told = match slept {
            Ok(answered) => {
                let row = answered.rows().pop();
                match row.and_then(|row| row.get::<Option<u8>, _>(0)).flatten() {
                    Some(2) => return SleepEnd::Broken,
                    end => end != Some(0),
                }
            }
            Err(mysql_async::Error::Server(said)) if ENDED.contains(&said.code) => true,
            Err(_) => return SleepEnd::Broken,
        };
        let asked = Statement::Text(statement::stop_listening(&channel));
        if ask(&mut conn, &asked).await.is_err() {
            return SleepEnd::Broken;
        }
        *backoff = Backoff::new();
        if !told && weak.upgrade().is_none_or(|link| link.stops_listening()) {
            return SleepEnd::NotNeeded;
        }
    }
    SleepEnd::NotNeeded
}
