//! Short forms of the steps that the table has most.

/// A cargo command, and what its last line must contain.
macro_rules! cargo {
    ($($arg:expr),+ ; $($expect:literal),*) => {
        Step::Cargo { args: &[$($arg),+], env: &[], expect: &[$($expect),*] }
    };
    ($($arg:expr),+) => { cargo!($($arg),+ ;) };
}

/// A campaign of simulated worlds.
macro_rules! sim {
    ($($arg:literal),+) => {
        Step::Program { built_with: "sim", name: "sim", args: &[$($arg),+] }
    };
}
