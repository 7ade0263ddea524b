//! A system that lets no process adopt orphans: what the command started is found by its process group alone.

use std::collections::HashSet;
use std::convert::Infallible;

use rustix::io;
use rustix::process::{Pid, Signal};

use super::group::Group;

/// Whether this process stays a parent of what it started.
pub(super) const ADOPTS: bool = false;

pub(super) fn adopt() -> io::Result<()> {
    Ok(())
}

/// Sends a signal to the group. A stopped process hears nothing before it is continued.
pub(super) fn tell(signal: Signal, group: &Group, _spared: Pid) {
    group.signal(signal);
    group.signal(Signal::CONT);
}

pub(super) fn is_alone(_kept: &[Pid], _guardian: Pid) -> bool {
    true
}

pub(super) fn end(_kept: &[Pid], _spared: Option<Pid>) -> HashSet<Pid> {
    HashSet::new()
}

pub(super) fn reap(_kept: &[Pid]) {}

pub(super) struct Remembered(Infallible);

impl Remembered {
    pub(super) fn of_parent(_pid: Pid) -> Option<Self> {
        None
    }

    pub(super) fn look(&mut self) {
        match self.0 {}
    }

    pub(super) fn end(&mut self) {
        match self.0 {}
    }
}
