//! Times as every language writes them: milliseconds, as a number.

use std::time::Duration;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub(crate) fn serialize<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_f64(time.as_secs_f64() * 1000.0)
}

pub(crate) fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<Duration, D::Error> {
    Ok(Millis::deserialize(from)?.0)
}

struct Millis(Duration);

impl Serialize for Millis {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        serialize(&self.0, to)
    }
}

impl<'a> Deserialize<'a> for Millis {
    fn deserialize<D: Deserializer<'a>>(from: D) -> Result<Self, D::Error> {
        let millis = f64::deserialize(from)?;
        Duration::try_from_secs_f64(millis / 1000.0).map(Self).map_err(D::Error::custom)
    }
}

/// The same for a time that may be missing.
pub(crate) mod optional {
    use super::{Deserialize, Deserializer, Duration, Millis, Serialize, Serializer};

    #[expect(clippy::ref_option, reason = "serde hands fields over like this")]
    pub(crate) fn serialize<S: Serializer>(
        time: &Option<Duration>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        time.map(Millis).serialize(to)
    }

    pub(crate) fn deserialize<'a, D: Deserializer<'a>>(
        from: D,
    ) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<Millis>::deserialize(from)?.map(|millis| millis.0))
    }
}

/// The same for a moment: since 1970 (UTC).
pub(crate) mod moment {
    use std::time::{SystemTime, UNIX_EPOCH};

    use super::{Deserializer, Duration, Error, Serializer};

    pub(crate) fn serialize<S: Serializer>(at: &SystemTime, to: S) -> Result<S::Ok, S::Error> {
        super::serialize(&since(*at), to)
    }

    pub(crate) fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<SystemTime, D::Error> {
        after(super::deserialize(from)?)
    }

    pub(super) fn since(at: SystemTime) -> Duration {
        at.duration_since(UNIX_EPOCH).unwrap_or_default()
    }

    pub(super) fn after<E: Error>(time: Duration) -> Result<SystemTime, E> {
        UNIX_EPOCH.checked_add(time).ok_or_else(|| E::custom("no clock shows this moment"))
    }
}

/// The same for a moment that may be missing.
pub(crate) mod optional_moment {
    use std::time::SystemTime;

    use super::{Deserializer, Serializer, moment, optional};

    #[expect(clippy::ref_option, reason = "serde hands fields over like this")]
    pub(crate) fn serialize<S: Serializer>(
        at: &Option<SystemTime>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        optional::serialize(&at.map(moment::since), to)
    }

    pub(crate) fn deserialize<'a, D: Deserializer<'a>>(
        from: D,
    ) -> Result<Option<SystemTime>, D::Error> {
        optional::deserialize(from)?.map(moment::after).transpose()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::port::{HolderView, LockState, Mode, WaiterView};

    #[test]
    fn a_state_tells_times_in_milliseconds_and_is_read_again() {
        let (mode, info) = (Mode::Exclusive, "{}".into());
        let (left, held_for) = (Some(Duration::from_micros(1500)), None);
        let (token, owner) = (None, None);
        let holder = HolderView { mode, token, left, held_for, info, owner };
        let waiting_for = Duration::from_secs(2);
        let waiter = WaiterView { mode, info: "{}".into(), waiting_for };
        let state =
            LockState { holders: vec![holder], waiters: vec![waiter], ..LockState::default() };
        let json = serde_json::to_value(&state).unwrap();
        assert_eq!(
            (&json["holders"][0]["left"], &json["waiters"][0]["waiting_for"]),
            (&1.5.into(), &2000.0.into())
        );
        assert!(json["holders"][0]["held_for"].is_null());
        assert_eq!(serde_json::from_value::<LockState>(json).unwrap(), state);
    }
}
