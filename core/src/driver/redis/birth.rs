//! Since when a server has kept its data: the mark `fencelock:born`, which goes with the data or names an older run.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use redis::Cmd;

use super::link::Live;
use super::script::{Call, Script, Texts};
use crate::port::{Action, Kind, Step};
use crate::runtime::sync::Mutex;

/// Where the mark lies.
pub(super) const MARK: &str = "fencelock:born";

/// Whether the mark was seen to over the present connection. A server that restarts breaks it.
#[derive(Default)]
pub(super) struct Birth {
    over: Mutex<Weak<Live>>,
    /// The mark was seen to, and gone later: the data was flushed.
    flushed: AtomicBool,
}

impl Birth {
    /// What has to go out before these steps, if anything.
    pub(super) fn due(&self, batch: &[Step], live: &Arc<Live>) -> Option<Cmd> {
        if !batch.iter().any(|step| matches!(step.action, Action::Vote(_))) {
            return None;
        }
        if std::ptr::eq(self.over.lock().as_ptr(), Arc::as_ptr(live)) {
            return None;
        }
        let text = Texts::shared().of(Script(Call::Birth, Kind::Mutex));
        let mut command = redis::cmd("EVAL");
        command.arg(text).arg(1).arg(MARK).arg(u8::from(self.flushed.load(Ordering::Relaxed)));
        Some(command)
    }

    /// It was seen to.
    pub(super) fn done(&self, live: &Arc<Live>) {
        self.flushed.store(false, Ordering::Relaxed);
        *self.over.lock() = Arc::downgrade(live);
    }

    /// A server did not find its mark.
    pub(super) fn gone(&self) {
        self.flushed.store(true, Ordering::Relaxed);
        *self.over.lock() = Weak::new();
    }
}
