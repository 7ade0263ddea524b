//! Nothing to use: the programs stand in `rust/`, in `inventory/`, `balance/` and `scheduled-job/`, which are told in several
//! languages, and in `counter/`. This library exists to run the Rust blocks of the README and of the pages in `docs/` as documentation tests. The
//! part `pages` of `cargo test-all` fails if a page with such a block is missing here.

/// The README.
#[doc = include_str!("../../README.md")]
pub mod readme {}

/// `docs/how-to/cron-jobs.md`.
#[doc = include_str!("../../docs/how-to/cron-jobs.md")]
pub mod cron_jobs {}

/// `docs/how-to/elections.md`.
#[doc = include_str!("../../docs/how-to/elections.md")]
pub mod elections {}

/// `docs/how-to/react-to-loss.md`.
#[doc = include_str!("../../docs/how-to/react-to-loss.md")]
pub mod react_to_loss {}

/// `docs/how-to/test-your-code.md`.
#[doc = include_str!("../../docs/how-to/test-your-code.md")]
pub mod test_your_code {}

/// `docs/how-to/time-out.md`.
#[doc = include_str!("../../docs/how-to/time-out.md")]
pub mod time_out {}

/// `docs/tutorial/fenced-write.md`.
#[doc = include_str!("../../docs/tutorial/fenced-write.md")]
pub mod fenced_write {}

/// `docs/tutorial/rust.md`.
#[doc = include_str!("../../docs/tutorial/rust.md")]
pub mod rust {}
