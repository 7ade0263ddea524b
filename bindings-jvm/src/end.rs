//! The end of the process.

use std::ffi::c_int;
use std::panic::catch_unwind;
use std::time::Duration;

use crate::hub::hub;

/// For so long at most what is held is given back; what is not confirmed by then is left to its lease.
const PATIENCE: Duration = Duration::from_millis(900);

unsafe extern "C" {
    safe fn atexit(last: extern "C" fn()) -> c_int;
}

/// Has the C library call us when the process exits. A JVM exits when all its shutdown hooks have ended and no thread of Java
/// can run any more: nobody works under a guard then.
pub(crate) fn await_end() {
    // A system that has no place left for it leaves all to the leases.
    // Not in a hook of ours: hooks run side by side, and servers finish requests under their locks in theirs.
    // Windows ends all other threads before it calls us: nothing could be given back.
    if cfg!(not(windows)) {
        atexit(ended);
    }
}

extern "C" fn ended() {
    // A panic must not change how the process ends.
    let _ = catch_unwind(|| hub().part(PATIENCE));
}
