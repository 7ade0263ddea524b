//! The removal of rows that were made long ago. They tell nothing: who needs one makes it anew.

use super::connection::Connection;
use super::row::Rows;
use crate::driver::mysql::literal::bytes;
use crate::driver::mysql::live::Statement;
use crate::driver::mysql::row::column;
use crate::driver::sql::fault::Fault;
use crate::driver::sql::sweep::{KEPT, PART};

/// Deletes such rows behind a name, but for those that somebody has locked. Answers how far it came.
pub(super) async fn sweep(session: &Connection<Rows>, from: &str) -> Result<Option<String>, Fault> {
    let (from, kept) = (bytes(from), KEPT.as_secs());
    let last = format!(
        "SELECT MAX(p.name) FROM (SELECT name FROM fencelock_row WHERE name > {from} ORDER BY name LIMIT {PART}) AS p"
    );
    let asked = format!(
        "BEGIN; SELECT 1, ({last}); SELECT name FROM fencelock_row WHERE name > {from} AND name <= ({last})
             AND made < SYSDATE(6) - INTERVAL {kept} SECOND FOR UPDATE SKIP LOCKED"
    );
    let text = |name: Vec<u8>| String::from_utf8_lossy(&name).into_owned();
    let answered = session.line.ask(Statement::Text(asked), false).await?;
    let (mut reached, mut old) = (None, Vec::new());
    for row in answered.sets.iter().flatten() {
        if row.len() == 2 {
            reached = column::<Option<Vec<u8>>>(row, 1, "name").map_err(Fault::refused)?.map(text);
        } else {
            old.push(text(column(row, 0, "name").map_err(Fault::refused)?));
        }
    }
    let end = if old.is_empty() {
        "ROLLBACK".to_owned()
    } else {
        let names: Vec<_> = old.iter().map(|name| bytes(name)).collect();
        format!("DELETE FROM fencelock_row WHERE name IN ({}); COMMIT", names.join(", "))
    };
    session.line.ask(Statement::Text(end), false).await?;
    Ok(reached)
}
