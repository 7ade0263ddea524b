//! Processes that are frozen and go on.

use std::process::Child;

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

/// Freezes a process of ours (SIGSTOP).
pub fn freeze(process: &Child) {
    let pid = Pid::from_child(process);
    kill_process(pid, Signal::STOP).expect("the process is running");
    // The signal is not the stop: only now have all its threads come to a halt.
    let _ = waitpid(Some(pid), WaitOptions::UNTRACED);
}

/// Lets a frozen process go on (SIGCONT).
pub fn resume(process: &Child) {
    kill_process(Pid::from_child(process), Signal::CONT).expect("the process is running");
}
