//! Operations on values with versions.

use serde_json::{Value, json};

use super::client::{Facade, Named, Work, with_options};
use crate::port::Version;
use crate::version::{Swapped, Versioned};

impl Facade {
    fn version(&self, name: &str, options: Named) -> Versioned {
        let version = self.client.version(name);
        with_options(version, options, Versioned::option)
    }

    pub(super) fn read_version(&self, name: &str, options: Named) -> Work {
        let version = self.version(name, options);
        Box::pin(async move { Ok(json!(version.read::<Value>().await?).into()) })
    }

    pub(super) fn compare_and_set(
        &self,
        name: &str,
        options: Named,
        expected: Option<u64>,
        value: Value,
    ) -> Work {
        let version = self.version(name, options);
        let expected = expected.map(Version::new);
        Box::pin(async move { Ok(answer(version.compare_and_set(expected, &value).await?).into()) })
    }

    pub(super) fn delete_version(&self, name: &str, options: Named, expected: u64) -> Work {
        let version = self.version(name, options);
        Box::pin(async move {
            Ok(answer(version.delete::<Value>(Version::new(expected)).await?).into())
        })
    }

    pub(super) fn back_off(&self, name: &str, options: Named, tries: u32) -> Work {
        let version = self.version(name, options);
        Box::pin(async move { Ok(json!(version.back_off(tries).await?).into()) })
    }
}

fn answer(swapped: Swapped<Value>) -> Value {
    match swapped {
        Swapped::Done(version) => json!({ "done": version }),
        Swapped::Changed(there) => json!({ "changed": there }),
    }
}
