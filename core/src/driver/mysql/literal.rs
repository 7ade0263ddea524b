//! Values as SQL text. Text is written as its bytes in hexadecimal: so no mode of a session and no character can end it early.

use crate::driver::sql::foreign::row_name;
use crate::port::LockKey;

/// Bytes, as of a name. A record may have thousands, so nothing is formatted.
pub(super) fn bytes(text: &str) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut literal = String::with_capacity(3 + 2 * text.len());
    literal.push_str("x'");
    for byte in text.bytes() {
        literal.push(char::from(DIGITS[usize::from(byte >> 4)]));
        literal.push(char::from(DIGITS[usize::from(byte & 0xf)]));
    }
    literal.push('\'');
    literal
}

/// Text.
pub(super) fn text(text: &str) -> String {
    format!("_utf8mb4 {}", bytes(text))
}

/// A value, or none.
pub(super) fn or_null<T>(value: Option<T>, write: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| "NULL".to_owned(), write)
}

/// Names, between commas.
pub(super) fn names<'a>(locks: impl IntoIterator<Item = &'a LockKey>) -> String {
    let names: Vec<_> = locks.into_iter().map(|lock| bytes(&row_name(lock))).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_ends_a_text_early() {
        assert_eq!(text("a'\\é"), "_utf8mb4 x'61275cc3a9'");
        assert_eq!(or_null(Some(""), bytes), "x''");
        assert_eq!(or_null(None, text), "NULL");
        assert_eq!(names(&[LockKey::new("a"), LockKey::new("b")]), "x'61', x'62'");
    }
}
