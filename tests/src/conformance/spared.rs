//! Which cells cannot be played, and why.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::case::Case;
use super::column::Column;

/// All columns, then each reason, with the columns it spares and the cases it spares them: `spared.txt` as it has to be.
pub fn spared(cases: &[Case], columns: &[Column]) -> String {
    let mut text = String::from("The columns:\n");
    let mut reasons: BTreeMap<&str, BTreeMap<BTreeSet<&str>, Vec<String>>> = BTreeMap::new();
    for column in columns {
        let _ = writeln!(text, "  {}", column.name());
        let mut spared: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for case in cases {
            if let Some(why) = column.lacks(case) {
                spared.entry(why).or_default().insert(&case.name);
            }
        }
        for (why, names) in spared {
            reasons.entry(why).or_default().entry(names).or_default().push(column.name());
        }
    }
    for (why, groups) in reasons {
        for (names, columns) in groups {
            let _ = writeln!(text, "\n{why}: {}", columns.join(", "));
            if names.len() == cases.len() {
                text.push_str("  (every case)\n");
                continue;
            }
            for name in names {
                let _ = writeln!(text, "  {name}");
            }
        }
    }
    text
}
