//! Operations on elections.

use serde_json::{Value, json};

use super::client::{Facade, Named, Work, with_options};
use super::held::HeldItem;
use crate::elect::{Election, Seen};
use crate::options::OptionValue;

impl Facade {
    fn election(&self, name: &str, options: Named) -> Election {
        let election = self.client.election(name);
        with_options(election, options, Election::option)
    }

    pub(super) fn campaign(&self, name: &str, options: Named) -> Work {
        let election = self.election(name, options);
        Box::pin(async move { Ok(HeldItem::Guard(election.campaign().await?).into()) })
    }

    pub(super) fn try_campaign(&self, name: &str, options: Named, wait: Option<Value>) -> Work {
        let election = self.election(name, options);
        Box::pin(async move {
            let tried = match wait {
                None => election.try_campaign(),
                Some(wait) => election.option("wait", OptionValue(wait)).try_in_time(),
            };
            Ok(tried.await?.map(HeldItem::Guard).into())
        })
    }

    pub(super) fn leader(&self, name: &str, options: Named) -> Work {
        let election = self.election(name, options);
        Box::pin(async move { Ok(json!(election.leader().await?).into()) })
    }

    pub(super) fn observe(&self, name: &str, options: Named, seen: Seen) -> Work {
        let mut observer = self.election(name, options).observe_after(seen);
        Box::pin(async move { Ok(json!(observer.changed().await?).into()) })
    }
}
