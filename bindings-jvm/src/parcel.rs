//! Values on their way to Java and back: the shapes of JSON as tagged bytes, so that neither side needs a parser.
//!
//! A tag is followed by what it says: `i`, `u`, `d` by eight bytes (signed, unsigned, floating point), `s` by a length and
//! UTF-8, `l` by a count and as many values, `m` by a count and as many texts with their values. Numbers are big-endian,
//! lengths and counts have four bytes. `io.github.fencelock.Parcel` is the other side.

use serde_json::{Map, Number, Value};

/// JSON's own depth in the core: what is deeper could be written and never read again.
const DEPTH: u32 = 127;

/// Appends a value.
pub(crate) fn write(into: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Null => into.push(b'n'),
        Value::Bool(false) => into.push(b'f'),
        Value::Bool(true) => into.push(b't'),
        Value::Number(number) => write_number(into, number),
        Value::String(text) => {
            into.push(b's');
            write_text(into, text);
        }
        Value::Array(values) => {
            into.push(b'l');
            write_count(into, values.len());
            for value in values {
                write(into, value);
            }
        }
        Value::Object(values) => {
            into.push(b'm');
            write_count(into, values.len());
            for (name, value) in values {
                write_text(into, name);
                write(into, value);
            }
        }
    }
}

fn write_number(into: &mut Vec<u8>, number: &Number) {
    let (tag, bytes) = if let Some(signed) = number.as_i64() {
        (b'i', signed.to_be_bytes())
    } else if let Some(unsigned) = number.as_u64() {
        (b'u', unsigned.to_be_bytes())
    } else {
        (b'd', number.as_f64().unwrap_or(f64::NAN).to_be_bytes())
    };
    into.push(tag);
    into.extend(bytes);
}

fn write_text(into: &mut Vec<u8>, text: &str) {
    write_count(into, text.len());
    into.extend(text.as_bytes());
}

fn write_count(into: &mut Vec<u8>, count: usize) {
    into.extend((count as u32).to_be_bytes());
}

/// Reads the value that these bytes are; `None` if they are none, which is a defect of the other side.
pub(crate) fn read(mut bytes: &[u8]) -> Option<Value> {
    let value = value(&mut bytes, DEPTH)?;
    bytes.is_empty().then_some(value)
}

fn value(from: &mut &[u8], depth: u32) -> Option<Value> {
    let [tag] = take(from)?;
    Some(match tag {
        b'n' => Value::Null,
        b'f' => Value::Bool(false),
        b't' => Value::Bool(true),
        b'i' => i64::from_be_bytes(take(from)?).into(),
        b'u' => u64::from_be_bytes(take(from)?).into(),
        b'd' => f64::from_be_bytes(take(from)?).into(),
        b's' => Value::String(text(from)?),
        b'l' => {
            let depth = depth.checked_sub(1)?;
            let values = (0..count(from)?).map(|_| value(from, depth));
            Value::Array(values.collect::<Option<_>>()?)
        }
        b'm' => {
            let depth = depth.checked_sub(1)?;
            let values = (0..count(from)?).map(|_| Some((text(from)?, value(from, depth)?)));
            Value::Object(values.collect::<Option<Map<_, _>>>()?)
        }
        _ => return None,
    })
}

fn text(from: &mut &[u8]) -> Option<String> {
    let length = count(from)? as usize;
    let (text, rest) = from.split_at_checked(length)?;
    *from = rest;
    String::from_utf8(text.to_vec()).ok()
}

fn count(from: &mut &[u8]) -> Option<u32> {
    take(from).map(u32::from_be_bytes)
}

fn take<const LENGTH: usize>(from: &mut &[u8]) -> Option<[u8; LENGTH]> {
    let (taken, rest) = from.split_first_chunk()?;
    *from = rest;
    Some(*taken)
}
