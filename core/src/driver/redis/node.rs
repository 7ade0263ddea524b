//! One server, over one connection: what is sent there, and what comes back.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};

use redis::{Cmd, Pipeline, Value};

use super::cell::CellCall;
use super::connection::{Link, Live};
use super::fault;
use super::keys::{self, BIRTH, Scan};
use super::replies::{UNBORN, is_unknown_script};
use super::scripts::{BORN, CELL, Clock, Script};
use super::steps::{self, Request, fail};
use crate::error::{Error, Result};
use crate::port::{Action, Answer, Failure, LockKey, Notice, NoticeSink, Outcome, Step, Take};
use crate::runtime::sync::Mutex;

/// A server that carries steps out.
pub(super) struct Node {
    pub(super) link: Arc<Link>,
    data_age: DataAge,
    clock: Clock,
}

/// The replies to an exchange, one for each request.
pub(super) struct Replies {
    pub(super) values: Vec<Value>,
    pub(super) lack: Lack,
}

/// The parts missing from an exchange, each as an error.
#[derive(Default)]
pub(super) struct Lack {
    /// Scripts the server had forgotten were sent once more, and had no answer.
    failed: Option<Error>,
    /// Too few replicas have acknowledged what was written.
    acks: Option<Error>,
}

impl Node {
    pub(super) fn new(link: Arc<Link>) -> Self {
        Self { link, data_age: DataAge::default(), clock: Clock::default() }
    }

    /// The same for one that votes, from its first connection on.
    pub(super) fn of_quorum(link: Arc<Link>) -> Self {
        let node = Self::new(link);
        node.data_age.gone();
        node
    }

