//! Versions in a table of the user's own. The row is locked before it is changed: whoever waits for it in vain has
//! changed nothing.

use serde_json::Value as Json;

use super::dialect::{Connection, Dialect, Kind, Layout};
use super::fault::{Fault, Next};
use super::link::{Link, Purpose};
use super::signed;
use super::statement::{Answer, Statement, Value, column};
use super::transaction::{Progress, Work};
use crate::driver::columns::number;
use crate::driver::own_table::{self, OwnTable, UNFIT};
use crate::error::{Code, Error, Result as Outcome};
use crate::port::{CellKey, Change, Failure, Look, Swap, Version};

impl Kind {
    /// The JSON of what a column holds.
    fn read(self, value: Option<&str>) -> Outcome<String> {
        Ok(match value {
            None => "null".to_owned(),
            Some(text) if self == Self::Text => Json::from(text).to_string(),
            Some(text) => {
                if self != Self::Json && serde_json::from_str::<Json>(text).is_err() {
                    return Err(own_table::no_json());
                }
                text.to_owned()
            }
        })
    }

    /// The value to write.
    fn written(self, json: Option<&str>) -> Outcome<Value> {
        let Some(json) = json else { return Ok(Value::Null) };
        if self == Self::Json {
            return Ok(json.into());
        }
        let unfit = |_| Error::invalid("value", UNFIT);
        Ok(match serde_json::from_str::<Json>(json).map_err(unfit)? {
            Json::Null => Value::Null,
            _ if self == Self::Document => json.into(),
            Json::Bool(truth) => i64::from(truth).into(),
            Json::Number(number) => Value::Digits(number.to_string()),
            Json::String(value) => value.into(),
            Json::Array(_) | Json::Object(_) => json.into(),
        })
    }
}

/// The table of a key.
async fn layout<D: Dialect>(
    link: &Link<D>,
    connection: &mut D::Connection,
    key: &CellKey,
) -> Result<std::sync::Arc<Layout>, Fault> {
    let find = async |written: &str| {
        let own = OwnTable::parse(written, D::MOST_BYTES).map_err(Fault::refused)?;
        D::own_table(connection, &own).await
    };
    link.own_tables.of(key, find).await
}

async fn look<D: Dialect>(
    layout: &Layout,
    link: &Link<D>,
    connection: &mut D::Connection,
    key: &CellKey,
) -> Result<Look, Fault> {
    let name = Value::from(&*key.name);
    let asked = layout.look.iter().map(|text| Statement::once(&**text, [name.clone()]));
    let asked: Vec<_> = asked.collect();
    let answer = connection.ask_of(&asked, false, D::OF_OWN_TABLE).await;
    let answer: Answer = link.own_tables.passed(key, answer)?;
    let read = || {
        let clock = answer.clock()?;
        let row = answer.all().find(|row| row.0.len() > 2);
        match row {
            Some(row) if column::<bool>(row, 0, "key")? => {
                let value = layout.kind.read(column(row, 2, "value")?)?;
                own_table::look(column(row, 1, "version")?, &value, clock)
            }
            _ => Ok(Look { cell: None, clock }),
        }
    };
    link.own_tables.passed(key, read().map_err(Fault::refused))
}

/// Reads such a version.
pub(super) struct Read(pub(super) CellKey);

impl<D: Dialect> Work<D> for Read {
    type Done = Look;

    async fn attempt(
        &self,
        link: &Link<D>,
        connection: &mut D::Connection,
        _: &Progress,
    ) -> Result<Look, Fault> {
        let layout = layout(link, connection, &self.0).await?;
        look(&layout, link, connection, &self.0).await
    }
}

/// Replaces such a version if nobody was faster.
pub(super) struct Replace(pub(super) Change);

impl<D: Dialect> Work<D> for Replace {
    type Done = Swap;

    const PURPOSE: Purpose = Purpose::OwnRow;

    async fn attempt(
        &self,
        link: &Link<D>,
        connection: &mut D::Connection,
        progress: &Progress,
    ) -> Result<Swap, Fault> {
        let Self(Change { key, expected, value, .. }) = self;
        let layout = layout(link, connection, key).await?;
        let value = layout.kind.written(value.as_deref()).map_err(Fault::refused)?;
        let name = Value::from(&*key.name);
        let [mut asked, commit, roll_back] = connection.transaction();
        asked.push(Statement::once(&*layout.lock, [name.clone()]));
        let answer = connection.ask_of(&asked, false, D::OF_OWN_TABLE).await;
        let answer: Answer = link.own_tables.passed(key, answer)?;
        let expected = signed(expected.map_or(0, Version::get));
        let row = answer.row().filter(|row| {
            column::<Option<i64>>(row, 0, "version").is_ok_and(|it| it == Some(expected))
        });
        let Some(row) = row else {
            connection.ask(&roll_back, false).await?;
            return Ok(Swap::Other(look(&layout, link, connection, key).await?));
        };
        let now = column(row, 1, "now").map_err(Fault::refused)?;
        let mut asked = vec![Statement::once(&*layout.replace, [name, value, expected.into()])];
        asked.extend(commit);
        progress.decides();
        let answer = connection.ask_of(&asked, true, D::OF_OWN_TABLE).await;
        let answer = link.own_tables.passed(key, answer)?;
        let written = match answer.row() {
            // This database does not tell what it has written.
            None if !D::RETURNS => Ok((expected + 1, now)),
            None => Err(not_risen()),
            Some(row) => column(row, 0, "version").and_then(|version: i64| {
                let is_risen = version > expected;
                let now = number(column(row, 1, "now")?, "now")?;
                if is_risen { Ok((version, now)) } else { Err(not_risen()) }
            }),
        };
        match written {
            Ok((version, since)) => Ok(Swap::Done { version: Version::new(version as u64), since }),
            Err(error) => Err(Fault { failure: Failure::unknown(error), next: Next::Keep }),
        }
    }
}

fn not_risen() -> Error {
    let message =
        "the row was changed, but its version did not rise; look at the triggers of your table";
    Error::new(Code::Conflict, message)
}
