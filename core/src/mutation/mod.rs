//! Deliberate breakages of single clauses, chosen at run time. The suites must catch every one of them; a build without
//! the `mutants` feature contains none.

/// Whether the named breakage is active here and now.
#[cfg(feature = "mutants")]
macro_rules! mutant {
    ($name:ident) => {
        $crate::mutation::active($crate::mutation::Mutant::$name)
    };
}

/// Whether the named breakage is active here and now: never, in this build.
#[cfg(not(feature = "mutants"))]
macro_rules! mutant {
    ($name:ident) => {
        false
    };
}

#[cfg(feature = "mutants")]
#[macro_use]
mod define;
#[cfg(feature = "mutants")]
#[macro_use]
mod queues;
#[cfg(feature = "mutants")]
#[macro_use]
mod sessions;
#[cfg(feature = "mutants")]
mod rare;
#[cfg(feature = "mutants")]
mod switch;
#[cfg(feature = "mutants")]
mod table;

#[cfg(feature = "mutants")]
pub use switch::{activate, active};
#[cfg(feature = "mutants")]
pub use table::Mutant;
