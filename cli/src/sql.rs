//! `fencelock sql`: what a database needs, as SQL.

use std::process::ExitCode;

use clap::{Args, Subcommand, ValueEnum};

use crate::exit::{finish, print};

/// Write SQL to standard output.
#[derive(Args)]
pub(crate) struct Sql {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// The tables that fencelock needs, made where they are not there yet.
    Schema {
        /// The database.
        #[arg(long)]
        dialect: Dialect,
    },
}

#[derive(Clone, Copy, ValueEnum)]
enum Dialect {
    /// PostgreSQL 12 or newer.
    Postgres,
}

impl Sql {
    pub(crate) fn execute(self) -> ExitCode {
        let What::Schema { dialect: Dialect::Postgres } = self.what;
        finish(async { print(fencelock::driver::postgres::schema()).map(|()| 0) })
    }
}
