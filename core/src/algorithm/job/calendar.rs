//! The instants of a cron expression in a time zone.

use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

use super::schedule::Around;
use crate::error::{Error, Result};

const EXAMPLE: &str = "`0 3 * * *` is every day at 03:00";

/// A cron expression that comes, and its time zone.
#[derive(Clone, Debug)]
pub(crate) struct Calendar {
    cron: Cron,
    zone: TimeZone,
}

impl Calendar {
    pub(super) fn new(expression: &str) -> Result<Self> {
        let parser =
            CronParser::builder().seconds(Seconds::Disallowed).year(Year::Disallowed).build();
        let cron = parser.parse(expression).map_err(|error| {
            let message = format!(
                "`{expression:.80}` is no cron expression; it has five fields, minute, hour, day of month, month and day of week: {EXAMPLE}"
            );
            Error::invalid("cron", message).with("reason", error.to_string())
        })?;
        // From any day on: what does not come in thousands of years never does.
        let any = jiff::civil::date(2000, 1, 1).at(0, 0, 0, 0);
        if cron.find_next_occurrence(&any, true).is_err() {
            let message =
                format!("`{expression:.80}` never comes, as there is no such day; {EXAMPLE}");
            return Err(Error::invalid("cron", message));
        }
        Ok(Self { cron, zone: TimeZone::UTC })
    }

    /// The same expression in this zone.
    pub(super) fn in_zone(&self, name: &str) -> Result<Self> {
        let zone = TimeZone::get(name).map_err(|_| unknown(name))?;
        Ok(Self { cron: self.cron.clone(), zone })
    }

    /// The last instant at or before `clock` and the first after it.
    pub(super) fn around(&self, clock: u64) -> Result<Around> {
        // Instants are whole seconds.
        let clock = i64::try_from(clock / 1_000_000).unwrap_or(i64::MAX);
        let found = Timestamp::from_second(clock).ok().and_then(|clock| {
            let clock = clock.to_zoned(self.zone.clone());
            let last = self.cron.find_previous_occurrence(&clock, true).ok()?;
            let next = self.cron.find_next_occurrence(&clock, false).ok()?;
            Some(Around { last: micros(&last)?, next: micros(&next)? })
        });
        found.ok_or_else(|| {
            let message = "the cron expression has no instants around the time that the store's clock shows; set that clock";
            Error::invalid("cron", message).with("clock", clock.to_string())
        })
    }
}

fn micros(at: &Zoned) -> Option<u64> {
    u64::try_from(at.timestamp().as_microsecond()).ok()
}

