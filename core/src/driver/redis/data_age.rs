//! Since when a server has kept its data: the mark `fencelock:born`, which goes with the data or names another run.

use std::sync::{Arc, Weak};

use redis::Cmd;

use super::keys::BIRTH;
use super::link::Live;
use crate::port::{Action, Step, Take};
use crate::runtime::sync::Mutex;

/// The call that maintains the mark. A mark without the server's run would come back with an old snapshot, and the locks taken since would
/// not.
pub(super) fn command(text: &str) -> Cmd {
    let mut command = redis::cmd("EVAL");
    command.arg(text).arg(1).arg(BIRTH);
    command
}

/// Over which connection the mark was seen to, if it ever was. A server that restarts breaks it.
#[derive(Default)]
pub(super) struct DataAge(Mutex<Option<Weak<Live>>>);

impl DataAge {
    /// Whether it has to be seen to before these steps go out.
    pub(super) fn is_due(&self, batch: &[Step], live: &Arc<Live>) -> bool {
        let seen = || self.0.lock().as_ref().map(Weak::as_ptr);
        let votes = |step: &Step| matches!(step.action, Action::Take(Take { vote: Some(_), .. }));
        batch.iter().any(votes) && seen() != Some(Arc::as_ptr(live))
    }

    /// Whether the server is a node of a quorum.
    pub(super) fn votes(&self) -> bool {
        self.0.lock().is_some()
    }

    /// It was seen to.
    pub(super) fn done(&self, live: &Arc<Live>) {
        *self.0.lock() = Some(Arc::downgrade(live));
    }

    /// A server did not find its mark.
    pub(super) fn gone(&self) {
        *self.0.lock() = Some(Weak::new());
    }
}
