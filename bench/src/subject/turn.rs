//! The last holder of the lock and the time it released it: in memory, or in a file that several processes share. Only read and
//! written under the lock.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};

/// See the module.
pub(crate) enum Turn {
    Memory([AtomicU64; 2]),
    File(File),
}

/// The last holder.
pub(crate) struct Last {
    pub task: u64,
    /// By the machine's monotonic clock, in nanoseconds.
    pub released: u64,
}

/// The machine's monotonic clock, the same in every process.
pub(crate) fn now() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

impl Turn {
    /// The file at `path`; in memory if that is empty.
    pub(crate) fn open(path: &str) -> Self {
        if path.is_empty() {
            return Self::Memory([AtomicU64::new(u64::MAX), AtomicU64::new(now())]);
        }
        let file = File::options().read(true).write(true).open(path);
        Self::File(file.unwrap_or_else(|error| panic!("the turn file cannot be opened: {error}")))
    }

    pub(crate) fn read(&self) -> Last {
        match self {
            Self::Memory([task, released]) => Last {
                task: task.load(Ordering::Relaxed),
                released: released.load(Ordering::Relaxed),
            },
            Self::File(file) => {
                let mut bytes = [0; 16];
                file.read_exact_at(&mut bytes, 0).expect("the turn file has 16 bytes");
                let word = |at: usize| {
                    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
                };
                Last { task: word(0), released: word(8) }
            }
        }
    }

    pub(crate) fn write(&self, me: u64) {
        match self {
            Self::Memory([task, released]) => {
                task.store(me, Ordering::Relaxed);
                released.store(now(), Ordering::Relaxed);
            }
            Self::File(file) => {
                let mut bytes = [0; 16];
                bytes[..8].copy_from_slice(&me.to_le_bytes());
                bytes[8..].copy_from_slice(&now().to_le_bytes());
                file.write_all_at(&bytes, 0).expect("the turn file can be written");
            }
        }
    }
}
