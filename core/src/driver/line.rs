//! What an entry says of itself on a store with sessions, as its value.

use std::sync::Arc;

use crate::port::{Entry, Mode};

/// The value of an entry: `<mode> <limit>[ upgrades][ fence=<fence>@<version>]`, and who asks on a line of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) mode: Mode,
    pub(super) limit: u32,
    pub(super) upgrades: bool,
    /// The newest fence, if the entry had been written so often when its mode was changed.
    pub(super) fence: Option<(u64, i64)>,
    pub(super) info: Arc<str>,
}

const MODES: &[(Mode, &str)] = &[
    (Mode::Exclusive, "exclusive"),
    (Mode::Read, "read"),
    (Mode::Write, "write"),
    (Mode::Upgradeable, "upgradeable"),
    (Mode::Permit, "permit"),
];

impl Line {
    pub(super) fn of(entry: &Entry) -> Self {
        let Entry { mode, limit, upgrades, ref info, .. } = *entry;
        Self { mode, limit, upgrades, fence: None, info: info.clone() }
    }

    /// What is known of an entry of another program that holds in this mode.
    pub(super) fn foreign(mode: Mode) -> Self {
        Self { mode, limit: 1, upgrades: false, fence: None, info: "".into() }
    }

    pub(super) fn written(&self) -> Vec<u8> {
        let Self { mode, limit, upgrades, fence, info } = self;
        let word = MODES.iter().find(|(known, _)| known == mode).map_or("exclusive", |row| row.1);
        let upgrades = if *upgrades { " upgrades" } else { "" };
        let fence = fence.map_or(String::new(), |(fence, at)| format!(" fence={fence}@{at}"));
        format!("{word} {limit}{upgrades}{fence}\n{info}").into_bytes()
    }

    /// The value of an entry of ours.
    pub(super) fn parse(value: &[u8]) -> Option<Self> {
        let (words, info) = std::str::from_utf8(value).ok()?.split_once('\n')?;
        let mut words = words.split(' ');
        let word = words.next()?;
        let mode = MODES.iter().find(|(_, known)| *known == word)?.0;
        let limit = words.next()?.parse().ok()?;
        let mut line = Self { mode, limit, upgrades: false, fence: None, info: info.into() };
        for word in words {
            match word.split_once('=') {
                None => line.upgrades |= word == "upgrades",
                Some(("fence", text)) => {
                    let (fence, version) = text.split_once('@')?;
                    line.fence = Some((fence.parse().ok()?, version.parse().ok()?));
                }
                Some(_) => {}
            }
        }
        Some(line)
    }

    /// The newest fence that was drawn for the entry, which was written `version` times, and last by the change `modified` of the
    /// store. Each draw writes the entry; a change of its mode does too, and notes the fence.
    pub(super) fn newest_fence(&self, version: i64, modified: i64) -> u64 {
        match self.fence {
            Some((fence, noted)) if noted == version => fence,
            _ => modified.unsigned_abs(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(mode: Mode, upgrades: bool, fence: Option<(u64, i64)>) -> Line {
        Line { mode, limit: 7, upgrades, fence, info: r#"{"host":"a\nb"}"#.into() }
    }

    #[test]
    fn a_value_is_read_as_it_was_written() {
        for (mode, word) in MODES {
            let (plain, full) = (line(*mode, false, None), line(*mode, true, Some((12, 3))));
            assert!(plain.written().starts_with(word.as_bytes()));
            assert_eq!(Line::parse(&plain.written()), Some(plain));
            assert_eq!(Line::parse(&full.written()), Some(full));
        }
        assert_eq!(Line::parse(b"who knows 1\n"), None);
    }

    #[test]
    fn a_weaker_mode_keeps_the_fence_until_another_is_drawn() {
        let line = line(Mode::Read, false, Some((5, 2)));
        assert_eq!(line.newest_fence(2, 8), 5);
        assert_eq!(line.newest_fence(3, 11), 11);
    }
}
