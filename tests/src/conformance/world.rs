//! Steps on actors and servers: connected, busy, frozen, killed.

use std::sync::atomic::Ordering;

use fencelock::port::Mode;

use super::check;
use super::engine::{HANG, PATIENCE, Run};
use super::scope::{Fate, Scope};
use super::step::{Connect, Expect, Name, Reach, Step};
use crate::protocol::{Call, End, Options};

impl Run<'_> {
    pub(super) async fn on_world(&self, scope: &mut Scope, step: &Step) -> Result<(), String> {
        match step {
            Step::Connect(connect) => {
                self.connect(connect).await?;
                // Its guards went with its old client.
                for entry in scope.entries.values_mut().filter(|entry| entry.by == connect.actor) {
                    entry.fate = if entry.fate == Fate::Granted { Fate::Gone } else { entry.fate };
                }
            }
            Step::Reach(step) => self.reach(scope, step).await?,
            Step::Close(actor) => {
                self.call(actor, Call::Close, &Expect::Done).await?;
                self.player(actor)?.closed.store(true, Ordering::Release);
            }
            Step::Busy(step) => drop(self.player(&step.actor)?.ask(Call::Busy { time: step.time })),
            Step::Leave(actor) => self.leave(actor).await?,
            Step::Kill(actor) => {
                self.notes.killed.store(true, Ordering::Release);
                self.player(actor)?.kill();
            }
            Step::Crash(actor) => {
                self.notes.killed.store(true, Ordering::Release);
                self.player(actor)?.crash();
            }
            Step::Stop(actor) => self.player(actor)?.freeze(true),
            Step::Resume(actor) => self.player(actor)?.freeze(false),
            Step::Redis(step) => {
                let words: Vec<_> = step
                    .command
                    .iter()
                    .map(|word| match word.split_once('$') {
                        Some((before, lock)) => {
                            let (lock, after) = lock.split_at(lock.find('}').unwrap_or(lock.len()));
                            let lock = Name::Own(lock.to_owned());
                            format!("{before}{}{after}", scope.lock_name(&self.prefix, &lock))
                        }
                        None => word.clone(),
                    })
                    .collect();
                let answer = self.ground.command(&words)?;
                if step.answer.as_ref().is_some_and(|expected| *expected != answer) {
                    return Err(format!("the store answered {answer}"));
                }
            }
            Step::Sql(step) => {
                let name = scope.lock_name(&self.prefix, &Name::Own("x".to_owned()));
                let answer = self.ground.sql(&step.run.replace("$x", &name))?;
                if step.answer.as_ref().is_some_and(|expected| *expected != answer) {
                    return Err(format!("the database answered {answer}"));
                }
            }
            Step::Server(what) => self.ground.control(*what)?,
            Step::TakeAway(lock) => self.ground.take_away(&scope.lock_name(&self.prefix, lock))?,
            _ => unreachable!("the engine takes the others"),
        }
        Ok(())
    }

    pub(super) async fn connect(&self, step: &Connect) -> Result<(), String> {
        let address = self.ground.url.rsplit(['@', '/']).next().unwrap_or_default();
        let url = step.url.as_deref().unwrap_or("$url");
        let url = url.replace("$url", &self.ground.url).replace("$address", address);
        let mut options = self.case.options.clone();
        options.extend(step.options.clone());
        if !self.case.is_incumbent(&step.actor) {
            if let Some(dialect) = self.dialect {
                options.entry("dialect").or_insert(dialect.into());
            }
            // How soon a busy machine answers is no case's matter, unless it says so.
            if self.slack > 0 && step.url.is_none() {
                for time in ["timeout", "connect_timeout"] {
                    options.entry(time).or_insert(PATIENCE.into());
                }
            }
        }
        let expect = step.expect.as_ref().unwrap_or(&Expect::Done);
        self.call(&step.actor, Call::Connect { url, options }, expect).await?;
        let closed = matches!(expect, Expect::Error(_));
        self.player(&step.actor)?.closed.store(closed, Ordering::Release);
        Ok(())
    }
    async fn reach(&self, scope: &Scope, step: &Reach) -> Result<(), String> {
        let url = match step.url.as_str() {
            "$intruder" => self.ground.intruder()?,
            "$nowhere" => self.ground.nowhere()?,
            url => return Err(format!("`{url}` is no place to reach for")),
        };
        let player = self.player(&step.actor)?;
        let connect = Call::Connect { url, options: self.case.options.clone() };
        let mut ended = self.end(&player.ask(connect), HANG).await?.end;
        // Some stores are not asked before somebody wants something of them.
        if matches!(ended, End::Ok(_)) {
            let lock = scope.lock_name(&self.prefix, &Name::default());
            let (mode, options) = (Mode::default(), Options::new());
            let call = Call::Try { lock, mode, permits: None, scope: None, options, wait: None };
            ended = self.end(&player.ask(call), HANG).await?.end;
            self.call(&step.actor, Call::Close, &Expect::Done).await?;
        }
        player.closed.store(true, Ordering::Release);
        check::end(&step.expect, &ended)
    }
}
