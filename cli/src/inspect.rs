//! `fencelock inspect`: one lock.

use std::process::ExitCode;

use clap::Args;
use fencelock::Client;
use fencelock::options::check_name;

use crate::exit::{Failure, finish, print};
use crate::legible::legible_json;
use crate::store::Store;
use crate::view::{JSON, LockView, Output};

/// Show one lock: holder, token, time left, waiters in order. For a free lock the exit code is 0 too.
#[derive(Args)]
#[command(after_long_help = JSON)]
pub(crate) struct Inspect {
    /// The lock's name.
    name: String,
    /// Output format.
    #[arg(short, long, value_enum, default_value = "human")]
    output: Output,
    #[command(flatten)]
    store: Store,
}

impl Inspect {
    pub(crate) fn execute(self) -> ExitCode {
        finish(async move { self.show().await.map(|()| 0) })
    }

    async fn show(&self) -> Result<(), Failure> {
        check_name(&self.name)?;
        let inspect = async |client: &Client| Ok(client.lock(&self.name).inspect().await?);
        let state = self.store.look(inspect).await?;
        let view = LockView::new(self.name.clone(), state);
        let text = match self.output {
            Output::Human => view.describe(),
            Output::Json => json(&view),
        };
        print(&text)
    }
}

/// One line of JSON.
pub(crate) fn json(value: &impl serde::Serialize) -> String {
    legible_json(&serde_json::to_string(value).expect("views have text keys only")) + "\n"
}
