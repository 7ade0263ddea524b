//! Versions in a table of the user's own. The row is locked before it is changed: whoever waits for it in vain has
//! changed nothing.

use serde_json::Value as Json;

use super::fault::{Number, judge_as};
use super::link::Link;
use super::literal::text;
use super::live::{Answered, Live, Statement, ask};
use super::row::column;
use super::schema::MOST_BYTES;
use super::shape;
use super::statement::{self, CLOCK};
use crate::driver::own_table::{self, CONSTRAINT, UNFIT};
use crate::driver::sql::fault::{Fault, Next, bad_column};
use crate::driver::sql::known_tables::{CHANGED, RIGHTS};
use crate::driver::sql::signed;
use crate::driver::sql::transaction::{Progress, Work};
use crate::error::{Code, Error, Result as Outcome};
use crate::port::{CellKey, Change, Look, Swap, Version};

/// A user's own table: its name, the names of its columns, and how its value column holds a value.
pub(super) struct OwnTable {
    table: String,
    key: String,
    version: String,
    value: String,
    kind: Kind,
}

/// How a column holds a value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Number,
    /// Its text is JSON.
    Document,
    /// Its text is a text.
    Text,
}

/// The server's errors on a user's own table.
const NUMBERS: &[Number] = &[
    (&[1142, 1143], Code::Auth, Next::Keep, RIGHTS),
    (&[1054, 1146, 1356], Code::Conflict, Next::Keep, CHANGED),
    (&[1048, 1062, 1451, 1452, 1644, 3819, 4025], Code::Conflict, Next::Keep, CONSTRAINT),
    (&[1264, 1265, 1267, 1292, 1366, 1367, 1406, 3140, 3156], Code::Invalid, Next::Keep, UNFIT),
];

const WHOLE: &[&str] = &["tinyint", "smallint", "mediumint", "int", "bigint"];
const NUMERIC: &[&str] = &["decimal", "float", "double", "year"];
/// The types of columns whose values cannot be converted to text.
const BYTES: &[&str] =
    &["bit", "binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob", "geometry"];

impl OwnTable {
    /// Finds a table that was written as `table(key, version, value)`.
    async fn find(link: &Link, live: &mut Live, written: &str) -> Result<Self, Fault> {
        let own = own_table::OwnTable::parse(written, MOST_BYTES).map_err(Fault::refused)?;
        let columns = [own.keyed.key, own.version, own.value];
        let found = shape::columns(&mut live.conn, &own.keyed, &columns, judged(link, false));
        let found = found.await?;
        let [key, version, value] = &found[..] else { return Err(Fault::vanished()) };
        if !WHOLE.contains(&&*version.kind) {
            return Err(Fault::refused(own.does_not_count(&version.kind)));
        }
        if !key.is_unique {
            return Err(Fault::refused(own.keyed.not_unique()));
        }
        let kind = match &*value.kind {
            _ if value.is_json => Kind::Document,
            kind if WHOLE.contains(&kind) || NUMERIC.contains(&kind) => Kind::Number,
            kind if BYTES.contains(&kind) => {
                let message = format!("a column of the type {kind} holds no value that JSON knows");
                return Err(Fault::refused(Error::invalid("on_table", message)));
            }
            _ => Kind::Text,
        };
        let [key, version, value] = own.columns('`');
        Ok(Self { table: own.keyed.name('`'), key, version, value, kind })
    }

    fn is_it(&self, name: &str) -> String {
        shape::is_it(&self.key, name)
    }

    async fn look(&self, link: &Link, live: &mut Live, key: &CellKey) -> Result<Look, Fault> {
        let Self { table, version, value, .. } = self;
        let is_it = self.is_it(&key.name);
        let asked = format!("SELECT {version}, {value} FROM {table} WHERE {is_it}; SELECT {CLOCK}");
        let answered = ask(&mut live.conn, &Statement::Text(asked)).await;
        self.shown(&answered.map_err(judged(link, false))?).map_err(Fault::refused)
    }

