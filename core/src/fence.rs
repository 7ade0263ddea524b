//! Fencing tokens, and the receiver's check that refuses older ones.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::runtime::sync::Mutex;

/// A fencing token: a positive integer under 2^53, larger than that of every earlier grant of the same lock name. Readers that
/// enter a quorum at once may share one.
///
/// Hand it to the resource with every write, and let the resource refuse a token older than the newest it has seen.
///
/// ```
/// # tokio_test(async {
/// let client = fencelock::connect("memory:").await?;
/// let first = client.lock("orders:42").acquire().await?;
/// let older = first.token();
/// first.release().await.check()?;
/// let second = client.lock("orders:42").acquire().await?;
/// assert!(second.token() > older);
/// # Ok(()) });
/// # fn tokio_test(f: impl Future<Output = fencelock::Result<()>>) {
/// #     tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(f).unwrap();
/// # }
/// ```
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Token(u64);

impl Token {
    /// The largest token: every language's numbers hold it exactly.
    pub const MAX: Self = Self((1 << 53) - 1);

    /// A token from its number, for the resource that receives it.
    pub const fn new(value: u64) -> Self {
        Self(value)
    }

    /// The number to hand to the resource.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The resource's side of the fence, for a resource that lives in this process: it remembers the newest token of every
/// resource and refuses older ones. Equal tokens pass: one holder may write many times.
///
/// A resource with a store of its own keeps the token beside the data and puts the condition inside the write itself
/// (`UPDATE ... WHERE fence <= :token`), which is what makes the check and the write one step: there is
/// `gate_trigger` in `driver::postgres` and `driver::sqlite` for a table, and `driver::redis::RedisGate` for keys on a Redis server.
///
/// ```
/// use fencelock::{Gate, Token};
/// let gate = Gate::new();
/// let mut stock = 10;
/// gate.write("shelf", Token::new(7), || stock -= 1)?;
/// assert!(gate.write("shelf", Token::new(6), || stock -= 1).is_err());
/// assert_eq!(stock, 9);
/// # Ok::<(), fencelock::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct Gate {
    newest: Mutex<BTreeMap<String, Token>>,
}

impl Gate {
    /// A gate that has seen no token yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Runs the write while no other write of this gate runs, if `token` is not older than the newest seen for
    /// `resource`; otherwise answers `lost` and runs nothing.
    pub fn write<T>(&self, resource: &str, token: Token, write: impl FnOnce() -> T) -> Result<T> {
        let mut newest = self.newest.lock();
        let seen = newest.get(resource).copied().unwrap_or_default();
        if token < seen {
            return Err(Error::refused_by_gate()
                .with("resource", resource)
                .with("token", token.to_string())
                .with("newest", seen.to_string()));
        }
        newest.insert(resource.to_owned(), seen.max(token));
        Ok(write())
    }

    /// The newest token seen for `resource`.
    pub fn newest(&self, resource: &str) -> Option<Token> {
        self.newest.lock().get(resource).copied()
    }
}
