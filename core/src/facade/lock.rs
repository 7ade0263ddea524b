//! Operations on locks, guards and the client.

use std::time::Duration;

use serde_json::{Value, json};

use super::client::{Facade, Named, Work, with_options};
use super::held::HeldItem;
use super::operation::Form;
use crate::error::{Code, Error, Result};
use crate::fence::Token;
use crate::lock::Lock;
use crate::options::OptionValue;
use crate::port::Mode;

impl Facade {
    fn lock(&self, name: &str, form: Form, options: Named) -> Result<Lock> {
        let Form { mode, permits, scope } = form;
        if mode != Mode::Exclusive && scope.is_some() {
            let message = "a scope holds mutexes; ask for a reader, writer or permit without it";
            return Err(Error::new(Code::Unsupported, message).with("name", name));
        }
        if mode != Mode::Permit && permits.is_some() {
            return Err(Error::invalid("permits", "`permits` goes with the mode `permit`"));
        }
        let lock = match mode {
            Mode::Exclusive => match scope {
                Some(number) => {
                    let scope = self.shared.state.lock().scopes.get(&number).cloned();
                    let unknown = || Error::invalid("scope", "this scope was closed, or never was");
                    scope.ok_or_else(unknown)?.lock(name)
                }
                None => self.client.lock(name),
            },
            Mode::Read => self.client.read_lock(name),
            Mode::Write => self.client.write_lock(name),
            Mode::Permit => {
                let count = permits.and_then(|permits| u32::try_from(permits).ok()).unwrap_or(0);
                self.client.semaphore(name, count)
            }
        };
        Ok(with_options(lock, options, Lock::option))
    }

    pub(super) fn acquire(&self, name: &str, form: Form, options: Named) -> Work {
        let lock = self.lock(name, form, options);
        Box::pin(async move { Ok(HeldItem::Guard(lock?.acquire().await?).into()) })
    }

    pub(super) fn try_acquire(
        &self,
        name: &str,
        form: Form,
        options: Named,
        wait: Option<Value>,
    ) -> Work {
        let lock = self.lock(name, form, options);
        Box::pin(async move {
            let tried = match wait {
                None => lock?.try_acquire(),
                Some(wait) => lock?.option("wait", OptionValue(wait)).try_in_time(),
            };
            Ok(tried.await?.map(HeldItem::Guard).into())
        })
    }

    pub(super) fn acquire_all(&self, names: Vec<String>, options: Named) -> Work {
        let all = with_options(self.client.all(names), options, crate::All::option);
        Box::pin(async move { Ok(HeldItem::Guard(all.acquire().await?).into()) })
    }

    pub(super) fn try_acquire_all(
        &self,
        names: Vec<String>,
        options: Named,
        wait: Option<Value>,
    ) -> Work {
        let all = with_options(self.client.all(names), options, crate::All::option);
        Box::pin(async move {
            let tried = match wait {
                None => all.try_acquire(),
                Some(wait) => all.option("wait", OptionValue(wait)).try_in_time(),
            };
            Ok(tried.await?.map(HeldItem::Guard).into())
        })
    }

    /// At once: whoever gives up waiting for the answer has given it back.
    pub(super) fn release(&self, guard: u64, succeeded: bool) -> Work {
        let held = self.shared.state.lock().held.remove(&guard).ok_or_else(Error::not_held);
        let ending = held.map(|held| held.release(succeeded));
        Box::pin(async move { Ok(ending?.await.into()) })
    }

    pub(super) fn transfer(&self, guard: u64) -> Work {
        let held = self.shared.state.lock().held.remove(&guard).ok_or_else(Error::not_held);
        Box::pin(async move {
            match held? {
                HeldItem::Guard(guard) => Ok(json!(guard.transfer().await?).into()),
                other @ HeldItem::Run(_) => {
                    other.take_back();
                    let message = "only the guard of one lock goes to another process";
                    Err(Error::new(Code::Unsupported, message))
                }
            }
        })
    }

    pub(super) fn adopt(&self, text: &str) -> Work {
        let adopted = self.client.adopt(text);
        Box::pin(async move { Ok(HeldItem::Guard(adopted.await?).into()) })
    }

    pub(super) fn extend(&self, guard: u64, ttl: f64) -> Work {
        let claim = self.claim(guard);
        Box::pin(async move {
            let ttl = Duration::try_from_secs_f64(ttl / 1000.0).unwrap_or_default();
            claim?.extend(ttl).await?;
            Ok(Value::Null.into())
        })
    }

    pub(super) fn lost(&self, guard: u64) -> Work {
        let claim = self.claim(guard);
        Box::pin(async move {
            if claim?.ended().await { Ok(Value::Null.into()) } else { Err(Error::not_held()) }
        })
    }

    pub(super) fn inspect(&self, name: &str, options: Named) -> Work {
        let lock = self.lock(name, Form::default(), options);
        Box::pin(async move { Ok(json!(lock?.inspect().await?).into()) })
    }

    pub(super) fn is_locked(&self, name: &str, form: Form, options: Named) -> Work {
        let lock = self.lock(name, form, options);
        Box::pin(async move { Ok(json!(lock?.is_locked().await?).into()) })
    }

    pub(super) fn break_lock(&self, name: String, reason: String, token: Option<u64>) -> Work {
        let client = self.client.clone();
        Box::pin(async move {
            let broken = match token {
                None => client.break_lock(&name, &reason).await?,
                Some(token) => client.break_hold(&name, Token::new(token), &reason).await?,
            };
            Ok(json!(broken).into())
        })
    }

    pub(super) fn ping(&self) -> Work {
        let client = self.client.clone();
        Box::pin(async move { Ok(json!(client.ping().await?.as_secs_f64() * 1000.0).into()) })
    }

    pub(super) fn names(&self, prefix: String) -> Work {
        let client = self.client.clone();
        Box::pin(async move { Ok(json!(client.names(&prefix).await?).into()) })
    }

    pub(super) fn close(&self) -> Work {
        let client = self.client.clone();
        Box::pin(async move {
            client.close().await;
            Ok(Value::Null.into())
        })
    }
}
