//! `fencelock sql`: what a database needs, as SQL.

use std::process::ExitCode;

use clap::{Args, Subcommand, ValueEnum};
use fencelock::options::Options;

use crate::exit::{finish, print};

/// Write SQL to standard output.
#[derive(Args)]
pub(crate) struct Sql {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// A trigger that makes a table refuse writes with an older fencing token.
    Gate {
        /// The table, or schema.table, as the database shows it.
        #[arg(long)]
        table: String,
        /// The column that each write sets to its token.
        #[arg(long)]
        column: String,
        /// The database.
        #[arg(long, default_value = "postgres")]
        dialect: GateDialect,
    },
    /// The tables that fencelock needs, made where they are not there yet.
    Schema {
        /// The database.
        #[arg(long)]
        dialect: Dialect,
        /// The name of the table of locks, as the option `table` of the URL says it.
        #[arg(long, default_value_t = Options::default().table)]
        table: String,
    },
}

#[derive(Clone, Copy, ValueEnum)]
enum Dialect {
    /// MySQL 8.0, MariaDB 10.4, or newer.
    Mysql,
    /// PostgreSQL 12 or newer.
    Postgres,
}

#[derive(Clone, Copy, ValueEnum)]
enum GateDialect {
    /// MySQL 8.0, MariaDB 10.4, or newer; for their command-line clients.
    Mysql,
    /// PostgreSQL 12 or newer.
    Postgres,
    /// SQLite 3.
    Sqlite,
}

impl Sql {
    pub(crate) fn execute(self) -> ExitCode {
        use fencelock::driver::{mysql, postgres, sqlite};
        finish(async move {
            let text = match &self.what {
                What::Schema { dialect: Dialect::Mysql, table } => mysql::schema(table)?,
                What::Schema { dialect: Dialect::Postgres, table } => postgres::schema(table)?,
                What::Gate { table, column, dialect: GateDialect::Mysql } => {
                    delimited(&mysql::gate_trigger(table, column)?)
                }
                What::Gate { table, column, dialect: GateDialect::Postgres } => {
                    postgres::gate_trigger(table, column)?
                }
                What::Gate { table, column, dialect: GateDialect::Sqlite } => {
                    sqlite::gate_trigger(table, column)?
                }
            };
            print(&text).map(|()| 0)
        })
    }
}

/// Statements in which semicolons stand, as the command-line clients of MySQL read them.
fn delimited(statements: &[String]) -> String {
    let mut mark = "$$".to_owned();
    while statements.iter().any(|statement| statement.contains(&mark)) {
        mark.push('$');
    }
    let end = format!("{mark}\n");
    let statements = statements.join(&end);
    format!("DELIMITER {mark}\n{statements}{end}DELIMITER ;\n")
}
