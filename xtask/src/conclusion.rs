//! The table at the end of a run, and what it decides.

use std::fmt::Write;
use std::time::Duration;

use crate::part::{Report, Verdict};

pub(crate) struct Conclusion {
    pub reports: Vec<Report>,
    pub took: Duration,
    /// Whether the machine was quiet, so that times mean something.
    pub quiet: bool,
    /// How that is known.
    pub why: String,
}

impl Conclusion {
    /// Every part with its time beside its budget, the processor time of its commands, and the sums.
    pub(crate) fn table(&self) -> String {
        let mut table = format!(
            "\n{:<15}  {:<7}  {:>8}  {:>7}  {:>9}  what\n",
            "part", "result", "time", "budget", "processor"
        );
        for report in &self.reports {
            let Report { name, verdict, took, used, budget } = report;
            let (Verdict::Passed(words) | Verdict::Failed(words) | Verdict::Skipped(words)) =
                verdict;
            let late = if report.is_late() { "over twice its budget: " } else { "" };
            let budget = format!("{} s", budget.seconds);
            let _ = writeln!(
                table,
                "{name:<15}  {:<7}  {:>8}  {budget:>7}  {:>9}  {late}{words}",
                verdict.word(),
                seconds(*took),
                seconds(*used)
            );
        }
        let _ = writeln!(table, "{:<15}  {:<7}  {:>8}\n", "all", "", seconds(self.took));
        let late = self.late();
        let word = match (self.quiet, late) {
            (true, 0) => "quiet".to_owned(),
            (true, _) => {
                format!("quiet, and {late} over twice the budget: that fails a short strict run")
            }
            (false, _) => "not quiet, so budgets were not enforced".to_owned(),
        };
        let _ = writeln!(table, "the machine was {word}; {}", self.why);
        let [passed, failed, skipped] = self.counts();
        let _ = write!(table, "{passed} passed, {failed} failed, {skipped} skipped");
        table
    }

    /// Whether the run is good. Under `--strict` nothing may be skipped, and on a quiet machine no part may take more than twice
    /// its budget, which is for a short run.
    pub(crate) fn is_good(&self, strict: bool, full: bool) -> bool {
        let [_, failed, skipped] = self.counts();
        let late = self.quiet && !full && self.late() > 0;
        failed == 0 && !(strict && (skipped > 0 || late))
    }

    /// How many parts took more than twice their budgets.
    fn late(&self) -> usize {
        self.reports.iter().filter(|report| report.is_late()).count()
    }

    fn counts(&self) -> [usize; 3] {
        let mut counts = [0; 3];
        for report in &self.reports {
            counts[match report.verdict {
                Verdict::Passed(_) => 0,
                Verdict::Failed(_) => 1,
                Verdict::Skipped(_) => 2,
            }] += 1;
        }
        counts
    }
}

impl Report {
    fn is_late(&self) -> bool {
        self.took > Duration::from_secs(2 * u64::from(self.budget.seconds))
    }
}

impl Verdict {
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Passed(_) => "passed",
            Self::Failed(_) => "failed",
            Self::Skipped(_) => "skipped",
        }
    }
}

pub(crate) fn seconds(took: Duration) -> String {
    format!("{:.1} s", took.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Conclusion;
    use crate::part::{Budget, Report, Verdict};

    #[test]
    fn a_late_part_fails_a_strict_run_on_a_quiet_machine_only() {
        let of = |quiet, seconds| {
            let verdict = Verdict::Passed("7 tests".into());
            let budget = Budget { seconds: 10, load: 100 };
            let (took, used) = (Duration::from_secs(seconds), Duration::ZERO);
            let report = Report { name: "core", verdict, took, used, budget };
            Conclusion { reports: vec![report], took: Duration::ZERO, quiet, why: String::new() }
        };
        assert!(of(true, 20).is_good(true, false));
        assert!(!of(true, 21).is_good(true, false), "late");
        assert!(of(true, 21).table().contains("over twice its budget: 7 tests"));
        assert!(
            of(true, 21).table().contains("quiet, and 1 over twice the budget"),
            "why it fails"
        );
        assert!(of(true, 21).is_good(false, false), "not strict");
        assert!(of(true, 21).is_good(true, true), "in full");
        assert!(of(false, 21).is_good(true, false), "somebody else was busy");
    }
}
