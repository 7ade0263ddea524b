//! The same nouns for threads: no async, no runtime to set up.
//!
//! `cargo run -p fencelock-examples --bin blocking`

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

fn main() -> fencelock::Result<()> {
    let client = fencelock::blocking::connect("memory:")?;
    let counter = AtomicU64::new(0);
    thread::scope(|scope| {
        let count = || -> fencelock::Result<()> {
            for _ in 0..100 {
                let guard = client.lock("counter").acquire()?;
                // Not one step: without the lock, counts would be missing.
                let before = counter.load(Ordering::Relaxed);
                thread::yield_now();
                counter.store(before + 1, Ordering::Relaxed);
                guard.release().check()?;
            }
            Ok(())
        };
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(count)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("no thread panics"))
    })?;
    println!("counted to {}", counter.load(Ordering::Relaxed));
    client.close()
}
