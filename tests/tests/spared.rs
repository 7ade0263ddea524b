//! What the grids do not play, to the cell. A case that gains a need, or a column that loses a store, leaves a grid in silence;
//! here it has to be said.

use std::path::Path;

use fencelock_tests::conformance::{all_columns, case, spared};

#[test]
fn the_spared_cells_are_those_that_were_agreed_upon() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (cases, columns) = (case::read(&tests.join("cases")), all_columns());
    for case in &cases {
        let played = columns.iter().any(|column| !column.is_door() && column.plays(case));
        assert!(played, "`{}` is played nowhere in Rust", case.name);
    }
    let now = spared(&cases, &columns);
    let agreed = std::fs::read_to_string(tests.join("spared.txt")).unwrap_or_default();
    if now == agreed {
        return;
    }
    let written = Path::new(env!("CARGO_TARGET_TMPDIR")).join("spared.txt");
    std::fs::write(&written, &now).unwrap();
    let differs = |one: &str, other: &str| -> Vec<String> {
        let lines = one.lines().filter(|line| !other.lines().any(|known| known == *line));
        lines.map(str::to_owned).collect()
    };
    panic!(
        "gone: {:#?}, new: {:#?}; tests/spared.txt is not what the grids leave out; if it should be, copy {} there",
        differs(&agreed, &now),
        differs(&now, &agreed),
        written.display()
    );
}
