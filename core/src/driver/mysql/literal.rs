//! Values as SQL text. Text is written as its bytes in hexadecimal: so no mode of a session and no character can end it early.

use mysql_async::Value as RawValue;

use crate::driver::sql::statement::{Statement, Value};

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

fn literal(value: &Value) -> String {
    match value {
        Value::Null | Value::Unread => "NULL".to_owned(),
        Value::Int(number) => number.to_string(),
        Value::Digits(digits) => digits.clone(),
        Value::Text(text) => self::text(text),
        Value::Name(name) => bytes(name),
        Value::Names(names) => names.iter().map(|name| bytes(name)).collect::<Vec<_>>().join(", "),
        #[cfg(feature = "postgres")]
        Value::Ints(_) => unreachable!("only PostgreSQL has lists of numbers"),
    }
}

/// A statement with its values in its text.
pub(super) fn written(Statement { text, values, .. }: &Statement) -> String {
    if values.is_empty() {
        return text.to_string();
    }
    let literals: Vec<_> = values.iter().map(literal).collect();
    replaced(text, |at, written| written.push_str(&literals[at]))
}

/// A statement to prepare, and its values in the order in which they stand there.
pub(super) fn marked(text: &str, values: &[Value]) -> (String, Vec<RawValue>) {
    let mut order = Vec::new();
    let text = replaced(text, |at, written| {
        order.push(match &values[at] {
            Value::Int(number) => RawValue::Int(*number),
            Value::Text(text) | Value::Name(text) => text.as_bytes().into(),
            _ => RawValue::NULL,
        });
        written.push('?');
    });
    (text, order)
}

/// The text with something else in the place of each `$1` and so on, but for those within quotes.
fn replaced(text: &str, mut put: impl FnMut(usize, &mut String)) -> String {
    let mut written = String::with_capacity(2 * text.len());
    let (mut rest, mut quote) = (text, None);
    while let Some(at) = rest.find(['$', '\'', '`', '"']) {
        let (before, found) = rest.split_at(at);
        written.push_str(before);
        let sign = char::from(found.as_bytes()[0]);
        rest = &found[1..];
        let digits =
            rest.len() - rest.trim_start_matches(|digit: char| digit.is_ascii_digit()).len();
        if sign == '$' && quote.is_none() && digits > 0 {
            let number: usize = rest[..digits].parse().expect("they are digits");
            rest = &rest[digits..];
            put(number - 1, &mut written);
            continue;
        }
        written.push(sign);
        if sign != '$' {
            match quote {
                None => quote = Some(sign),
                Some(open) if open == sign => quote = None,
                Some(_) => {}
            }
        }
    }
    written.push_str(rest);
    written
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::sql::statement::name;

    #[test]
    fn nothing_ends_a_text_early_and_a_name_may_look_like_a_value() {
        assert_eq!(text("a'\\é"), "_utf8mb4 x'61275cc3a9'");
        let names = Value::Names(vec!["a".into(), "b".into()]);
        let values = [names, Value::Null, Value::Digits("1.5".into()), name("")];
        let asked = Statement::once("$1 `a$1``$2` '$.x' $4, $2 $3", values);
        assert_eq!(written(&asked), "x'61', x'62' `a$1``$2` '$.x' x'', NULL 1.5");
        let (text, values) = marked("$2 = $1 + $2", &[7.into(), "a".into()]);
        assert_eq!((text.as_str(), values.len()), ("? = ? + ?", 3));
        assert_eq!(values[1], RawValue::Int(7));
    }
}
