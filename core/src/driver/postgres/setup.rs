//! The first statements of each connection.

use std::time::Duration;

use super::schema::MOST_BYTES;
use crate::driver::identifier::{check, quoted};
use crate::error::Result;
use crate::options::{Durability, Options};

/// Whether the server takes no writes, and its version.
pub(super) const SERVER: &str = "SELECT CASE WHEN pg_is_in_recovery() THEN 'on' ELSE current_setting('default_transaction_read_only') END,
    current_setting('server_version_num')";

/// Statements for a connection, after which it answers whether the server takes no writes, and its version.
pub(super) fn setup(options: &Options) -> Result<String> {
    let schema = if options.schema.is_empty() {
        String::new()
    } else {
        check("schema", &options.schema, MOST_BYTES)?;
        format!("SET search_path = {};", quoted('"', &options.schema))
    };
    let kept = "CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END";
    let commit = match options.durability {
        Durability::Durable => kept,
        Durability::Relaxed => "'off'",
    };
    // Few rows that change all the time mislead a planner; and each statement here has one good plan. Where it has to scan after all, that
    // counts as so dear that the server would compile it, which takes a hundred milliseconds.
    Ok(format!(
        "{schema} SET TIME ZONE 'UTC'; SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan; SET jit = off;
         SELECT set_config('synchronous_commit', {commit}, false);
         {SERVER}"
    ))
}

/// A time as a setting holds it, at most: 24 days.
pub(super) fn milliseconds(time: Duration) -> i32 {
    i32::try_from(time.as_millis()).unwrap_or(i32::MAX)
}