    /// Has this client's scripts read the time from a key, and sets that.
    #[cfg(feature = "test-hooks")]
    pub(super) async fn stop_clock(&self, now: u64) -> Result<()> {
        let live = self.link.live().await?;
        for set in self.send(&live, vec![super::scripts::set_clock(now)]).await? {
            set.extract_error().map_err(|error| Error::internal(error.to_string()))?;
        }
        self.clock.stop();
        Ok(())
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

    /// Sends commands, the way they need: `asking` has the node of a cluster take them although their slot is still coming to
    /// it, `mark` has the replicas acknowledge them.
    async fn send_as(
        &self,
        live: &Arc<Live>,
        mut commands: Vec<Cmd>,
        asking: bool,
        mark: Option<String>,
        lack: &mut Lack,
    ) -> Result<Vec<Value>> {
        if asking {
            let permitted =
                commands.into_iter().flat_map(|command| [redis::cmd("ASKING"), command]);
            commands = permitted.collect();
        }
        let mut values = match (&live.ack_connection, mark) {
            (Some(ack_connection), Some(mark)) => {
                let acked = ack_connection.send(&self.link, live, commands, mark).await?;
                lack.acks = acked.lack.or(lack.acks.take());
                acked.values
            }
            _ => self.send(live, commands).await?,
        };
        if asking {
            values = values.into_iter().skip(1).step_by(2).collect();
        }
        Ok(values)
    }

    /// Calls scripts by hash, and once more by text those that the server has forgotten; `command` makes a call.
    async fn call(
        &self,
        live: &Arc<Live>,
        scripts: &[Script],
        command: impl Fn(usize, &str, &str) -> Cmd,
        asking: bool,
        mark: Option<String>,
    ) -> Result<Replies> {
        let mut lack = Lack::default();
        let first = |(at, script): (usize, &Script)| {
            let (verb, script) = self.clock.call(*script, &live.sent);
            command(at, verb, &script)
        };
        let commands = scripts.iter().enumerate().map(first).collect();
        let mut values = self.send_as(live, commands, asking, mark.clone(), &mut lack).await?;
        let unknown = |at: &usize| is_unknown_script(&values[*at]);
        let forgotten: Vec<usize> = (0..values.len()).filter(unknown).collect();
        if forgotten.is_empty() {
            return Ok(Replies { values, lack });
        }
        let whole = |at: &usize| command(*at, "EVAL", &self.clock.text(scripts[*at]));
        let commands = forgotten.iter().map(whole).collect();
        match self.send_as(live, commands, asking, mark, &mut lack).await {
            Ok(again) => {
                for (at, value) in forgotten.into_iter().zip(again) {
                    values[at] = value;
                }
            }
            // Only these are unknown; the others have their answers.
            Err(error) => lack.failed = Some(error),
        }
        Ok(Replies { values, lack })
    }

    /// Sends requests; `asking`: although their slot is still coming to this node.
    pub(super) async fn exchange(
        &self,
        live: &Arc<Live>,
        plan: &[Request<'_>],
        asking: bool,
    ) -> Result<Replies> {
        let channel = &self.link.channel;
        let mark = || {
            let mut steps = plan.iter().flat_map(|request| request.steps);
            let first = steps.find(|step| may_grant(&step.action))?;
            Some(keys::mark_key(first.lock.as_str()))
        };
        // A batch that grants nothing waits for no replica: a release that a failover loses is repeated.
        let mark = if self.link.acks > 0 { mark() } else { None };
        let scripts: Vec<_> = plan.iter().map(|request| request.script).collect();
        let command = |at: usize, verb: &str, script: &str| plan[at].command(verb, script, channel);
        self.call(live, &scripts, command, asking, mark).await
    }

    /// Runs a script on one cell; `asking`: although its slot is still coming to this node.
    pub(super) async fn run(
        &self,
        live: &Arc<Live>,
        cell: &CellCall<'_>,
        asking: bool,
    ) -> Result<Value> {
        let command = |_, verb: &str, script: &str| cell.command(verb, script);
        let Replies { mut values, lack } = self.call(live, &[CELL], command, asking, None).await?;
        lack.failed.map_or_else(|| Ok(values.pop().unwrap_or_default()), Err)
    }

    /// Sends what a batch was cut into; answers every step.
    pub(super) async fn carry_out(&self, batch: &[Step], plan: &[Request<'_>]) -> Vec<Answer> {
        let live = match self.link.live_for(batch).await {
            Ok(live) => live,
            Err(error) => return fail(batch, &Failure::refused(error)),
        };
        // Before a server is asked for a vote, it says since when it has kept its data.
        if self.data_age.is_due(batch, &live)
            && let Err(error) = self.check_data_age(&live).await
        {
            return fail(batch, &Failure::refused(error));
        }
        let behind = live.cancelled().and_then(|cancelled| cancelled.behind(batch));
        let replanned = behind.as_ref().map(|batch| Request::plan(batch));
        let sent = {
            let awaited = live.cancelled().map(|cancelled| cancelled.awaits(batch));
            let sent = self.exchange(&live, replanned.as_deref().unwrap_or(plan), false).await;
            if let (Some(awaited), Ok(_)) = (awaited, &sent) {
                awaited.answered();
            }
            sent
        };
        let Replies { values, lack } = match sent {
            Ok(replies) => replies,
            Err(error) => return fail(batch, &Failure::unknown(error)),
        };
        let mut answers = Vec::with_capacity(batch.len());
        for (request, reply) in plan.iter().zip(values) {
            self.take_in(request, reply, &lack, &mut answers);
        }
        for (step, answer) in batch.iter().zip(&mut answers) {
            if let (Action::Take(Take { vote: Some(vote), .. }), Ok(UNBORN)) =
                (&step.action, &*answer)
            {
                self.data_age.gone();
                *answer = Ok(Outcome::Recovering { left: vote.aged });
            }
        }
        let demoted =
            |answer: &Answer| answer.as_ref().is_err_and(|lack| fault::is_demotion(&lack.error));
        if answers.iter().any(demoted) {
            self.link.demote(&live);
        }
        answers
    }

    /// The run of the server; it has noted since when it keeps its data.
    pub(super) async fn run_id(&self) -> Result<String> {
        let live = self.link.live().await?;
        self.check_data_age(&live).await
    }

    /// Delivers notices from now on. A node of a quorum that comes back is met at once, not when its vote is wanted.
    pub(super) async fn listen(self: &Arc<Self>, sink: NoticeSink) -> Result<()> {
        let node = Arc::downgrade(self);
        let deliver = move |notice| {
            if let (Notice::Gap, Some(node)) = (&notice, node.upgrade())
                && node.data_age.votes()
            {
                let runtime = node.link.runtime.clone();
                // If it fails, the next vote makes up for it.
                runtime.spawn(Box::pin(async move { drop(node.run_id().await) }));
            }
            sink(notice);
        };
        self.link.listen(Arc::new(deliver)).await
    }

    async fn check_data_age(&self, live: &Arc<Live>) -> Result<String> {
        let command = data_age_command(&self.clock.text(BORN));
        let reply = self.send(live, vec![command]).await?.pop().unwrap_or_default();
        let refused = |error| fault::unreachable(&self.link.address, &error);
        let run = redis::from_redis_value(reply.extract_error().map_err(refused)?)
            .map_err(|error| fault::unanswered(&self.link.address, &error.to_string()))?;
        self.data_age.done(live);
        Ok(run)
    }

    /// Appends the answers that a reply gives to the request's steps.
    pub(super) fn take_in(
        &self,
        request: &Request<'_>,
        reply: Value,
        lack: &Lack,
        answers: &mut Vec<Answer>,
    ) {
        if let Some(error) = lack.failed.as_ref().filter(|_| is_unknown_script(&reply)) {
            return answers.extend(fail(request.steps, &Failure::unknown(error.clone())));
        }
        let before = answers.len();
        request.answers(reply, &self.link.address, answers);
        let Some(error) = &lack.acks else { return };
        for answer in &mut answers[before..] {
            if matches!(answer, Ok(Outcome::Granted { .. })) {
                // It stands on the master, and on how many others nobody knows.
                *answer = Err(Failure::unknown(error.clone()));
            }
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
        let mut scan = Scan::of(prefix);
        while let Some(command) = scan.next() {
            let reply = self.look(command).await?;
            let unread = |error: redis::ParsingError| {
                fault::unanswered(&self.link.address, &error.to_string())
            };
            names.extend(scan.take_in(reply).map_err(unread)?);
        }
        Ok(())
    }
}

/// Whether a step may be answered by a grant.
fn may_grant(action: &Action) -> bool {
    let ends = matches!(action, Action::Free { .. } | Action::Break | Action::Leave { .. });
    !(action.only_looks() || ends)
}

/// The call that maintains the mark. A mark without the server's run would come back with an old snapshot, and the locks taken since would
/// not.
fn data_age_command(text: &str) -> Cmd {
    let mut command = redis::cmd("EVAL");
    command.arg(text).arg(1).arg(BIRTH);
    command
}

/// Over which connection the mark was seen to, if it ever was. A server that restarts breaks it.
#[derive(Default)]
struct DataAge(Mutex<Option<Weak<Live>>>);

impl DataAge {
    /// Whether it has to be seen to before these steps go out.
    fn is_due(&self, batch: &[Step], live: &Arc<Live>) -> bool {
        let seen = || self.0.lock().as_ref().map(Weak::as_ptr);
        batch.iter().any(steps::votes) && seen() != Some(Arc::as_ptr(live))
    }

    /// Whether the server is a node of a quorum.
    fn votes(&self) -> bool {
        self.0.lock().is_some()
    }

    /// It was seen to.
    fn done(&self, live: &Arc<Live>) {
        *self.0.lock() = Some(Arc::downgrade(live));
    }

    /// A server did not find its mark.
    fn gone(&self) {
        *self.0.lock() = Some(Weak::new());
    }
}
