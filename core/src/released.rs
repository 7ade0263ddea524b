//! How a release ended, as a value.

use serde::Serialize;

use crate::error::{Code, Error, Result};

/// How a release ended. All three are values: none of them hides the error of what was done under the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[must_use = "a lock that was lost before its release did not protect what was done last"]
pub enum Released {
    /// The lock was held until now and is free, or somebody else's, from now on.
    Released,
    /// The lock had been lost before.
    AlreadyLost,
    /// The store did not answer. The release is repeated until it does or the lease has ended.
    Unconfirmed,
}

impl Released {
    /// An error with code `lost` if the lock had been lost before its release; for `?` where that must not pass unseen.
    pub fn check(self) -> Result<()> {
        match self {
            Self::Released | Self::Unconfirmed => Ok(()),
            Self::AlreadyLost => Err(Error::new(
                Code::Lost,
                "the lock was lost before its release; what was done last was not protected",
            )),
        }
    }
}
