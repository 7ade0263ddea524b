//! Optimistic version: a value by name, replaced only if nobody was faster.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::algorithm::UpdateRequest;
use crate::client::Client;
use crate::engine::Engine;
use crate::error::{Code, Error, Result};
use crate::options::{OptionScope, OptionValue, Options, full_name};
use crate::port::{CellKey, Change, Family, Look, OwnerId, Swap, Version};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The longest value, as JSON.
const LONGEST: usize = 1 << 20;

/// A value by name, made by [`Client::version`]. It is kept as JSON, so that every language reads what another wrote.
///
/// Nobody holds anything: whoever changes the value names the version it has read, and is told if somebody was faster.
/// That suits values that are seldom fought over; where each change takes long or has effects elsewhere, take a lock.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let client = fencelock::connect("memory:version").await?;
/// let balance = client.version("balance:42");
/// balance.update(|value: Option<u64>| Some(value.unwrap_or(0) + 100)).await?;
///
/// // Nothing is written, and `None` answered, if there is nothing to write.
/// let taken = balance.update(|value: Option<u64>| value?.checked_sub(130)).await?;
/// assert!(taken.is_none());
/// assert_eq!(balance.read::<u64>().await?.expect("it was written").value, 100);
/// # Ok::<(), fencelock::Error>(()) }).unwrap();
/// ```
#[derive(Clone)]
pub struct Versioned {
    client: Client,
    name: Arc<str>,
    key: CellKey,
    options: Options,
    /// The first mistake made in setting it up.
    mistake: Option<Error>,
}

/// A value and the version it was read at, or written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Snapshot<T> {
    /// The value.
    pub value: T,
    /// Its version.
    pub version: Version,
}

/// How a compare-and-set ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "what was not written has to be made anew from the present value"]
pub enum Swapped<T> {
    /// The value was written, and has this version.
    Done(Version),
    /// Somebody was faster: this is there instead.
    Changed(Option<Snapshot<T>>),
}

impl Client {
    /// A value by name that is replaced only if nobody was faster; see [`Versioned`].
    pub fn version(&self, name: &str) -> Versioned {
        Versioned::new(self.clone(), name)
    }
}

impl Versioned {
    pub(crate) fn new(client: Client, name: &str) -> Self {
        let options = client.options().clone();
        let (full, mistake) = full_name(&options.prefix, name);
        let key = CellKey::new(Family::Version, full);
        Self { client, name: name.into(), key, options, mistake }
    }

    /// How often [`Versioned::update`] tries again when somebody else was faster; 16 by default.
    pub fn retries(mut self, retries: u32) -> Self {
        self.options.retries = retries;
        self
    }

    /// How long the store keeps the value after its last change; for ever by default.
    pub fn keep(mut self, keep: Duration) -> Self {
        self.options.keep = Some(keep);
        self
    }

    /// Keeps the value in a row of your own table, which you make and delete: `account(id, version, balance)` is the table `account`
    /// (or `schema.table`), the column with the key, which is the version's name, one with a whole number that rises with each change,
    /// and one with the value. Each change of yours to such a row has to raise that number too.
    ///
    /// On PostgreSQL and MySQL. Whether a change was made whose answer was lost cannot be told from such a row: if it has changed since, the
    /// answer is `unavailable`, not retryable.
    ///
    /// ```no_run
    /// # async fn example() -> fencelock::Result<()> {
    /// let client = fencelock::connect("postgres://app@localhost/shop").await?;
    /// let balance = client.version("42").on_table("account(id, version, balance)");
    /// balance.update(|value: Option<u64>| value?.checked_sub(30)).await?;
    /// # Ok(()) }
    /// ```
    pub fn on_table(mut self, table: &str) -> Self {
        table.clone_into(&mut self.options.on_table);
        self
    }

