//! Changes of cells whose answer may be lost: carried out once, or not at all, or honestly not known.

use std::time::Duration;

use crate::engine::Engine;
use crate::error::{Code, Error, Result};
use crate::port::backoff::Backoff;
use crate::port::{
    Applied, Cell, CellKey, Cells, Change, Failure, Instant, Look, OwnerId, Runtime, Swap, Version,
};

/// The pause between two tries of an update grows up to this many times.
const LONGEST: u32 = 64;

/// How an update goes about it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UpdateRequest {
    /// How often it tries again.
    pub retries: u32,
    /// The longest pause before the first of these tries.
    pub backoff: Duration,
    /// How long the value is kept.
    pub keep: Option<Duration>,
    /// How long to look for the outcome of a change that was not answered.
    pub patience: Duration,
}

impl Engine {
    fn cells(&self, key: &CellKey) -> Result<Cells<'_>> {
        if key.table.is_some() && !self.store.capabilities().own_tables {
            let message = "only on PostgreSQL (`postgres://`) and MySQL a version can lie in a table of your own; leave `on_table` out";
            return Err(Error::new(Code::Unsupported, message));
        }
        self.store.cells().ok_or_else(Error::no_cells)
    }

    /// Reads the content of a cell.
    pub(crate) async fn look(&self, key: &CellKey) -> Result<Look> {
        self.check_open()?;
        let read = async { self.cells(key)?.read(key).await };
        read.await.map_err(|error| error.with("name", &*key.name))
    }

    /// Carries a change out, or tells what lies there instead.
    ///
    /// A change that was not answered is sent again as it is: it expects the same version, which never comes back once
    /// it has been replaced, so that at most one of its copies is carried out. The trail then tells whether one was.
    /// A change that is still in doubt at `until` has an unknown outcome.
    pub(crate) async fn swap(&self, change: &Change, until: Instant) -> Result<Swap, Failure> {
        let named = |failure: Failure| Failure {
            error: failure.error.with("name", &*change.key.name),
            ..failure
        };
        let cells = self.cells(&change.key).map_err(Failure::refused).map_err(named)?;
        if let Some(there) =
            own_row(cells, change).await.map_err(Failure::refused).map_err(named)?
        {
            return Ok(Swap::Other(there));
        }
        let mut doubtful = false;
        let mut backoff = Backoff::new();
        loop {
            let failure = match cells.compare_and_set(change).await {
                Ok(Swap::Other(look)) => return settle(change, look, doubtful).map_err(named),
                Ok(swap) => return Ok(swap),
                Err(failure) => failure,
            };
            doubtful |= failure.applied == Applied::Unknown;
            if !doubtful {
                return Err(named(failure));
            }
            let now = self.runtime.now();
            if now >= until || failure.error.code() == Code::Closed {
                return Err(named(unknown(&failure.error)));
            }
            self.runtime.sleep_until(until.min(now + backoff.next())).await;
        }
    }

    /// Replaces a value by what `change` makes of it, for as long as others are faster and tries are left. `None`: it
    /// made nothing of it.
    pub(crate) async fn update(
        &self,
        key: &CellKey,
        request: UpdateRequest,
        mut change: impl FnMut(Option<&str>) -> Result<Option<String>>,
    ) -> Result<Option<Version>> {
        let mut look = self.look(key).await?;
        let mut tries = 0;
        loop {
            let Some(value) = change(look.value())? else { return Ok(None) };
            let change = Change {
                key: key.clone(),
                expected: look.version(),
                writer: OwnerId::draw(&*self.runtime),
                value: Some(value.into()),
                keep: request.keep,
            };
            let until = self.runtime.now() + request.patience;
            match self.swap(&change, until).await.map_err(|failure| failure.error)? {
                Swap::Done { version, .. } => return Ok(Some(version)),
                Swap::Other(other) => look = other,
            }
            tries += 1;
            self.rest(key, request, tries).await?;
        }
    }

    /// The pause after so many tries that came too late, or `conflict` if there were too many.
    pub(crate) async fn rest(
        &self,
        key: &CellKey,
        request: UpdateRequest,
        tries: u32,
    ) -> Result<()> {
        if tries > request.retries {
            let message = "somebody else changed the value each time it was tried; try again, allow more `retries`, or take a lock";
            return Err(Error::new(Code::Conflict, message)
                .with("name", &*key.name)
                .with("tries", tries.to_string())
                .with_retryable(true));
        }
        let grown = request.backoff * 2_u32.saturating_pow(tries - 1).min(LONGEST);
        let pause = grown.mul_f64(fraction(&*self.runtime));
        self.runtime.sleep(pause).await;
        Ok(())
    }
}

/// The result of a change whose answer was the present state instead. An earlier copy may have been carried out: one
/// that was not answered (`doubtful`), or one that a transport made without being asked.
fn settle(change: &Change, look: Look, doubtful: bool) -> Result<Swap, Failure> {
    if doubtful && change.key.table.is_some() && look.version() != change.expected {
        // Such a row does not tell who changed it, and may have been made anew.
        let message = "the row has changed, and does not tell by whom";
        return Err(unknown(&Error::new(Code::Unavailable, message)));
    }
    let fate = look.cell.as_ref().map(|cell| (cell.fate(change.expected, change.writer), cell));
    match fate {
        Some((Ok(Some(version)), Cell { since, .. })) => Ok(Swap::Done { version, since: *since }),
        Some((Ok(None), _)) => Ok(Swap::Other(look)),
        Some((Err(_), _)) | None if !doubtful => Ok(Swap::Other(look)),
        Some((Err(_), _)) | None => {
            let message = "too much was changed since to tell";
            Err(unknown(&Error::new(Code::Unavailable, message)))
        }
    }
}

/// A row of the user's own table is changed, never made, deleted or forgotten. Answers the row that is there when none was expected.
async fn own_row(cells: Cells<'_>, change: &Change) -> Result<Option<Look>> {
    if change.key.table.is_none() {
        return Ok(None);
    }
    let message = if change.keep.is_some() {
        "`keep` is not for a row of your own table: fencelock deletes none"
    } else if change.value.is_none() {
        "fencelock deletes no row of your own table; delete it yourself, under the version that you have read"
    } else if change.expected.is_some() {
        return Ok(None);
    } else {
        let look = cells.read(&change.key).await?;
        if look.cell.is_some() {
            return Ok(Some(look));
        }
        "your table has no row of this name; make it yourself: fencelock changes rows of your own table, and makes none"
    };
    Err(Error::new(Code::Unsupported, message))
}

fn unknown(reason: &Error) -> Failure {
    let message = "the store did not answer; whether the value was changed is not known: read it before you go on";
    let error = Error::new(Code::Unavailable, message).with_retryable(false);
    Failure::unknown(error.with("reason", reason.message().to_owned()))
}

/// A number from 0 up to 1.
fn fraction(runtime: &dyn Runtime) -> f64 {
    let mut bytes = [0; 4];
    runtime.random(&mut bytes);
    f64::from(u32::from_le_bytes(bytes)) / (f64::from(u32::MAX) + 1.0)
}
