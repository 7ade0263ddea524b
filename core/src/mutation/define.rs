//! How the table of breakages becomes an enum.

macro_rules! mutants {
    (
        in clients: $($(#[doc = $doc:literal])+ $name:ident,)+
        in records: $($(#[doc = $kept:literal])+ $record:ident,)+
        in quorums and cells: $($(#[doc = $other:literal])+ $further:ident,)+
        on servers: $($(#[doc = $place:literal])+ $there:ident,)+
        in queues: $($(#[doc = $queued:literal])+ $queue:ident,)+
    ) => {
        /// A clause that can be broken.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Mutant {
            $($(#[doc = $doc])+ $name,)+
            $($(#[doc = $kept])+ $record,)+
            $($(#[doc = $other])+ $further,)+
            $($(#[doc = $queued])+ $queue,)+
            $($(#[doc = $place])+ $there,)+
        }

        impl Mutant {
            /// All of the protocol, but for those in entry queues.
            pub const ALL: &'static [Self] =
                &[$(Self::$name,)+ $(Self::$record,)+ $(Self::$further,)+];
            /// Those in what a store keeps of a lock: every store has to say the same.
            pub const RECORD: &'static [Self] = &[$(Self::$record,)+];
            /// Those in entry queues: `core/tests/client/queue.rs` has a world for each.
            pub const QUEUES: &'static [Self] = &[$(Self::$queue,)+];
            /// Those in drivers, which only real servers show.
            pub const SERVERS: &'static [Self] = &[$(Self::$there,)+];

            /// What it breaks, in words.
            pub fn describe(self) -> &'static str {
                match self {
                    $(Self::$name => concat!($($doc),+).trim_ascii(),)+
                    $(Self::$record => concat!($($kept),+).trim_ascii(),)+
                    $(Self::$further => concat!($($other),+).trim_ascii(),)+
                    $(Self::$queue => concat!($($queued),+).trim_ascii(),)+
                    $(Self::$there => concat!($($place),+).trim_ascii(),)+
                }
            }
        }
    };
}
