//! Steps whose grants count only once replicas have them: a connection of their own, because `WAIT` holds up what comes
//! behind it, and counts only what its own connection has written.

use std::sync::Arc;
use std::time::Duration;

use futures_channel::oneshot;
use redis::aio::MultiplexedConnection;
use redis::{Cmd, Pipeline, Value};

use super::{Link, Live};
use crate::driver::redis::fault;
use crate::error::{Code, Error, Result};
use crate::port::RuntimeHandle;
use crate::runtime::sync::Mutex;

/// How long the server waits for its replicas. Whoever has not heard from them by then may ask again.
const PATIENCE: Duration = Duration::from_secs(1);

/// The second connection to one server. What comes while a `WAIT` is under way goes out together behind it.
pub(crate) struct AckConnection {
    connection: MultiplexedConnection,
    state: Mutex<AckQueue>,
}

#[derive(Default)]
struct AckQueue {
    waiting: Vec<Batch>,
    under_way: bool,
}

/// Commands that go out together, and who wants to know.
struct Batch {
    commands: Vec<Cmd>,
    /// A key beside theirs, which may be written.
    mark: String,
    reply: oneshot::Sender<Result<Acked>>,
}

/// The replies, and why they count for nothing if too few replicas have acknowledged.
type Acked = (Vec<Value>, Option<Error>);

impl AckConnection {
    pub(crate) fn new(connection: MultiplexedConnection) -> Self {
        Self { connection, state: Mutex::default() }
    }

    /// Sends commands, and answers when enough replicas have what they wrote, or have not said so in time.
    pub(crate) async fn send(
        self: &Arc<Self>,
        link: &Arc<Link>,
        live: &Arc<Live>,
        commands: Vec<Cmd>,
        mark: String,
    ) -> Result<Acked> {
        let (reply, answer) = oneshot::channel();
        let leads = {
            let mut state = self.state.lock();
            state.waiting.push(Batch { commands, mark, reply });
            !std::mem::replace(&mut state.under_way, true)
        };
        if leads {
            let (ack_connection, link, live) =
                (Arc::clone(self), Arc::clone(link), Arc::clone(live));
            let runtime: RuntimeHandle = Arc::clone(&link.runtime);
            runtime.spawn(Box::pin(async move { ack_connection.work(&link, &live).await }));
        }
        answer.await.map_err(|_| Error::internal("the runtime dropped a task"))?
    }

    async fn work(&self, link: &Arc<Link>, live: &Arc<Live>) {
        loop {
            let batches = {
                let mut state = self.state.lock();
                state.under_way = !state.waiting.is_empty();
                std::mem::take(&mut state.waiting)
            };
            if batches.is_empty() {
                return;
            }
            self.carry(link, live, batches).await;
        }
    }

    /// All that waits goes out at once, with one `WAIT` for all of it.
    async fn carry(&self, link: &Arc<Link>, live: &Arc<Live>, batches: Vec<Batch>) {
        let counts: Vec<_> = batches.iter().map(|batch| batch.commands.len()).collect();
        let sum: usize = counts.iter().sum();
        let mut pipeline = Pipeline::with_capacity(sum + 2);
        let mut replies = Vec::with_capacity(batches.len());
        let mark = batches[0].mark.clone();
        for batch in batches {
            for command in batch.commands {
                pipeline.add_command(command);
            }
            replies.push(batch.reply);
        }
        // Within half of `timeout`: a `WAIT` in vain is answered before the connection counts as broken.
        let patience = PATIENCE.min(link.timeout / 2).as_millis() as u64;
        // Newer servers wait for what the connection itself has written, and a grant somebody else wrote is no such thing.
        pipeline.cmd("SET").arg(mark).arg("").arg("PX").arg(1);
        pipeline.cmd("WAIT").arg(link.acks).arg(patience);
        let mut connection = self.connection.clone();
        let answered =
            link.answer(live, connection.send_packed_commands(&pipeline, 0, sum + 2)).await;
        match answered {
            Ok(mut values) => {
                let lack = lack(link, &values.split_off(sum.min(values.len())));
                let mut values = values.into_iter();
                for (reply, count) in replies.into_iter().zip(counts) {
                    let values = values.by_ref().take(count).collect();
                    // Who has gone will undo what it asked for.
                    let _ = reply.send(Ok((values, lack.clone())));
                }
            }
            Err(error) => {
                for reply in replies {
                    let _ = reply.send(Err(error.clone()));
                }
            }
        }
    }
}

/// Why what was written does not count; `words` are the answers to the mark and to the `WAIT`.
fn lack(link: &Link, words: &[Value]) -> Option<Error> {
    let refused = |word: &Value| match word {
        Value::ServerError(error) => {
            let text = fault::words(error);
            Some(fault::refusal(&link.address, &text, None))
        }
        _ => None,
    };
    let replicas = match words {
        [_, Value::Int(replicas)] => u32::try_from(*replicas).unwrap_or(0),
        _ => 0,
    };
    words.iter().find_map(refused).or_else(|| {
        let message = "too few replicas have acknowledged the lock in time; are they connected to the master?";
        let error = Error::new(Code::Unavailable, message)
            .with("server", link.address.to_string())
            .with("acks", format!("{replicas} of {}", link.acks));
        (replicas < link.acks).then_some(error)
    })
}
