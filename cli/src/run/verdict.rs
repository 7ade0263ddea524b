//! When a command has to end because its lock does.

use std::time::Duration;

/// After a sudden loss the command has this long to end.
const GRACE: Duration = Duration::from_secs(1);
/// No longer than this between two looks: timers stand still while the machine is suspended, leases do not.
const LOOK: Duration = Duration::from_millis(250);

/// An action on the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sentence {
    /// It is told to end.
    Terminate,
    /// It is killed.
    Kill,
}

/// How long before the end of the lease things happen.
#[derive(Clone, Copy)]
pub(crate) struct Margins {
    /// The command is told to end.
    terminate: Duration,
    /// The command is killed.
    pub kill: Duration,
}

impl Margins {
    /// Five seconds and 200 ms; of a short lease a quarter and a fifth.
    pub(crate) fn of(lease: Duration) -> Self {
        Self {
            terminate: (lease / 4).min(Duration::from_secs(5)),
            // The command has ended when the lease does. Of a short lease 200 ms would leave next to nothing.
            kill: (lease / 5).min(Duration::from_millis(200)),
        }
    }
}

/// Watches the end of the lease come near. Times are since any moment in the past.
pub(crate) struct Verdict {
    margins: Margins,
    /// The end of the lease as last known.
    deadline: Duration,
    lost: bool,
    /// When the command was told to end.
    told: Option<Duration>,
    killed: bool,
}

impl Verdict {
    pub(crate) fn new(margins: Margins, now: Duration, left: Duration) -> Self {
        Self { margins, deadline: now + left, lost: false, told: None, killed: false }
    }

    /// Takes in what is left of the lease, `None` once it is lost, and says what to do to the command now.
    pub(crate) fn look(&mut self, now: Duration, left: Option<Duration>) -> Option<Sentence> {
        match left {
            Some(left) => self.deadline = now + left,
            None => self.lost = true,
        }
        if self.told.is_none() && (self.lost || now >= self.terminate_at()) {
            self.told = Some(now);
            return Some(Sentence::Terminate);
        }
        if !self.killed && self.kill_at().is_some_and(|at| now >= at) {
            self.killed = true;
            return Some(Sentence::Kill);
        }
        None
    }

    /// How long until the next look.
    pub(crate) fn rest(&self, now: Duration) -> Duration {
        let next = match self.kill_at() {
            _ if self.killed => now + LOOK,
            Some(kill) => kill,
            None => self.terminate_at(),
        };
        next.saturating_sub(now).min(LOOK)
    }

    fn terminate_at(&self) -> Duration {
        self.deadline.saturating_sub(self.margins.terminate)
    }

    /// When the command is killed as things stand; known once it was told to end.
    fn kill_at(&self) -> Option<Duration> {
        let told = self.told?;
        let end = self.deadline.saturating_sub(self.margins.kill);
        // Somebody else may hold the lock already: the lease's own end is no promise any more.
        Some(if self.lost { end.min(told + GRACE) } else { end })
    }

    /// Until when the command may run if nothing more is heard: the guardian enforces it.
    pub(crate) fn last_moment(&self) -> Duration {
        // Later than the supervisor's own kill, so that the guardian strikes only if that is frozen.
        self.deadline.saturating_sub(self.margins.kill / 2)
    }

    /// Whether the command was told to end.
    pub(crate) fn told(&self) -> bool {
        self.told.is_some()
    }

    /// Whether the command was killed.
    pub(crate) fn killed(&self) -> bool {
        self.killed
    }

    /// Whether the lock was gone before its lease had nearly ended.
    pub(crate) fn sudden(&self) -> bool {
        self.lost && self.told.is_some_and(|told| told < self.terminate_at())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// A lease of 8 s that began at 100 s: TERM 2 s and KILL 200 ms before its end.
    fn eight_seconds() -> Verdict {
        Verdict::new(Margins::of(at(8000)), at(100_000), at(8000))
    }

    #[test]
    fn a_lease_that_is_not_renewed_ends_the_command_before_itself() {
        let mut verdict = eight_seconds();
        let look = |verdict: &mut Verdict, now| verdict.look(at(now), Some(at(108_000 - now)));
        assert_eq!(look(&mut verdict, 105_999), None);
        assert_eq!(look(&mut verdict, 106_000), Some(Sentence::Terminate));
        assert_eq!(look(&mut verdict, 106_000), None);
        assert_eq!(look(&mut verdict, 107_799), None);
        assert_eq!(look(&mut verdict, 107_800), Some(Sentence::Kill));
        assert_eq!(look(&mut verdict, 107_801), None);
        assert!(!verdict.sudden());
    }

    #[test]
    fn a_long_lease_ends_the_command_five_seconds_before_itself() {
        let mut verdict = Verdict::new(Margins::of(at(60_000)), at(0), at(60_000));
        let look = |verdict: &mut Verdict, now| verdict.look(at(now), Some(at(60_000 - now)));
        assert_eq!(look(&mut verdict, 54_999), None);
        assert_eq!(look(&mut verdict, 55_000), Some(Sentence::Terminate));
        assert_eq!(look(&mut verdict, 59_799), None);
        assert_eq!(look(&mut verdict, 59_800), Some(Sentence::Kill));
    }

    #[test]
    fn a_short_lease_has_shorter_margins() {
        let mut verdict = Verdict::new(Margins::of(at(500)), at(0), at(500));
        let look = |verdict: &mut Verdict, now| verdict.look(at(now), Some(at(500 - now)));
        assert_eq!(look(&mut verdict, 374), None);
        assert_eq!(look(&mut verdict, 375), Some(Sentence::Terminate));
        assert_eq!(look(&mut verdict, 399), None);
        assert_eq!(look(&mut verdict, 400), Some(Sentence::Kill));
        // When the guardian would.
        assert_eq!(verdict.last_moment(), at(450));
    }

    #[test]
    fn renewals_keep_it_running() {
        let mut verdict = eight_seconds();
        for now in (100_000..200_000).step_by(2500) {
            assert_eq!(verdict.look(at(now), Some(at(7000))), None);
        }
        assert!(!verdict.told());
    }

    #[test]
    fn a_sudden_loss_leaves_it_one_second() {
        let mut verdict = eight_seconds();
        assert_eq!(verdict.look(at(101_000), None), Some(Sentence::Terminate));
        assert_eq!(verdict.look(at(101_999), None), None);
        assert_eq!(verdict.look(at(102_000), None), Some(Sentence::Kill));
        assert!(verdict.sudden());
    }

    #[test]
    fn a_loss_seen_too_late_leaves_it_nothing() {
        let mut verdict = eight_seconds();
        assert_eq!(verdict.look(at(120_000), None), Some(Sentence::Terminate));
        assert_eq!(verdict.look(at(120_000), None), Some(Sentence::Kill));
        assert!(!verdict.sudden());
    }

    #[test]
    fn a_lost_lock_near_its_end_does_not_live_on_by_the_grace() {
        let mut verdict = eight_seconds();
        assert_eq!(verdict.look(at(106_000), Some(at(2000))), Some(Sentence::Terminate));
        assert_eq!(verdict.look(at(106_500), None), None);
        assert_eq!(verdict.look(at(107_000), None), Some(Sentence::Kill));
    }

    #[test]
    fn it_rests_until_something_is_due_but_never_long() {
        let mut verdict = eight_seconds();
        assert_eq!(verdict.rest(at(100_000)), LOOK);
        assert_eq!(verdict.rest(at(105_900)), at(100));
        verdict.look(at(106_000), Some(at(2000)));
        assert_eq!(verdict.rest(at(107_700)), at(100));
    }
}