fn unknown(name: &str) -> Error {
    let meant = name.to_lowercase();
    let known = jiff::tz::db().available().map(|zone| zone.as_str().to_owned());
    let apart = |zone: &String| strsim::osa_distance(&meant, &zone.to_lowercase());
    let nearest = known.min_by_key(apart).filter(|zone| apart(zone) <= 3);
    let example = nearest.as_deref().unwrap_or("Europe/Berlin");
    let message = format!(
        "there is no time zone `{name:.40}`; give its name in the IANA database, such as `{example}`, or leave it out for UTC"
    );
    Error::invalid("timezone", message)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::schedule::Schedule;
    use super::*;

    const SECOND: u64 = 1_000_000;
    const MINUTE: u64 = 60 * SECOND;

    fn at(text: &str) -> u64 {
        u64::try_from(text.parse::<Timestamp>().unwrap().as_microsecond()).unwrap()
    }

    /// The instants that machines mean who ask every few minutes between two times.
    fn meant(expression: &str, from: &str, to: &str) -> Vec<String> {
        let schedule = Schedule::cron(expression).timezone("Europe/Berlin");
        let times = schedule.into_times().unwrap();
        let asked = (at(from)..at(to)).step_by(7 * 60 * 1_000_000 + 13);
        let instants: BTreeSet<u64> =
            asked.map(|clock| times.due(clock).unwrap().instant).collect();
        let shown = |instant: u64| {
            Timestamp::from_microsecond(i64::try_from(instant).unwrap()).unwrap().to_string()
        };
        instants.into_iter().map(shown).collect()
    }

    #[test]
    fn u30_a_time_that_summer_time_skips_comes_when_the_gap_ends() {
        // 02:00 to 03:00 is skipped on 2026-03-29.
        let instants = meant("30 2 * * *", "2026-03-28T12:00:00Z", "2026-03-30T12:00:00Z");
        let wanted = ["2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"];
        assert_eq!(instants, wanted);
        let early = meant("30 1 * * *", "2026-03-28T12:00:00Z", "2026-03-30T12:00:00Z");
        assert_eq!(early[1..], ["2026-03-29T00:30:00Z", "2026-03-29T23:30:00Z"]);
    }

    #[test]
    fn a_time_that_summer_time_repeats_comes_once() {
        // 02:00 to 03:00 comes twice on 2026-10-25.
        let instants = meant("30 2 * * *", "2026-10-24T12:00:00Z", "2026-10-26T12:00:00Z");
        let wanted = ["2026-10-24T00:30:00Z", "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"];
        assert_eq!(instants, wanted);
    }

    #[test]
    fn an_hour_that_is_repeated_has_its_steps_twice() {
        let instants = meant("0 * * * *", "2026-10-24T22:05:00Z", "2026-10-25T03:00:00Z");
        assert_eq!(instants.len(), 5, "{instants:?}");
    }

    #[test]
    fn a_timer_may_be_early_by_a_tenth_of_the_time_between_two_instants() {
        let due = |expression, clock| {
            let times = Schedule::cron(expression).into_times().unwrap();
            times.due(at(clock)).unwrap().instant
        };
        let three = at("2026-11-29T03:00:00Z");
        assert_eq!(due("0 3 * * *", "2026-11-29T02:59:30Z"), three);
        assert_eq!(due("0 3 * * *", "2026-11-29T02:59:29.999Z"), at("2026-11-28T03:00:00Z"));
        assert_eq!(due("* * * * *", "2026-11-29T02:59:54Z"), three);
        assert_eq!(due("* * * * *", "2026-11-29T02:59:53Z"), three - MINUTE);
        assert_eq!(due("* * * * *", "2026-11-29T03:00:00.5Z"), three);
    }

    #[test]
    fn the_next_start_is_due_when_a_timer_means_the_next_instant() {
        let times = Schedule::cron("0 9,17 * * MON-FRI").into_times().unwrap();
        // A Friday.
        for (last, next) in [("27T09", "27T17"), ("27T17", "30T09")] {
            let [last, next] = [last, next].map(|hour| at(&format!("2026-11-{hour}:00:00Z")));
            assert_eq!(times.after(last), Some(next - 30 * SECOND));
            assert_eq!(times.due(next - 30 * SECOND).unwrap().instant, next);
            assert_eq!(times.due(next - 31 * SECOND).unwrap().instant, last);
        }
    }

    #[test]
    fn what_is_no_calendar_is_refused_with_an_example() {
        let refused = |schedule: Schedule| {
            let error = schedule.into_times().unwrap_err();
            assert_eq!(error.code(), crate::error::Code::Invalid);
            (error.fields()["argument"].clone(), error.message().to_owned())
        };
        for (expression, says) in [
            ("0 25 * * *", "is no cron expression"),
            ("0 3 * * * *", "five fields"),
            ("", "`0 3 * * *`"),
            ("0 0 30 2 *", "never comes"),
            ("* * * * L", "never comes"),
        ] {
            let (argument, message) = refused(Schedule::cron(expression));
            assert!(argument == "cron" && message.contains(says), "{argument}: {message}");
        }
        let daily = || Schedule::cron("@daily");
        let (argument, message) = refused(daily().timezone("Europe/Belin"));
        assert!(argument == "timezone" && message.contains("`Europe/Berlin`"), "{message}");
        let (argument, _) = refused(daily().timezone("nowhere"));
        assert_eq!(argument, "timezone");
        let (argument, message) =
            refused(Schedule::from(std::time::Duration::from_secs(1)).timezone("UTC"));
        assert!(argument == "timezone" && message.contains("period"), "{message}");
    }
}
