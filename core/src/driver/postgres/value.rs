//! Values as PostgreSQL takes them. What proves a hold shows in no log, not even in that of the protocol's crate.

use std::error::Error as StdError;
use std::fmt;

use bytes::{BufMut, BytesMut};
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, accepts, to_sql_checked};

use crate::port::OwnerId;

type Outcome<T> = Result<T, Box<dyn StdError + Sync + Send>>;

/// PostgreSQL counts from the year 2000, in µs.
const EPOCH: i64 = 946_684_800_000_000;
/// The last microsecond it knows, in the year 294276.
const LAST: i64 = 9_223_371_331_199_999_999;

/// A `timestamptz`, in µs since 1970. One later than it can hold is its last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moment(pub(super) u64);

impl ToSql for Moment {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Outcome<IsNull> {
        let since = i64::try_from(self.0).unwrap_or(i64::MAX) - EPOCH;
        out.put_i64(since.min(LAST));
        Ok(IsNull::No)
    }
    accepts!(TIMESTAMPTZ);
    to_sql_checked!();
}

impl FromSql<'_> for Moment {
    fn from_sql(_: &Type, raw: &[u8]) -> Outcome<Self> {
        let since = i64::from_be_bytes(raw.try_into()?);
        Ok(Self(u64::try_from(since.saturating_add(EPOCH))?))
    }
    accepts!(TIMESTAMPTZ);
}

/// Text that only the server is told.
pub(super) struct Hidden(pub(super) String);

impl Hidden {
    pub(super) fn owner(owner: OwnerId) -> Self {
        Self(owner.to_string())
    }
}

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hidden)")
    }
}

impl ToSql for Hidden {
    fn to_sql(&self, of: &Type, out: &mut BytesMut) -> Outcome<IsNull> {
        self.0.as_str().to_sql(of, out)
    }
    accepts!(TEXT);
    to_sql_checked!();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_exact_and_owner_ids_are_not_shown() {
        for moment in [Moment(0), Moment(1_700_000_000_123_457), Moment(u64::MAX)] {
            let mut out = BytesMut::new();
            moment.to_sql(&Type::TIMESTAMPTZ, &mut out).unwrap();
            let read = Moment::from_sql(&Type::TIMESTAMPTZ, &out).unwrap();
            assert!(read == moment || moment.0 == u64::MAX && read.0 > 1 << 62, "{moment:?}");
        }
        let owner = OwnerId::parse("00112233445566778899aabbccddeeff").unwrap();
        assert!(!format!("{:?}", Hidden::owner(owner)).contains("0011"));
    }
}
