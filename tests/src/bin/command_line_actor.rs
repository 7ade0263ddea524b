//! The actor over `fencelock run`: JSON lines in, JSON lines out. See `tests/README.md`. The argument is the command line's
//! program.

use std::sync::Arc;

use fencelock_tests::command_line::serve;
use fencelock_tests::lines::{requests, write};

// One thread: the runs end with the thread that has started them.
#[tokio::main(flavor = "current_thread")]
async fn main() {
    let program = std::env::args_os().nth(1).expect("the command line's program is named");
    serve(program.into(), Arc::new(|message| write(&message)), requests()).await;
}
