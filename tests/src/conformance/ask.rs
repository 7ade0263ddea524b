//! Acquires: begun, awaited, and what is noted of their ends.

use std::sync::atomic::Ordering;

use fencelock::Code;
use serde_json::Value;

use super::cell_step::RunOf;
use super::check;
use super::engine::{HANG, Run, locked, millis};
use super::scope::{Entry, Fate, Scope};
use super::step::{Ask, Await, Expect};
use crate::protocol::{Call, End};

impl Run<'_> {
    /// Sets an acquire off and gives it its name.
    pub(super) fn start(&self, scope: &mut Scope, ask: &Ask, once: bool) -> Result<String, String> {
        let lock = scope.lock_name(&self.prefix, &ask.lock);
        let dialect = ask.options.get("dialect").and_then(Value::as_str).map(str::to_owned);
        let all: Vec<_> = ask.all.iter().map(|name| scope.lock_name(&self.prefix, name)).collect();
        let key = if ask.job.is_some() {
            // A run holds no lock, and its tokens are no lock's.
            (format!("job {lock}"), dialect)
        } else {
            let locks = if all.is_empty() { std::slice::from_ref(&lock) } else { &all };
            let keys = locks.iter().map(|lock| (lock.clone(), dialect.clone()));
            locked(&self.notes.locks).extend(keys);
            // Of several as one the token is the first one's, in the order of the names.
            (locks.iter().min().unwrap_or(&lock).clone(), dialect)
        };
        let by = self.actor_named(&ask.by);
        let mut options = ask.options.clone();
        if let Some(Value::String(info)) = options.get_mut("info") {
            *info = scope.fill_in(info);
        }
        let call = match ask.work {
            _ if ask.elect && once => Call::TryCampaign { lock, options },
            _ if ask.elect => Call::Campaign { lock, options },
            _ if ask.job.is_some() => {
                let RunOf { times, at } = ask.job.clone().expect("a run is asked for");
                Call::StartJob { lock, options, times: times.into(), at }
            }
            _ if !all.is_empty() && once => {
                Call::TryAll { locks: all, options, wait: ask.patience.map(|wait| wait as f64) }
            }
            _ if !all.is_empty() => Call::AcquireAll { locks: all, options },
            Some(work) => Call::With { lock, options, work: work as f64 },
            None => {
                let Ask { mode, permits, ref scope, .. } = *ask;
                let scope = scope.clone();
                if once {
                    let wait = ask.patience.map(|wait| wait as f64);
                    Call::Try { lock, mode, permits, scope, options, wait }
                } else {
                    Call::Acquire { lock, mode, permits, scope, options }
                }
            }
        };
        let reply = self.player(&by)?.ask(call);
        scope.insert(
            ask.r#as.as_ref(),
            Entry {
                by,
                lock: key,
                again: ask.scope.is_some(),
                reply,
                grant: None,
                fate: Fate::Asked,
            },
        )
    }

    /// The actor these words mean.
    pub(super) fn actor_named(&self, words: &str) -> String {
        let case = self.case;
        let named: Vec<&str> = match words {
            "any" => case.actors.iter().chain(&case.incumbents).map(String::as_str).collect(),
            words => words.split(' ').collect(),
        };
        match named[..] {
            [one] => one.to_owned(),
            _ => named[self.notes.turns.fetch_add(1, Ordering::Relaxed) % named.len()].to_owned(),
        }
    }

    pub(super) async fn acquire(
        &self,
        scope: &mut Scope,
        ask: &Ask,
        once: bool,
    ) -> Result<(), String> {
        let what = self.start(scope, ask, once)?;
        let normally = if self.case.is_incumbent(&scope.entry(&what)?.by) {
            Expect::Taken
        } else {
            Expect::Granted
        };
        let expect = ask.expect.clone().or((ask.work.is_none()).then_some(normally));
        self.wait(scope, &Await { what, expect, within: None, took: ask.took, after: [].into() })
            .await
    }

    /// Waits for an end, compares it, and takes note of its guard.
    pub(super) async fn wait(&self, scope: &mut Scope, step: &Await) -> Result<(), String> {
        let slack = self.slack;
        let within = step.within.map_or(HANG, millis);
        let entry = scope.entry(&step.what)?;
        let reply = entry.reply.clone();
        let ended = match self.end(&reply, within).await {
            Ok(ended) => ended,
            Err(wrong) => return Err(format!("{wrong}; what has ended: {:?}", scope.ended())),
        };
        for (other, least) in &step.after {
            let long = ended.at.since(scope.entry(other)?.reply.asked);
            if long < millis(*least) {
                return Err(format!(
                    "it came {long:?} after `{other}`, expected {least} ms at least"
                ));
            }
        }
        let entry = scope.entry(&step.what)?;
        entry.grant = check::grant(&ended.end);
        entry.fate = if entry.grant.is_some() { Fate::Granted } else { Fate::Over };
        let (by, asked, grant) = (entry.by.clone(), entry.reply.asked, entry.grant);
        let (lock, again) = (entry.lock.clone(), entry.again);
        let incumbent = self.case.is_incumbent(&by);
        let normally = match ended.end {
            End::Ok(ref value) if value.get("guard").is_none() && value.is_object() => Expect::Done,
            _ if incumbent => Expect::Taken,
            _ => Expect::Granted,
        };
        let expect = step.expect.as_ref().unwrap_or(&normally);
        check::end(expect, &ended.end)?;
        if let End::Error(refusal) = &ended.end
            && matches!(refusal.code, Code::Invalid | Code::Unsupported)
        {
            // With such options there is no lock to look at.
            locked(&self.notes.locks).remove(&entry.lock);
        }
        if let Some(range) = step.took {
            check::took(range, (asked, ended.at), slack)?;
        }
        let Some(grant) = grant else { return Ok(()) };
        if incumbent {
            // Without a token, and with no word for a loss.
            return Ok(());
        }
        if matches!(step.expect, Some(Expect::GivenUp)) {
            // The host gave up what was granted at the same moment: nobody else will give it back.
            entry.fate = Fate::Gone;
            self.call(&by, Call::Drop { guard: grant.guard }, &Expect::Done).await?;
            return Ok(());
        }
        locked(&self.notes.watched).insert((by.clone(), grant.guard));
        self.call(&by, Call::Lost { guard: grant.guard }, &Expect::Done).await?;
        let token = self.ask_now(&by, Call::Token { guard: grant.guard }).await?;
        if token != grant.token {
            return Err(format!("the guard's token is {token}, granted was {}", grant.token));
        }
        let (lock, dialect) = lock;
        if !locked(&self.notes.tokens).insert((lock, dialect, grant.token)) && !again {
            return Err(format!("the token {token} was granted twice"));
        }
        Ok(())
    }
}
