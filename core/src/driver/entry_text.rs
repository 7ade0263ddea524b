//! The value of an entry on a store with sessions, by which the entry describes itself.

use std::sync::Arc;

use crate::port::{Entry, Mode};

/// The value of an entry: `<mode> <limit>`, and who asks on a line of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EntryText {
    pub(super) mode: Mode,
    pub(super) limit: u32,
    pub(super) info: Arc<str>,
}

const MODES: &[(Mode, &str)] = &[
    (Mode::Exclusive, "exclusive"),
    (Mode::Read, "read"),
    (Mode::Write, "write"),
    (Mode::Permit, "permit"),
];

impl EntryText {
    pub(super) fn of(entry: &Entry) -> Self {
        let Entry { mode, limit, ref info, .. } = *entry;
        Self { mode, limit, info: info.clone() }
    }

    /// The values assumed for an entry of another program that holds in this mode.
    pub(super) fn foreign(mode: Mode) -> Self {
        Self { mode, limit: 1, info: "".into() }
    }

    pub(super) fn written(&self) -> Vec<u8> {
        let Self { mode, limit, info } = self;
        let word = MODES.iter().find(|(known, _)| known == mode).map_or("exclusive", |row| row.1);
        format!("{word} {limit}\n{info}").into_bytes()
    }

    /// The value of an entry of ours.
    pub(super) fn parse(value: &[u8]) -> Option<Self> {
        let (words, info) = std::str::from_utf8(value).ok()?.split_once('\n')?;
        let mut words = words.split(' ');
        let word = words.next()?;
        let mode = MODES.iter().find(|(_, known)| *known == word)?.0;
        let limit = words.next()?.parse().ok()?;
        Some(Self { mode, limit, info: info.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_read_as_it_was_written() {
        for (mode, word) in MODES {
            let line = EntryText { mode: *mode, limit: 7, info: r#"{"host":"a\nb"}"#.into() };
            assert!(line.written().starts_with(word.as_bytes()));
            assert_eq!(EntryText::parse(&line.written()), Some(line));
        }
        assert_eq!(EntryText::parse(b"who knows 1\n"), None);
    }
}