    fn shown(&self, answered: &Answered) -> Outcome<Look> {
        let [rows, clock] = &answered.sets[..] else { return Err(bad_column("now")) };
        let clock = clock.first().ok_or_else(|| bad_column("now"))?;
        let clock = column(clock, 0, "now")?;
        let Some(row) = rows.first() else { return Ok(Look { cell: None, clock }) };
        let value = column::<Option<String>>(row, 1, "value")?;
        let json = match value {
            None => "null".to_owned(),
            Some(text) if self.kind == Kind::Text => Json::from(text).to_string(),
            Some(text) => {
                serde_json::from_str::<Json>(&text).map_err(|_| own_table::no_json())?;
                text
            }
        };
        own_table::look(column(row, 0, "version")?, &json, clock)
    }

    /// The value as it stands in SQL.
    fn literal(&self, json: &str) -> Outcome<String> {
        let unfit = |_| Error::invalid("value", UNFIT);
        Ok(match serde_json::from_str::<Json>(json).map_err(unfit)? {
            Json::Null => "NULL".to_owned(),
            _ if self.kind == Kind::Document => text(json),
            Json::Bool(truth) => i32::from(truth).to_string(),
            Json::Number(number) => number.to_string(),
            Json::String(value) => text(&value),
            Json::Array(_) | Json::Object(_) => text(json),
        })
    }
}

/// The fault that a failed statement on such a table amounts to.
fn judged(link: &Link, decides: bool) -> impl Fn(mysql_async::Error) -> Fault {
    move |error| judge_as(&link.address, &error, decides, NUMBERS)
}

/// Reads such a version.
pub(super) struct Read(pub(super) CellKey);

impl Work<Link> for Read {
    type Done = Look;

    async fn attempt(&self, link: &Link, live: &mut Live, _: &Progress) -> Result<Look, Fault> {
        let find = async |written: &str| OwnTable::find(link, live, written).await;
        let table = link.own_tables.of(&self.0, find).await?;
        let look = table.look(link, live, &self.0).await;
        link.own_tables.passed(&self.0, look)
    }
}

/// Replaces such a version if nobody was faster.
pub(super) struct Replace(pub(super) Change);

impl Work<Link> for Replace {
    type Done = Swap;

    fn turns<'p>(&self, link: &'p Link) -> &'p tokio::sync::Semaphore {
        &link.own_turns
    }

    async fn attempt(
        &self,
        link: &Link,
        live: &mut Live,
        progress: &Progress,
    ) -> Result<Swap, Fault> {
        let Self(Change { key, expected, value, .. }) = self;
        let find = async |written: &str| OwnTable::find(link, live, written).await;
        let own = link.own_tables.of(key, find).await?;
        let OwnTable { table, version, value: holds, .. } = &*own;
        let expected = expected.map_or(0, Version::get);
        let value = own.literal(value.as_deref().unwrap_or("null")).map_err(Fault::refused)?;
        let is_it = own.is_it(&key.name);
        let begin = statement::begin();
        let asked =
            format!("{begin}SELECT {version}, {CLOCK} FROM {table} WHERE {is_it} FOR UPDATE");
        let locked =
            ask(&mut live.conn, &Statement::Text(asked)).await.map_err(judged(link, false));
        let rows = link.own_tables.passed(key, locked)?.rows();
        let present = rows.first().map(|row| {
            Ok((column::<Option<i64>>(row, 0, "version")?, column::<u64>(row, 1, "now")?))
        });
        let present = present.transpose().map_err(Fault::refused)?;
        let Some((_, since)) = present.filter(|(version, _)| *version == Some(signed(expected)))
        else {
            let asked = Statement::Text(statement::roll_back());
            ask(&mut live.conn, &asked).await.map_err(judged(link, false))?;
            return Ok(Swap::Other(own.look(link, live, key).await?));
        };
        let asked = format!(
            "UPDATE {table} SET {version} = {version} + 1, {holds} = {value} WHERE {is_it}; {}",
            statement::end("COMMIT")
        );
        progress.decides();
        let written =
            ask(&mut live.conn, &Statement::Text(asked)).await.map_err(judged(link, true));
        link.own_tables.passed(key, written)?;
        Ok(Swap::Done { version: Version::new(expected + 1), since })
    }
}
