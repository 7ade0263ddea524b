//! The core as programs use it, over the store in memory: in virtual time, and where threads matter in real time.
#![allow(missing_docs)]

/// A test for each story: it ends well, in many orders of what happens at one instant.
macro_rules! plays {
    ($($name:ident,)+) => {
        mod story {
            $(
                #[test]
                fn $name() {
                    crate::world::play(super::$name);
                }
            )+
        }
    };
}

mod blocking;
mod facade;
mod handover;
mod hold;
mod jobs;
mod late;
mod leases;
mod queue;
mod quorum;
mod roundtrips;
mod sessions;
mod with;
mod world;
