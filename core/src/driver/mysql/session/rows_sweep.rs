//! The removal of rows that were made long ago. They tell nothing: who needs one makes it anew.

use std::fmt::Write;

use super::connection::Connection;
use super::row::Rows;
use crate::driver::mysql::literal::bytes;
use crate::driver::sql::fault::Fault;
use crate::driver::sql::statement::{Row, Statement, column};
use crate::driver::sql::sweep::{KEPT, PART};

/// Deletes such rows behind a name, but for those that somebody has locked. Answers how far it came.
pub(super) async fn sweep(
    session: &Connection<Rows>,
    table: &str,
    from: &str,
) -> Result<Option<String>, Fault> {
    let (from, kept) = (bytes(from), KEPT.as_secs());
    let name = |row: &Row| {
        let name = column::<Option<&str>>(row, 0, "name").map_err(Fault::refused)?;
        Ok::<_, Fault>(name.map(str::to_owned))
    };
    // By itself: within a statement that locks, or sets something, it would wait for rows that others have locked.
    let part = format!("SELECT name FROM {table} WHERE name > {from} ORDER BY name LIMIT {PART}");
    let last = Statement::bare(format!("SELECT MAX(p.name) FROM ({part}) AS p"));
    let answered = session.line.ask(vec![last], false).await?;
    let Some(last) = answered.row().map(name).transpose()?.flatten() else {
        return Ok(None);
    };
    let asked = format!(
        "BEGIN; SELECT name FROM {table} WHERE name > {from} AND name <= {}
             AND made < SYSDATE(6) - INTERVAL {kept} SECOND FOR UPDATE SKIP LOCKED",
        bytes(&last)
    );
    let answered = session.line.ask(vec![Statement::bare(asked)], false).await?;
    let old: Vec<_> = answered.all().map(name).collect::<Result<_, _>>()?;
    // Each by itself: a list may be carried out as a look at all rows, which waits for those that are locked.
    let mut end = String::new();
    for name in old.into_iter().flatten() {
        write!(end, "DELETE FROM {table} WHERE name = {}; ", bytes(&name))
            .expect("text takes whatever is written to it");
    }
    end.push_str("COMMIT");
    session.line.ask(vec![Statement::bare(end)], false).await?;
    Ok(Some(last))
}
