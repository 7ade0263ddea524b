//! By which name a server knows a lock. It takes 64 characters at most, does not tell upper from lower case and has one set of
//! names for all databases, so a name is a hash of the database and the lock's name.

use crate::driver::sql::tables::Tables;

/// The name of a lock; tables of another name have other locks. `name` is SQL, as is what comes of it.
pub(super) fn key(tables: &Tables, name: &str) -> String {
    let word = format!("'{}'", tables.word);
    match &*tables.word {
        "fencelock" => hashed("fencelock:", &["DATABASE()", name]),
        _ => hashed("fencelock:", &["DATABASE()", &word, name]),
    }
}

/// The name that whoever has a row locked has taken too, so that others see who has it. All of that is SQL; without a schema it is
/// the connection's.
pub(super) fn mark(schema: Option<&str>, table: &str, value: &str) -> String {
    hashed("fencelock-row:", &[schema.unwrap_or("DATABASE()"), table, value])
}

fn hashed(prefix: &str, parts: &[&str]) -> String {
    let bytes: Vec<_> = parts.iter().map(|part| format!("CAST({part} AS BINARY)")).collect();
    format!("CONCAT('{prefix}', LEFT(SHA2(CONCAT({}), 256), 48))", bytes.join(", 0x00, "))
}

#[cfg(test)]
mod tests {
    use super::{Tables, key, mark};

    #[test]
    fn the_rule_is_the_published_one() {
        let rule = "CONCAT('fencelock:', LEFT(SHA2(CONCAT(CAST(DATABASE() AS BINARY), 0x00, CAST('orders:42' AS BINARY)), 256), 48))";
        let tables = |word| Tables::new(word, '`').unwrap();
        assert_eq!(key(&tables("fencelock"), "'orders:42'"), rule);
        let other = rule.replace("0x00, ", "0x00, CAST('app' AS BINARY), 0x00, ");
        assert_eq!(key(&tables("app"), "'orders:42'"), other);
        let row = mark(Some("'a'"), "'b'", "t.id");
        assert!(row.contains("CAST('a' AS BINARY), 0x00, CAST('b' AS BINARY), 0x00, CAST(t.id"));
    }
}
