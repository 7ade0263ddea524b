//! The tables in the documentation say what the code says.

use fencelock::Code;
use fencelock::options::TABLE;

const OPTIONS: &str = include_str!("../../../docs/reference/options.md");
const ERRORS: &str = include_str!("../../../docs/reference/errors.md");
const GUARANTEES: &str = include_str!("../../../docs/reference/guarantees.md");
const SESSION_GUARANTEES: &str = include_str!("../../../docs/reference/session-guarantees.md");

/// The table of a page that begins with this head.
fn table<'a>(page: &'a str, head: &str) -> &'a str {
    let (_, rest) = page.split_once(&format!("\n{head}\n")).expect("the head is there");
    rest.split("\n\n").next().unwrap_or_default()
}

/// The cells of the tables' rows, without heads.
fn rows(text: &str) -> Vec<Vec<String>> {
    let lines = text.lines().filter(|line| line.starts_with("| "));
    let cells = |line: &str| -> Vec<String> {
        line.trim_matches('|').split('|').map(|cell| cell.trim().replace('`', "")).collect()
    };
    let is_head = |row: &Vec<String>| ["option", "code", "when"].contains(&&*row[0]);
    lines.map(cells).filter(|row| !is_head(row)).collect()
}

#[test]
fn options_are_those_of_the_table() {
    let shown = rows(table(OPTIONS, "| option | default | meaning |"));
    let known: Vec<Vec<String>> = TABLE
        .iter()
        .map(|row| [row.name, row.default, row.doc].map(|cell| cell.replace('`', "")).to_vec())
        .collect();
    assert_eq!(shown, known);
}

#[test]
fn error_codes_are_those_of_the_code() {
    let shown: Vec<String> = rows(table(ERRORS, "| code | meaning | Python | Java, Kotlin |"))
        .into_iter()
        .map(|mut row| row.swap_remove(0))
        .collect();
    let known = [
        Code::Timeout,
        Code::Lost,
        Code::NotHeld,
        Code::Invalid,
        Code::Unsupported,
        Code::Unavailable,
        Code::Auth,
        Code::Conflict,
        Code::Cancelled,
        Code::Closed,
        Code::Internal,
    ];
    assert_eq!(shown, known.map(|code| code.to_string()));
}

#[test]
fn guarantees_are_those_of_the_drivers() {
    let sources = [
        include_str!("../../../core/src/driver/redis/guarantees.rs"),
        include_str!("../../../core/src/algorithm/quorum/mod.rs"),
        include_str!("../../../core/src/driver/sqlite/guarantees.rs"),
        include_str!("../../../core/src/driver/etcd/guarantees.rs"),
        include_str!("../../../core/src/driver/zookeeper/guarantees.rs"),
        include_str!("../../../core/src/driver/sql/guarantees.rs"),
        include_str!("../../../core/src/driver/postgres/guarantees.rs"),
        include_str!("../../../core/src/driver/mysql/guarantees.rs"),
        include_str!("../../../core/src/driver/memory.rs"),
        include_str!("../../../core/src/driver/sql/session/guarantees.rs"),
        include_str!("../../../core/src/driver/members.rs"),
        include_str!("../../../core/src/port/capabilities.rs"),
    ];
    let told = |row: &'static str| row.split('"').skip(1).step_by(2).take(2);
    let rows_of = |source: &'static str| {
        let parts = source.split("Self = Self::new(");
        parts.flat_map(|part| part.split("Guarantee::new(")).skip(1)
    };
    let mut known: Vec<Vec<String>> = sources
        .into_iter()
        .flat_map(rows_of)
        .map(|row| told(row).map(|cell| cell.replace('`', "")).collect())
        .collect();
    let mut shown: Vec<_> = rows(GUARANTEES).into_iter().chain(rows(SESSION_GUARANTEES)).collect();
    for rows in [&mut known, &mut shown] {
        rows.sort();
        // Several stores share a row.
        rows.dedup();
    }
    assert_eq!(shown, known);
}
