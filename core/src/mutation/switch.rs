//! Which clause is broken, for each thread by itself.

use std::cell::Cell;

use super::table::Mutant;

thread_local! {
    static ACTIVE: Cell<Option<Mutant>> = const { Cell::new(None) };
}

/// Breaks one clause for everything this thread runs from now on; `None` heals it.
pub fn activate(mutant: Option<Mutant>) {
    ACTIVE.set(mutant);
}

/// Whether this thread runs with that breakage.
pub fn active(mutant: Mutant) -> bool {
    ACTIVE.get() == Some(mutant)
}
