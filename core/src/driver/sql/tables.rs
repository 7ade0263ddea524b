//! The names of fencelock's own tables: the option `table`, and names that begin with it.

use crate::driver::identifier::quoted;
use crate::error::Result;
use crate::options::check_table;

/// See the module. The names stand in statements as they are.
#[derive(Clone, Debug)]
pub struct Tables {
    /// The beginning of all names.
    pub(in crate::driver) word: String,
    /// The table of locks. Its name alone may be a word of SQL's, so it is quoted.
    pub(in crate::driver) table: String,
    pub(in crate::driver) cells: String,
    /// Rows that are locked themselves.
    pub(in crate::driver) rows: String,
    /// The sequence of fencing tokens of locks that live with a session or a transaction.
    pub(in crate::driver) tokens: String,
}

impl Tables {
    /// As the option `table` says. Names are quoted by this mark on this database.
    pub(in crate::driver) fn new(word: &str, mark: char) -> Result<Self> {
        check_table("table", word)?;
        let behind = |end: &str| format!("{word}_{end}");
        Ok(Self {
            word: word.to_owned(),
            table: quoted(mark, word),
            cells: behind("cell"),
            rows: behind("row"),
            tokens: behind("token"),
        })
    }
}
