//! Steps on versions, jobs and elections.

use std::time::Duration;

use serde_json::{Value, json};

use super::engine::{Run, millis};
use super::scope::Scope;
use super::step::{Expect, JobStep, Observe, Step, Update, ValueStep, Write};
use crate::protocol::{Call, Options};

impl Run<'_> {
    pub(super) async fn on_cells(&self, scope: &mut Scope, step: &Step) -> Result<(), String> {
        match step {
            Step::Job(step) => self.job(scope, step).await,
            Step::Leader(step) => {
                let lock = scope.lock_name(&self.prefix, &step.lock);
                let seen = self.ask_now(&step.by, Call::Leader { lock }).await?;
                same(&Self::leader_named(scope, &step.is)?, &seen["token"])
            }
            Step::Observe(step) => self.observe(scope, step).await,
            Step::Value(step) => self.value(scope, step).await,
            Step::Write(step) => self.write(scope, step).await,
            Step::Update(step) => self.update(scope, step).await,
            _ => unreachable!("the engine takes the others"),
        }
    }

    /// The token of a guard; null for `nobody`.
    fn leader_named(scope: &mut Scope, name: &str) -> Result<Value, String> {
        if name == "nobody" { Ok(Value::Null) } else { Ok(json!(scope.grant(name)?.1.token)) }
    }

    async fn job(&self, scope: &mut Scope, step: &JobStep) -> Result<(), String> {
        let lock = scope.lock_name(&self.prefix, &step.lock);
        let token = step.is.as_ref().map(|run| scope.grant(run)).transpose()?;
        let end = self.clock.now() + millis(step.within.map_or(0, |within| within + self.slack));
        loop {
            let call = Call::InspectJob { lock: lock.clone() };
            let seen = self.ask_now(&step.by, call).await?;
            let status = if seen.is_null() { &json!("none") } else { &seen["status"] };
            let fits = step.status.as_ref().is_none_or(|expected| status == expected)
                && step.dead.is_none_or(|dead| seen["dead"] == dead)
                && token.as_ref().is_none_or(|(_, grant)| seen["token"] == grant.token);
            if fits {
                return Ok(());
            }
            if self.clock.now() >= end {
                return Err(format!("the last run is {seen}"));
            }
            self.sleep(Duration::from_millis(5)).await;
        }
    }

    async fn observe(&self, scope: &mut Scope, step: &Observe) -> Result<(), String> {
        let lock = scope.lock_name(&self.prefix, &step.lock);
        let before = Self::leader_named(scope, &step.after)?;
        let is = Self::leader_named(scope, &step.is)?;
        let before = if before.is_null() { before } else { json!({"token": before, "info": ""}) };
        let mut seen = before.clone();
        let end = self.clock.now() + millis(step.within + self.slack);
        loop {
            let call = Call::Observe {
                lock: lock.clone(),
                options: step.options.clone(),
                seen: seen.clone(),
            };
            let left = end.since(self.clock.now());
            let reply = self.player(&step.by)?.ask(call);
            let told = self.end(&reply, left).await?.end;
            let crate::protocol::End::Ok(told) = told else {
                return Err(format!("observing ended with {told:?}"));
            };
            // What the old leader said of itself is not known here, so it may be told once more.
            if told["token"] != before["token"] {
                return same(&is, &told["token"]);
            }
            seen = told;
        }
    }

    async fn value(&self, scope: &mut Scope, step: &ValueStep) -> Result<(), String> {
        let lock = scope.lock_name(&self.prefix, &step.lock);
        let seen = self.ask_now(&step.by, Call::ReadVersion { lock }).await?;
        same(&step.is, &seen["value"])?;
        if let (Some(name), Some(version)) = (&step.r#as, seen["version"].as_u64()) {
            scope.versions.insert(name.clone(), version);
        }
        Ok(())
    }

    async fn write(&self, scope: &mut Scope, step: &Write) -> Result<(), String> {
        let lock = scope.lock_name(&self.prefix, &step.lock);
        let version = |name: &String| {
            scope.versions.get(name).copied().ok_or_else(|| format!("there is no version `{name}`"))
        };
        let expected = step.over.as_ref().map(version).transpose()?;
        let call = match (&step.value, expected) {
            (Some(value), expected) => {
                let (options, value) = (step.options.clone(), value.clone());
                Call::CompareAndSet { lock, options, expected, value }
            }
            (None, Some(expected)) => {
                Call::DeleteVersion { lock, options: step.options.clone(), expected }
            }
            (None, None) => return Err("a deletion needs a version".to_owned()),
        };
        let told = self.call(&step.by, call, step.expect.as_ref().unwrap_or(&Expect::Done)).await?;
        if step.expect.is_some() {
            return Ok(());
        }
        let made = told["done"].as_u64();
        if made.is_some() == step.late {
            return Err(format!("the write came to {told}"));
        }
        if made.is_some_and(|made| Some(made) <= expected) {
            return Err(format!("the version fell: {told} after {expected:?}"));
        }
        if let (Some(name), Some(version)) = (&step.r#as, made) {
            scope.versions.insert(name.clone(), version);
        }
        Ok(())
    }

    async fn update(&self, scope: &mut Scope, step: &Update) -> Result<(), String> {
        let lock = scope.lock_name(&self.prefix, &step.lock);
        let by = self.actor_named(&step.by);
        let options: Options = step.options.clone();
        let call = Call::Update { lock, options, add: step.add };
        self.call(&by, call, step.expect.as_ref().unwrap_or(&Expect::Done)).await?;
        Ok(())
    }
}

fn same(expected: &Value, seen: &Value) -> Result<(), String> {
    if expected == seen { Ok(()) } else { Err(format!("expected {expected}, found {seen}")) }
}
