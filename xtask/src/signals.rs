//! Signals: children begin with the defaults of a terminal, and an interruption ends the part that runs.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

/// Returns a flag that is set when the user wants an end; a second signal ends this process at once.
///
/// A child inherits what its parent ignores, and `nohup` or a shell's background job ignores SIGINT and SIGQUIT. A signal
/// with a handler starts anew in a child, so the tests see the same defaults everywhere.
pub(crate) fn catch() -> Arc<AtomicBool> {
    let (interrupted, ignored) = (Arc::new(AtomicBool::new(false)), ignored());
    for signal in [SIGINT, SIGQUIT, SIGHUP, SIGTERM] {
        let set = if ignored >> (signal - 1) & 1 == 1 {
            signal_hook::flag::register(signal, Arc::default())
        } else {
            signal_hook::flag::register_conditional_shutdown(signal, 130, interrupted.clone())
                .and_then(|_| signal_hook::flag::register(signal, interrupted.clone()))
        };
        if let Err(error) = set {
            eprintln!("signal {signal} keeps its handler: {error}");
        }
    }
    interrupted
}

/// The signals this process was started to ignore, a bit each; none where there is no `/proc`.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
