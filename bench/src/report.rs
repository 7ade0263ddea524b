//! The printed report: a table of figures with ratios, and below it every target, met or not.

use std::fmt::Write;

use serde::Serialize;

/// The figures of one workload.
#[derive(Debug, Serialize)]
pub(crate) struct Sheet {
    pub title: String,
    /// Names of the figures; the ratio is of the first.
    pub columns: Vec<&'static str>,
    /// The name of the row all others are compared with.
    pub subject: &'static str,
    pub rows: Vec<Row>,
    pub targets: Vec<Target>,
    pub notes: Vec<String>,
}

/// One contender's figures: medians over the rounds.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    pub name: String,
    pub figures: Vec<f64>,
}

/// A promise of the project, with the figure seen.
#[derive(Debug, Serialize)]
pub(crate) struct Target {
    what: String,
    seen: f64,
    bound: Bound,
    met: bool,
}

/// The bound that a figure has to meet.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Bound {
    AtMost(f64),
    AtLeast(f64),
}

/// The middle one; the lower of two in the middle.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len().saturating_sub(1) / 2).copied().unwrap_or(f64::NAN)
}

/// As many digits as a reader needs: three that count; a dash for what was not measured.
fn digits(value: f64) -> String {
    match value.abs() {
        size if size.is_nan() => "-".to_owned(),
        size if size.is_infinite() => "∞".to_owned(),
        size if size >= 10_000.0 => format!("{:.1}k", value / 1000.0),
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

impl Sheet {
    pub(crate) fn new(title: &str, subject: &'static str, columns: &[&'static str]) -> Self {
        Self {
            title: title.to_owned(),
            columns: columns.to_vec(),
            subject,
            rows: Vec::new(),
            targets: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// A figure of a row; not a number if there is no such row.
    pub(crate) fn figure(&self, name: &str, column: usize) -> f64 {
        let row = self.rows.iter().find(|row| row.name == name);
        row.and_then(|row| row.figures.get(column)).copied().unwrap_or(f64::NAN)
    }

    /// The best (highest) figure of those that are not fencelock.
    pub(crate) fn best_peer(&self, column: usize) -> f64 {
        let peers = self.rows.iter().filter(|row| !row.name.starts_with("fencelock"));
        peers.map(|row| row.figures[column]).fold(f64::NAN, f64::max)
    }

    /// The best (lowest) figure of those that are not fencelock.
    pub(crate) fn quickest_peer(&self, column: usize) -> f64 {
        let peers = self.rows.iter().filter(|row| !row.name.starts_with("fencelock"));
        peers.map(|row| row.figures[column]).fold(f64::NAN, f64::min)
    }

    /// States a target. What was not measured (its peer is missing) is not claimed.
    pub(crate) fn target(&mut self, what: impl Into<String>, seen: f64, bound: Bound) {
        if seen.is_nan() {
            return;
        }
        let met = match bound {
            Bound::AtMost(most) => seen <= most,
            Bound::AtLeast(least) => seen >= least,
        };
        self.targets.push(Target { what: what.into(), seen, bound, met });
    }

    /// As text for a terminal and for Markdown alike.
    pub(crate) fn text(&self) -> String {
        let mut head = vec![String::new()];
        head.extend(self.columns.iter().map(|column| (*column).to_owned()));
        head.push(format!("{} / it", self.subject));
        let mut lines = vec![head];
        let subject = self.figure(self.subject, 0);
        for row in &self.rows {
            let mut line = vec![row.name.clone()];
            line.extend(row.figures.iter().map(|figure| digits(*figure)));
            line.push(digits(subject / row.figures[0]));
            lines.push(line);
        }
        let width = |column: usize| {
            lines.iter().map(|line| line[column].chars().count()).max().unwrap_or_default()
        };
        let widths: Vec<usize> = (0..self.columns.len() + 2).map(width).collect();
        let mut text = format!("### {}\n\n", self.title);
        for (number, line) in lines.iter().enumerate() {
            for (column, (cell, width)) in line.iter().zip(&widths).enumerate() {
                let cell =
                    if column == 0 { format!("{cell:<width$}") } else { format!("{cell:>width$}") };
                let _ = write!(text, "| {cell} ");
            }
            text.push_str("|\n");
            if number == 0 {
                for (column, width) in widths.iter().enumerate() {
                    let rule = "-".repeat(width + 1);
                    let _ = write!(text, "|{rule}{}", if column == 0 { "-" } else { ":" });
                }
                text.push_str("|\n");
            }
        }
        text.push('\n');
        for target in &self.targets {
            let (word, bound) = match target.bound {
                Bound::AtMost(most) => ("at most", most),
                Bound::AtLeast(least) => ("at least", least),
            };
            let verdict = if target.met { "met" } else { "NOT met" };
            let (what, seen, bound) = (&target.what, digits(target.seen), digits(bound));
            let _ = writeln!(text, "- {what}: {seen}, {word} {bound}: {verdict}");
        }
        for note in &self.notes {
            let _ = writeln!(text, "- {note}");
        }
        text
    }
}
