//! Steps on guards: given back, made longer, looked at, lost.

use std::time::Duration;

use fencelock::Code;
use futures_util::future::select;

use super::check::is_shown;
use super::engine::{INSTANT, LOOK, Run, locked, millis};
use super::scope::{Entry, Fate, Scope};
use super::step::{Await, Expect, Step, Transfer, Trouble};
use crate::protocol::{Call, Grant};

impl Run<'_> {
    pub(super) async fn on_guards(&self, scope: &mut Scope, step: &Step) -> Result<(), String> {
        match step {
            Step::Release(step) => {
                let (by, grant) = scope.grant(&step.guard)?;
                let expect = step.expect.as_ref().unwrap_or(&Expect::Released);
                let call = match step.succeeded {
                    Some(succeeded) => Call::EndJob { guard: grant.guard, succeeded },
                    None => Call::Release { guard: grant.guard },
                };
                self.call(&by, call, expect).await?;
                let released = matches!(expect, Expect::Released);
                if released {
                    locked(&self.notes.released).push((by, grant.guard));
                }
                scope.entry(&step.guard)?.fate = if released { Fate::Released } else { Fate::Gone };
            }
            Step::Transfer(step) => self.transfer(scope, step).await?,
            Step::Drop(name) => {
                let (by, grant) = scope.grant(name)?;
                self.call(&by, Call::Drop { guard: grant.guard }, &Expect::Done).await?;
                scope.entry(name)?.fate = Fate::Gone;
            }
            Step::Extend(step) => {
                let (by, grant) = scope.grant(&step.guard)?;
                let call = Call::Extend { guard: grant.guard, ttl: step.ttl };
                self.call(&by, call, step.expect.as_ref().unwrap_or(&Expect::Done)).await?;
            }
            Step::Break(step) => {
                let lock = scope.lock_name(&self.prefix, &step.lock);
                let token = step.token_of.as_ref().map(|name| scope.grant(name)).transpose()?;
                let token = token.map(|(_, grant)| grant.token);
                let call = Call::BreakLock { lock, reason: "it hangs".to_owned(), token };
                let expect = step.expect.as_ref().unwrap_or(&Expect::Done);
                let seen = self.call(&step.by, call, expect).await?;
                let holds = seen.as_array().into_iter().flatten();
                let seen: Vec<_> = holds.filter_map(|hold| hold["token"].as_u64()).collect();
                let broken = step.broken.iter().map(|name| Ok(scope.grant(name)?.1.token));
                let broken = broken.collect::<Result<Vec<_>, String>>()?;
                let voted = self.ground.is_voted();
                let mut pairs = seen.iter().zip(&broken);
                if seen.len() != broken.len()
                    || !pairs.all(|(seen, token)| is_shown(*seen, *token, voted))
                {
                    return Err(format!("the tokens of the broken holds are {seen:?}"));
                }
            }
            Step::Gate(step) => {
                let resource = scope.lock_name(&self.prefix, &step.key);
                let (token, write) = (scope.grant(&step.token_of)?.1.token, step.write.clone());
                let call = Call::Gate { resource, token, write };
                let seen = self.call(&step.by, call, step.expect.as_ref().unwrap_or(&Expect::Done));
                let seen = seen.await?;
                if seen != step.is {
                    return Err(format!("the gate answers {seen}"));
                }
            }
            Step::Held(step) => {
                let (by, grant) = scope.grant(&step.guard)?;
                let held = self.ask_now(&by, Call::IsHeld { guard: grant.guard }).await?;
                if held != step.is {
                    return Err(format!("`is_held` is {held}"));
                }
            }
            Step::Remaining(step) => {
                let (by, grant) = scope.grant(&step.guard)?;
                let left = self.ask_now(&by, Call::Remaining { guard: grant.guard }).await?;
                if !left.as_f64().is_some_and(|left| (step.from..=step.to).contains(&left)) {
                    return Err(format!("`remaining` is {left}"));
                }
            }
            Step::Lost(step) => {
                let (by, grant) = scope.grant(&step.guard)?;
                self.lost(&by, grant, millis(step.within + self.slack)).await?;
            }
            Step::Rising(names) => {
                let mut last = 0;
                for name in names {
                    let token = scope.grant(name)?.1.token;
                    if token <= last {
                        return Err(format!("the token of `{name}` is {token}, after {last}"));
                    }
                    last = token;
                }
            }
            _ => unreachable!("the engine takes the others"),
        }
        Ok(())
    }

    async fn transfer(&self, scope: &mut Scope, step: &Transfer) -> Result<(), String> {
        let (by, before) = scope.grant(&step.guard)?;
        let call = Call::Transfer { guard: before.guard };
        let text = self.call(&by, call, &Expect::Done).await?;
        let given = scope.entry(&step.guard)?;
        given.fate = Fate::Gone;
        let (lock, to) = (given.lock.clone(), step.to.clone());
        let text = text.as_str().unwrap_or_default().to_owned();
        let adopt = || Call::Adopt { text: text.clone() };
        let reply = self.player(&to)?.ask(adopt());
        let (grant, fate) = (None, Fate::Asked);
        // Its token is the one before.
        let entry = Entry { by: to.clone(), lock, again: true, reply, grant, fate };
        let what = scope.insert(Some(&step.r#as), entry)?;
        let granted = Some(Expect::Granted);
        let end = Await { what, expect: granted, within: None, took: None, after: [].into() };
        self.wait(scope, &end).await?;
        if scope.grant(&step.r#as)?.1.token != before.token {
            return Err("it goes on with another token".to_owned());
        }
        let (says, fields, retryable) = (None, [].into(), None);
        let used = Trouble { code: Code::NotHeld, says, fields, retryable };
        self.call(&to, adopt(), &Expect::Error(used)).await.map(drop)
    }

    async fn lost(&self, by: &str, grant: Grant, within: Duration) -> Result<(), String> {
        let player = self.player(by)?;
        let end = self.clock.now() + within;
        loop {
            let news = Box::pin(player.news());
            if !player.lost(grant.guard).is_empty() {
                return Ok(());
            }
            if self.clock.now() > end {
                return Err(format!("not told to be lost within {within:?}"));
            }
            select(news, self.clock.sleep_until((self.clock.now() + LOOK).min(end + INSTANT)))
                .await;
        }
    }
}