    /// Sets any option by its name in the [table](crate::options::TABLE).
    pub fn option(mut self, name: &str, value: impl Into<OptionValue>) -> Self {
        if let Err(mistake) = self.options.set_all([(name, value.into())], OptionScope::Version) {
            self.mistake.get_or_insert(mistake);
        }
        self
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The value and its version; `None` if there is none.
    pub async fn read<T: DeserializeOwned>(&self) -> Result<Option<Snapshot<T>>> {
        let look = self.engine()?.look(&self.key()).await?;
        self.snapshot(&look)
    }

    /// Writes the value if its version is still `expected`; with `None`, if there is no value.
    pub async fn compare_and_set<T>(
        &self,
        expected: Option<Version>,
        value: &T,
    ) -> Result<Swapped<T>>
    where
        T: Serialize + DeserializeOwned,
    {
        let value = self.text(value)?;
        self.replace(expected, Some(value.into())).await
    }

    /// Deletes the value if its version is still `expected`. Versions rise on from there.
    pub async fn delete<T: DeserializeOwned>(&self, expected: Version) -> Result<Swapped<T>> {
        self.replace(Some(expected), None).await
    }

    /// Replaces the value by what `change` makes of it. If somebody was faster, `change` is asked again with what is
    /// there by then, after a short random pause, at most `retries` times; then the answer is `conflict`. `None` of
    /// `change` leaves everything as it is, and is answered.
    ///
    /// An error with code `unavailable` that is not retryable says that the store did not answer, and that whether the
    /// value was changed could not be found out.
    pub async fn update<T, F>(&self, mut change: F) -> Result<Option<Snapshot<T>>>
    where
        T: Serialize + DeserializeOwned,
        F: FnMut(Option<T>) -> Option<T>,
    {
        let engine = self.engine()?;
        let mut made = None;
        let version = engine
            .update(&self.key(), self.request(), |text| {
                let before = text.map(|text| self.parse(text)).transpose()?;
                made = change(before);
                made.as_ref().map(|value| self.text(value)).transpose()
            })
            .await?;
        Ok(version.zip(made).map(|(version, value)| Snapshot { value, version }))
    }

    async fn replace<T: DeserializeOwned>(
        &self,
        expected: Option<Version>,
        value: Option<Arc<str>>,
    ) -> Result<Swapped<T>> {
        let engine = self.engine()?;
        engine.check_open()?;
        // By this the cell tells whether a change whose answer was lost has been made.
        let writer = OwnerId::draw(&*engine.runtime);
        let (key, keep) = (self.key(), self.options.keep);
        let mut change = Change { key, expected, writer, value, keep };
        loop {
            let until = engine.runtime.now() + self.options.timeout;
            match engine.swap(&change, until).await.map_err(|failure| failure.error)? {
                Swap::Done { version, .. } => return Ok(Swapped::Done(version)),
                // A value that was deleted a while ago is none, as far as the caller can see.
                Swap::Other(Look { cell: Some(cell), .. })
                    if expected.is_none() && cell.value.is_none() =>
                {
                    change.expected = Some(cell.version());
                }
                Swap::Other(look) => return Ok(Swapped::Changed(self.snapshot(&look)?)),
            }
        }
    }

    /// Pauses before the next try of an update that a binding drives; fails after too many tries.
    pub(crate) async fn back_off(&self, tries: u32) -> Result<()> {
        self.engine()?.rest(&self.key(), self.request(), tries).await
    }

    /// Where it lies.
    fn key(&self) -> CellKey {
        let table = &self.options.on_table;
        if table.is_empty() {
            return self.key.clone();
        }
        // The keys of a program's own table are its own.
        CellKey {
            table: Some(table.as_str().into()),
            ..CellKey::new(Family::Version, self.name.clone())
        }
    }

    fn engine(&self) -> Result<&Arc<Engine>> {
        if let Some(mistake) = &self.mistake {
            return Err(mistake.clone());
        }
        self.options.check()?;
        Ok(self.client.engine())
    }

    fn request(&self) -> UpdateRequest {
        let Options { retries, backoff, keep, timeout, .. } = self.options;
        UpdateRequest { retries, backoff, keep, patience: timeout }
    }

    fn snapshot<T: DeserializeOwned>(&self, look: &Look) -> Result<Option<Snapshot<T>>> {
        let Some((value, version)) = look.value().zip(look.version()) else { return Ok(None) };
        Ok(Some(Snapshot { value: self.parse(value)?, version }))
    }

    fn parse<T: DeserializeOwned>(&self, text: &str) -> Result<T> {
        serde_json::from_str(text).map_err(|error| {
            let message = "the value is not of the type that was asked for; look at it as JSON";
            Error::new(Code::Conflict, message)
                .with("name", self.name())
                .with("reason", error.to_string())
        })
    }

    fn text<T: Serialize>(&self, value: &T) -> Result<String> {
        let unfit = |reason: String| {
            let message = "the value must be JSON of at most 1 MiB; keep larger ones elsewhere, and their address here";
            Error::invalid("value", message).with("name", self.name()).with("reason", reason)
        };
        let text = serde_json::to_string(value).map_err(|error| unfit(error.to_string()))?;
        if text.len() > LONGEST {
            return Err(unfit(format!("{} bytes", text.len())));
        }
        Ok(text)
    }
}

impl fmt::Debug for Versioned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Versioned")
            .field("name", &self.name())
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
