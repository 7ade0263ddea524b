//! Times as every language writes them: milliseconds, as a number; of a moment those since 1970 (UTC).

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A length of time, or a moment.
pub(crate) trait Time: Copy {
    fn since(self) -> Duration;
    /// `None` if no clock shows it.
    fn after(time: Duration) -> Option<Self>;
}

impl Time for Duration {
    fn since(self) -> Duration {
        self
    }

    fn after(time: Duration) -> Option<Self> {
        Some(time)
    }
}

impl Time for SystemTime {
    fn since(self) -> Duration {
        self.duration_since(UNIX_EPOCH).unwrap_or_default()
    }

    fn after(time: Duration) -> Option<Self> {
        UNIX_EPOCH.checked_add(time)
    }
}

pub(crate) fn serialize<T: Time, S: Serializer>(time: &T, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_f64(time.since().as_secs_f64() * 1000.0)
}

pub(crate) fn deserialize<'a, T: Time, D: Deserializer<'a>>(from: D) -> Result<T, D::Error> {
    Ok(Millis::deserialize(from)?.0)
}

struct Millis<T>(T);

impl<T: Time> Serialize for Millis<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        serialize(&self.0, to)
    }
}

impl<'a, T: Time> Deserialize<'a> for Millis<T> {
    fn deserialize<D: Deserializer<'a>>(from: D) -> Result<Self, D::Error> {
        let millis = f64::deserialize(from)?;
        let time = Duration::try_from_secs_f64(millis / 1000.0).map_err(D::Error::custom)?;
        let time = T::after(time).ok_or_else(|| D::Error::custom("no clock shows this moment"))?;
        Ok(Self(time))
    }
}

/// The same for a time that may be missing.
pub(crate) mod optional {
    use super::{Deserialize, Deserializer, Millis, Serialize, Serializer, Time};

    #[expect(clippy::ref_option, reason = "serde hands fields over like this")]
    pub(crate) fn serialize<T: Time, S: Serializer>(
        time: &Option<T>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        time.map(Millis).serialize(to)
    }

    pub(crate) fn deserialize<'a, T: Time, D: Deserializer<'a>>(
        from: D,
    ) -> Result<Option<T>, D::Error> {
        Ok(Option::<Millis<T>>::deserialize(from)?.map(|millis| millis.0))
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
