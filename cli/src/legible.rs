//! Text that others wrote, for a terminal: it must not steer that, nor look like other text.

use std::fmt::Write as _;

use fencelock::port::is_hidden;

/// The text with every character that steers a terminal, turns the direction of writing or is not seen written as `\u{…}`.
pub(crate) fn legible(text: &str) -> String {
    escape(text, |c, to| {
        let _ = write!(to, "{}", c.escape_unicode());
    })
}

/// JSON with the same characters written as its own escapes: they stand in its strings only, and mean the same.
pub(crate) fn legible_json(json: &str) -> String {
    escape(json, |c, to| {
        for unit in c.encode_utf16(&mut [0; 2]) {
            let _ = write!(to, "\\u{unit:04x}");
        }
    })
}

fn escape(text: &str, write: impl Fn(char, &mut String)) -> String {
    let mut legible = String::with_capacity(text.len());
    for c in text.chars() {
        if is_hidden(c) { write(c, &mut legible) } else { legible.push(c) }
    }
    legible
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_seen_is_written_out() {
        let hidden = "\0\u{1}\t\n\r\u{1b}\u{7f}\u{80}\u{85}\u{9b}\u{9d}\u{9f}\u{ad}\u{34f}\u{61c}\u{115f}\u{1160}\u{180e}\
            \u{200b}\u{200c}\u{200d}\u{200e}\u{200f}\u{2028}\u{2029}\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}\u{2060}\
            \u{2066}\u{2067}\u{2068}\u{2069}\u{206f}\u{3164}\u{fe0f}\u{feff}\u{ffa0}\u{fff9}\u{e0001}\u{e0041}";
        for c in hidden.chars() {
            let (text, code) = (format!("a{c}b"), u32::from(c));
            assert_eq!(legible(&text), format!("a\\u{{{code:x}}}b"));
            let json = legible_json(&serde_json::to_string(&text).unwrap());
            assert!(json.is_ascii() && !json.contains(char::is_control), "{json}");
            assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
        }
        for seen in ["orders:1", "größer, \"so\" \\ /", "锁", "קפל", "🔒"] {
            assert_eq!((legible(seen), legible_json(seen)), (seen.into(), seen.into()));
        }
    }
}
