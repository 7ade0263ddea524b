//! Kinds and modes as the scripts write them.

use crate::port::{Kind, Mode};

const MODES: [Mode; 4] = [Mode::Exclusive, Mode::Read, Mode::Write, Mode::Permit];
const KINDS: [Kind; 3] = [Kind::Mutex, Kind::ReadWrite, Kind::Semaphore];

fn place<T: PartialEq>(all: &[T], one: &T) -> i64 {
    let place = all.iter().position(|known| known == one).expect("all are listed");
    i64::try_from(place + 1).unwrap_or(0)
}

fn at<T: Copy>(all: &[T], code: i64) -> Option<T> {
    all.get(usize::try_from(code).ok()?.checked_sub(1)?).copied()
}

pub(super) fn of_mode(mode: Mode) -> i64 {
    place(&MODES, &mode)
}

pub(super) fn mode(code: i64) -> Option<Mode> {
    at(&MODES, code)
}

pub(super) fn of_kind(kind: Kind) -> i64 {
    place(&KINDS, &kind)
}

pub(super) fn kind(code: i64) -> Option<Kind> {
    at(&KINDS, code)
}
