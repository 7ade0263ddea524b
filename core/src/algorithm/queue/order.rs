//! For whom an entry waits, as a pure function over the entries before it.

use crate::port::{Mode, Standing};

/// How an entry wants to hold its lock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Want {
    pub(super) mode: Mode,
    /// Of how many permits it wants one.
    pub(super) limit: u32,
}

/// The entries to watch; none: the entry holds the lock. `before` are the entries with a smaller rank, in order.
///
/// A mutex and a writer wait for all entries before them, a reader for the writers before it. A permit waits until fewer entries than
/// its limit are before it. While one of the answered entries stays, the entry cannot hold; so nobody watches a whole queue.
pub(super) fn to_watch(want: Want, before: &[Standing]) -> Vec<Standing> {
    let kind = want.mode.kind();
    // An entry of another kind is leaving, unless it came first.
    let other = |standing: &&Standing| standing.mode.kind() != kind;
    let writer = |standing: &&Standing| standing.mode == Mode::Write;
    let nearest = match want.mode {
        Mode::Exclusive | Mode::Write => before.last(),
        Mode::Read => before.iter().rfind(|standing| writer(standing) || other(standing)),
        Mode::Permit => match before.iter().rfind(other) {
            None => return beyond(want.limit, before).to_vec(),
            other => other,
        },
    };
    nearest.cloned().into_iter().collect()
}

/// As long as all of these stay, there are as many as the limit. The nearest go last.
fn beyond(limit: u32, before: &[Standing]) -> &[Standing] {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX).max(1);
    before.len().checked_sub(limit).map_or(&[], |first| &before[first..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::port::Rank;

    fn standing(place: u64, mode: Mode) -> Standing {
        Standing { rank: Rank::new(place, ""), mode }
    }

    fn queue(modes: &[Mode]) -> Vec<Standing> {
        (1..).zip(modes).map(|(place, mode)| standing(place, *mode)).collect()
    }

    fn watched(mode: Mode, limit: u32, before: &[Mode]) -> Vec<u64> {
        let want = Want { mode, limit };
        to_watch(want, &queue(before)).iter().map(|standing| standing.rank.place()).collect()
    }

    const X: Mode = Mode::Exclusive;
    const R: Mode = Mode::Read;
    const W: Mode = Mode::Write;
    const P: Mode = Mode::Permit;

    #[test]
    fn a_permit_waits_for_those_beyond_its_limit() {
        assert_eq!(watched(P, 2, &[P]), [] as [u64; 0]);
        assert_eq!(watched(P, 2, &[P, P]), [1, 2]);
        assert_eq!(watched(P, 2, &[P, P, P, P]), [3, 4]);
        assert_eq!(watched(P, 9, &[P, P, P, P]), [] as [u64; 0]);
        assert_eq!(watched(P, u32::MAX, &[P]), [] as [u64; 0]);
    }

    /// Every entry that holds by this rule, in any queue, may hold beside all others that do.
    #[test]
    fn no_two_hold_that_exclude_each_other() {
        let modes = [X, R, W, P];
        for number in 0..modes.len().pow(6) {
            let queue: Vec<Mode> =
                (0..6).map(|at| modes[number / modes.len().pow(at) % modes.len()]).collect();
            let holding = |at: &usize| watched(queue[*at], 2, &queue[..*at]).is_empty();
            let holders: Vec<Mode> = (0..queue.len()).filter(holding).map(|at| queue[at]).collect();
            let count = |mode| holders.iter().filter(|holder| **holder == mode).count();
            let alone = count(X) + count(W);
            assert!(!holders.is_empty());
            assert!(alone == 0 || holders.len() == 1, "{queue:?}: {holders:?}");
            assert!(count(P) <= 2, "{queue:?}: {holders:?}");
            assert!(holders.windows(2).all(|two| two[0].kind() == two[1].kind()));
        }
    }
}
