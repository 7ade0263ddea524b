//! Short forms of the steps that the table has most.

/// Clippy over one crate feature, alone.
macro_rules! clippy_feature {
    ($($feature:literal),*) => {
        Step::Cargo {
            args: &["clippy", QUICK, "-p=fencelock", "--lib", "--no-default-features", $(concat!("--features=", $feature),)* "--", "-D", "warnings"],
            env: &[],
            expect: &[],
        }
    };
}

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
