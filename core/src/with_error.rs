//! How a body that ran under a lock, or as the run of a job, failed.

use std::convert::Infallible;
use std::fmt;

use crate::error::Error;

/// Why [`Lock::with`](crate::Lock::with) or [`Job::with`](crate::Job::with) failed. The body's own error wins;
/// a loss of the lock by then is attached to it.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// use fencelock::{Code, WithError};
/// use std::io::{Error, ErrorKind};
/// use std::time::Duration;
/// let client = fencelock::connect("memory:with-error").await?;
/// let ttl = Duration::from_secs(1);
/// let orders = client.lock("orders:42").ttl(ttl).renew(false);
/// let ended = orders.with(async |_| {
///     // Work that awaits nothing, and so is not ended by the loss.
///     std::thread::sleep(ttl);
///     Err::<(), _>(Error::from(ErrorKind::StorageFull))
/// });
/// let Err(WithError::Body { error, lost }) = ended.await else { panic!("the body has failed") };
/// assert_eq!(error.kind(), ErrorKind::StorageFull);
/// assert_eq!(lost.expect("its lease had ended").code(), Code::Lost);
/// # Ok::<(), fencelock::Error>(()) }).unwrap();
/// ```
#[derive(Clone, Debug)]
pub enum WithError<E> {
    /// The body has not failed by itself: the lock was not acquired, so that it did not run; or it was lost before the
    /// body's end.
    Lock(Error),
    /// The body has failed.
    Body {
        /// With this.
        error: E,
        /// The loss, if the lock was lost by then.
        lost: Option<Error>,
    },
}

impl<E> WithError<E> {
    /// fencelock's own error: why the body did not run, or the loss.
    pub fn lock(&self) -> Option<&Error> {
        match self {
            Self::Lock(error) => Some(error),
            Self::Body { lost, .. } => lost.as_ref(),
        }
    }

    /// The body's own error.
    pub fn body(&self) -> Option<&E> {
        match self {
            Self::Lock(_) => None,
            Self::Body { error, .. } => Some(error),
        }
    }

    /// The result of a body, under a lock that is held or was lost.
    pub(crate) fn judge<T>(ended: Result<T, E>, held: Result<(), Error>) -> Result<T, Self> {
        match (ended, held) {
            (Ok(value), Ok(())) => Ok(value),
            (Ok(_), Err(lost)) => Err(Self::Lock(lost)),
            (Err(error), held) => Err(Self::Body { error, lost: held.err() }),
        }
    }
}

impl<E> From<Error> for WithError<E> {
    fn from(error: Error) -> Self {
        Self::Lock(error)
    }
}

impl WithError<Error> {
    /// As one error, where the body's are fencelock's too: the body's own, with the loss in its field `lost`.
    pub fn into_error(self) -> Error {
        match self {
            Self::Lock(error) | Self::Body { error, lost: None } => error,
            Self::Body { error, lost: Some(lost) } => error.with("lost", lost.message()),
        }
    }
}

impl WithError<Infallible> {
    /// The error of a body that does not fail: why it did not run, or the loss.
    pub fn into_error(self) -> Error {
        match self {
            Self::Lock(error) => error,
            Self::Body { error, .. } => match error {},
        }
    }
}

impl<E: fmt::Display> fmt::Display for WithError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lock(error) => error.fmt(f),
            Self::Body { error, lost: None } => error.fmt(f),
            Self::Body { error, lost: Some(lost) } => write!(f, "{error}; by then {lost}"),
        }
    }
}

impl<E: std::error::Error> std::error::Error for WithError<E> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Lock(error) => error.source(),
            Self::Body { error, .. } => error.source(),
        }
    }
}
