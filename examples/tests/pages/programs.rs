//! Every program here runs to its end and says what it should.

use std::process::Command;

use fencelock_tests::ended;

fn run(program: &str, args: &[&str]) -> String {
    let output = ended::output(Command::new(program).args(args));
    let words = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{words}{}", String::from_utf8_lossy(&output.stderr));
    words
}

#[test]
fn hello() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = format!("sqlite:{}", folder.path().join("locks.db").display());
    let token = |words: String| -> u64 {
        let number = words.trim().rsplit(' ').next().and_then(|number| number.parse().ok());
        number.expect("hello ends with its token")
    };
    let first = token(run(env!("CARGO_BIN_EXE_hello"), &[&file]));
    let second = token(run(env!("CARGO_BIN_EXE_hello"), &[&file]));
    assert!(second > first, "{second} after {first}");
}

#[test]
fn blocking() {
    let words = run(env!("CARGO_BIN_EXE_blocking"), &[]);
    assert!(words.ends_with("counted to 400\n"), "{words}");
}

#[test]
fn fenced_write() {
    let words = run(env!("CARGO_BIN_EXE_fenced_write"), &[]);
    assert!(words.contains("sold false"), "{words}");
}

#[test]
fn version() {
    let words = run(env!("CARGO_BIN_EXE_version"), &[]);
    assert!(words.ends_with("sold 10 of 10, 30 came too late\n"), "{words}");
}

#[test]
fn job() {
    let words = run(env!("CARGO_BIN_EXE_job"), &[]);
    assert_eq!(words.matches(" runs, with token").count(), 1, "{words}");
    assert_eq!(words.matches("has nothing to do, done: ").count(), 2, "{words}");
    assert!(words.ends_with("the last run has Succeeded\n"), "{words}");
}

#[test]
fn election() {
    let words = run(env!("CARGO_BIN_EXE_election"), &[]);
    let order = ["node-1 leads", "node-1 has resigned", "node-2 leads"];
    let places = order.map(|word| words.find(word).unwrap_or_else(|| panic!("{word}: {words}")));
    assert!(places.is_sorted(), "{words}");
}
