//! One server, over one connection: what is sent there, and what comes back.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};

use redis::{Cmd, Pipeline, Value};

use super::cell::CellCall;
use super::connection::{Link, Live};
use super::fault;
use super::keys::{self, BIRTH};
use super::replies::{self, Replies, UNBORN};
use super::scripts::{BORN, CELL};
use super::steps::{self, Request, fail};
use crate::error::{Error, Result};
use crate::port::{Action, Answer, Failure, LockKey, Notice, NoticeSink, Outcome, Step, Take};
use crate::runtime::sync::Mutex;

/// A server that carries steps out.
pub(super) struct Node {
    pub(super) link: Arc<Link>,
    data_age: DataAge,
}

impl Node {
    pub(super) fn new(link: Arc<Link>) -> Self {
        Self { link, data_age: DataAge::default() }
    }

    /// The same for one that votes, from its first connection on.
    pub(super) fn of_quorum(link: Arc<Link>) -> Self {
        let node = Self::new(link);
        node.data_age.gone();
        node
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
    /// it, `mark` has the replicas acknowledge them. Answers also why too few replicas have, if so.
    async fn send_as(
        &self,
        live: &Arc<Live>,
        mut commands: Vec<Cmd>,
        asking: bool,
        mark: Option<String>,
    ) -> Result<(Vec<Value>, Option<Error>), Failure> {
        if asking {
            let permitted =
                commands.into_iter().flat_map(|command| [redis::cmd("ASKING"), command]);
            commands = permitted.collect();
        }
        let sent = match (&live.ack_connection, mark) {
            (Some(ack_connection), Some(mark)) => {
                ack_connection.send(&self.link, live, commands, mark).await
            }
            _ => self.send(live, commands).await.map(|values| (values, None)),
        };
        let (mut values, lack) = sent.map_err(Failure::unknown)?;
        if asking {
            values = values.into_iter().skip(1).step_by(2).collect();
        }
        Ok((values, lack))
    }

    /// Sends requests; `asking`: although their slot is still coming to this node.
    pub(super) async fn exchange(
        &self,
        live: &Arc<Live>,
        plan: &[Request<'_>],
        asking: bool,
    ) -> Result<Replies, Failure> {
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
        let send = |commands| self.send_as(live, commands, asking, mark.clone());
        replies::call(&scripts, &live.sent, command, send).await
    }

    /// Runs a script on one cell; `asking`: although its slot is still coming to this node.
    pub(super) async fn run(
        &self,
        live: &Arc<Live>,
        cell: &CellCall<'_>,
        asking: bool,
    ) -> Result<Value, Failure> {
        let command = |_, verb: &str, script: &str| cell.command(verb, script);
        let send = |commands| self.send_as(live, commands, asking, None);
        replies::call(&[CELL], &live.sent, command, send).await?.only()
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
        let Replies { values, lack } = match self.exchange(&live, plan, false).await {
            Ok(replies) => replies,
            Err(failure) => return fail(batch, &failure),
        };
        let mut answers = Vec::with_capacity(batch.len());
        for (request, reply) in plan.iter().zip(values) {
            request.answers(reply, &lack, &self.link.address, &mut answers);
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
        let command = data_age_command(BORN.text());
        let reply = self.send(live, vec![command]).await?.pop().unwrap_or_default();
        let refused = |error| fault::unreachable(&self.link.address, &error);
        let run = redis::from_redis_value(reply.extract_error().map_err(refused)?)
            .map_err(|error| fault::unanswered(&self.link.address, &error.to_string()))?;
        self.data_age.done(live);
        Ok(run)
    }

    /// One command that changes nothing.
    pub(super) async fn look(&self, command: Cmd) -> Result<Value> {
        let live = self.link.live().await?;
        let reply = self.send(&live, vec![command]).await?.pop().unwrap_or_default();
        reply.extract_error().map_err(|error| fault::unreachable(&self.link.address, &error))
    }

    /// Adds the locks on this server whose key begins with `prefix`.
    pub(super) async fn names(&self, prefix: &str, names: &mut BTreeSet<LockKey>) -> Result<()> {
        names.append(&mut keys::names(prefix, &self.link.address, |it| self.look(it)).await?);
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
