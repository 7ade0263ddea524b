//! Worlds whose store keeps entries that live with their clients' sessions.

use crate::plan::{Family, Plan};

/// Those in which such a store keeps its word: it has no other data than this, and no request arrives twice.
const FAMILIES: [Family; 11] = [
    Family::Calm,
    Family::Deaf,
    Family::Slow,
    Family::Lossy,
    Family::Hiccup,
    Family::Faults,
    Family::Storm,
    Family::Closing,
    Family::Queue,
    Family::Local,
    Family::Tiny,
];

impl Plan {
    /// The plan of a seed over sessions; of this family, or of each in turn.
    pub fn over_sessions(seed: u64, family: Option<Family>) -> Self {
        let family = family.unwrap_or(FAMILIES[(seed % FAMILIES.len() as u64) as usize]);
        let mut plan = Self { sessions: true, ..Self::of_family(seed, family) };
        // Such a store gives permits one by one.
        plan.tasks.iter_mut().flat_map(|task| &mut task.acts).for_each(|act| act.permits = 1);
        plan
    }
}
