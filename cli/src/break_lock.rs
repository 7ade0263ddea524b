//! `fencelock break`: ends the holds of one lock.

use std::process::ExitCode;

use clap::Args;
use fencelock::options::check_name;
use fencelock::{Client, Token};

use crate::exit::{Failure, finish, print};
use crate::inspect::json;
use crate::store::Store;
use crate::view::{BrokenView, Output};

/// End the holds of a lock whose holder hangs. The next waiter is granted, with a greater token; the holder notices with its next
/// renewal, after a third of its lease at the latest. If nobody holds the lock, the exit code is 79.
#[derive(Args)]
pub(crate) struct Break {
    /// The lock's name.
    name: String,
    /// Why, for the log.
    #[arg(long, default_value = "")]
    reason: String,
    /// End only the holds with this fencing token, one permit of a semaphore for instance.
    #[arg(long)]
    token: Option<u64>,
    /// Output format.
    #[arg(short, long, value_enum, default_value = "human")]
    output: Output,
    #[command(flatten)]
    store: Store,
}

impl Break {
    pub(crate) fn execute(self) -> ExitCode {
        finish(async move { self.end().await.map(|()| 0) })
    }

    async fn end(&self) -> Result<(), Failure> {
        check_name(&self.name)?;
        let end = async |client: &Client| {
            Ok(match self.token.map(Token::new) {
                None => client.break_lock(&self.name, &self.reason).await?,
                Some(token) => client.break_hold(&self.name, token, &self.reason).await?,
            })
        };
        let view = BrokenView::new(&self.name, &self.store.look(end).await?);
        let text = match self.output {
            Output::Human => view.describe(),
            Output::Json => json(&view),
        };
        print(&text)
    }
}
