//! One server, over one connection: what is sent there, and what comes back.

use std::collections::BTreeSet;
use std::sync::Arc;

use redis::{Cmd, Pipeline, Value};

use super::fault;
use super::link::{Link, Live};
use super::place;
use super::request::{Request, is_unknown_script};
use super::script::Texts;
use crate::error::{Error, Result};
use crate::port::{Answer, Failure, LockKey, Step};

/// How many keys one `SCAN` looks at.
const SCAN_COUNT: u32 = 1000;

/// A server that carries steps out.
pub(super) struct Node {
    pub(super) link: Arc<Link>,
    #[cfg(feature = "sim")]
    stopped: crate::runtime::sync::Mutex<Option<Arc<Texts>>>,
}

/// What came back, one for each request. Scripts the server had forgotten were sent once more, unless that has `failed`.
pub(super) struct Replies {
    pub(super) values: Vec<Value>,
    pub(super) failed: Option<Error>,
}

impl Node {
    pub(super) fn new(link: Arc<Link>) -> Self {
        Self {
            link,
            #[cfg(feature = "sim")]
            stopped: crate::runtime::sync::Mutex::default(),
        }
    }

    /// Stops the clock of this client's scripts.
    #[cfg(feature = "sim")]
    pub(super) async fn stop_clock(&self, now: u64) -> Result<()> {
        let texts = Arc::new(Texts::stopped(now));
        *self.stopped.lock() = Some(Arc::clone(&texts));
        self.link.load(&texts).await
    }

    async fn send(&self, live: &Arc<Live>, mut commands: Vec<Cmd>) -> Result<Vec<Value>> {
        let mut connection = live.connection.clone();
        if commands.len() == 1
            && let Some(command) = commands.pop()
        {
            let reply = self.link.answer(live, connection.send_packed_command(&command)).await?;
            return Ok(vec![reply]);
        }
        let mut pipeline = Pipeline::with_capacity(commands.len());
        let count = commands.len();
        for command in commands {
            pipeline.add_command(command);
        }
        self.link.answer(live, connection.send_packed_commands(&pipeline, 0, count)).await
    }

    /// Sends commands the node of a cluster would turn away, because their slot is still coming to it.
    async fn ask(&self, live: &Arc<Live>, commands: Vec<Cmd>) -> Result<Vec<Value>> {
        let permitted = commands.into_iter().flat_map(|command| [redis::cmd("ASKING"), command]);
        let replies = self.send(live, permitted.collect()).await?;
        Ok(replies.into_iter().skip(1).step_by(2).collect())
    }

    /// Sends requests; `asking`: although their slot is still coming to this node.
    pub(super) async fn exchange(
        &self,
        live: &Arc<Live>,
        plan: &[Request<'_>],
        asking: bool,
    ) -> Result<Replies> {
        let channel = &self.link.channel;
        let call = |request: &Request<'_>| {
            request.command("EVALSHA", live.hashes.of(request.script), channel)
        };
        let commands = plan.iter().map(call).collect();
        let mut values = if asking {
            self.ask(live, commands).await?
        } else {
            self.send(live, commands).await?
        };
        if !values.iter().any(is_unknown_script) {
            return Ok(Replies { values, failed: None });
        }
        #[cfg(feature = "sim")]
        let stopped = self.stopped.lock().clone();
        #[cfg(feature = "sim")]
        let texts = stopped.as_deref().unwrap_or(Texts::shared());
        #[cfg(not(feature = "sim"))]
        let texts = Texts::shared();
        let forgotten = plan.iter().zip(&values).filter(|(_, reply)| is_unknown_script(reply));
        let commands = forgotten
            .map(|(request, _)| request.command("EVAL", texts.of(request.script), channel))
            .collect();
        let again =
            if asking { self.ask(live, commands).await } else { self.send(live, commands).await };
        let failed = match again {
            Ok(again) => {
                let gaps = values.iter_mut().filter(|reply| is_unknown_script(reply));
                for (gap, reply) in gaps.zip(again) {
                    *gap = reply;
                }
                None
            }
            Err(error) => Some(error),
        };
        Ok(Replies { values, failed })
    }

    /// Sends what a batch was cut into; answers every step.
    pub(super) async fn carry_out(&self, batch: &[Step], plan: &[Request<'_>]) -> Vec<Answer> {
        let live = match self.link.live().await {
            Ok(live) => live,
            Err(error) => return fail(batch, &Failure::refused(error)),
        };
        let Replies { values, failed } = match self.exchange(&live, plan, false).await {
            Ok(replies) => replies,
            Err(error) => return fail(batch, &Failure::unknown(error)),
        };
        let mut answers = Vec::with_capacity(batch.len());
        for (request, reply) in plan.iter().zip(values) {
            self.take_in(request, reply, failed.as_ref(), &mut answers);
        }
        let demoted =
            |answer: &Answer| answer.as_ref().is_err_and(|lack| fault::is_demotion(&lack.error));
        if answers.iter().any(demoted) {
            self.link.demote(&live);
        }
        answers
    }

    /// What a reply says of the request's steps.
    pub(super) fn take_in(
        &self,
        request: &Request<'_>,
        reply: Value,
        failed: Option<&Error>,
        answers: &mut Vec<Answer>,
    ) {
        match failed {
            Some(error) if is_unknown_script(&reply) => {
                answers.extend(fail(request.steps, &Failure::unknown(error.clone())));
            }
            _ => request.answers(reply, &self.link.address, answers),
        }
    }

    /// One command that changes nothing.
    pub(super) async fn look(&self, command: Cmd) -> Result<Value> {
        let live = self.link.live().await?;
        let reply = self.send(&live, vec![command]).await?.pop().unwrap_or_default();
        reply.extract_error().map_err(|error| fault::unreachable(&self.link.address, &error))
    }

    /// Adds the locks on this server whose key begins with `prefix`.
    pub(super) async fn names(&self, prefix: &str, names: &mut BTreeSet<LockKey>) -> Result<()> {
        let pattern = place::pattern(prefix);
        let mut cursor = String::from("0");
        loop {
            let mut scan = redis::cmd("SCAN");
            scan.arg(&cursor).arg("MATCH").arg(&pattern).arg("COUNT").arg(SCAN_COUNT);
            let reply = self.look(scan).await?;
            let (next, keys): (String, Vec<Vec<u8>>) = redis::from_redis_value(reply)
                .map_err(|error| fault::unanswered(&self.link.address, &error.to_string()))?;
            let records = keys.iter().filter_map(|key| std::str::from_utf8(key).ok());
            let locks = records.filter_map(place::lock_of_record);
            names.extend(locks.filter(|lock| lock.starts_with(prefix)).map(LockKey::new));
            if next == "0" {
                return Ok(());
            }
            cursor = next;
        }
    }
}

/// One failure for all.
pub(super) fn fail(steps: &[Step], failure: &Failure) -> Vec<Answer> {
    steps.iter().map(|_| Err(failure.clone())).collect()
}
