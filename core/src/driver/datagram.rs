//! Notices as they travel from process to process: one line of text each, some in one datagram.
//!
//! `granted <owner> <token> <ttl in µs>` and `open <owner>`. A line that is not understood is passed over, so that a
//! newer fencelock may say more.

use std::fmt::Write;
use std::time::Duration;

use crate::fence::Token;
use crate::port::{Notice, OwnerId};

/// The most one datagram carries: some forty notices.
#[cfg(feature = "sqlite")]
pub(crate) const LIMIT: usize = 4096;

/// Adds a notice to a datagram's text.
pub(crate) fn write(text: &mut String, notice: &Notice) {
    let written = match notice {
        Notice::Granted { owner, token, ttl, drawn } => {
            writeln!(text, "granted {owner} {token} {} {drawn}", ttl.as_micros())
        }
        Notice::Open { owner } => writeln!(text, "open {owner}"),
        // The receiver's own finding, never sent.
        Notice::Gone { .. } | Notice::Gap | Notice::Look => Ok(()),
    };
    written.expect("text takes whatever is written to it");
}

/// A notice alone.
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(crate) fn text(notice: &Notice) -> String {
    let mut text = String::new();
    write(&mut text, notice);
    text
}

/// The notices of a datagram.
pub(crate) fn read(bytes: &[u8]) -> impl Iterator<Item = Notice> {
    std::str::from_utf8(bytes).unwrap_or_default().lines().filter_map(line)
}

fn line(line: &str) -> Option<Notice> {
    let mut words = line.split(' ');
    match words.next()? {
        "granted" => Some(Notice::Granted {
            owner: OwnerId::parse(words.next()?)?,
            token: Token::new(words.next()?.parse().ok()?),
            ttl: Duration::from_micros(words.next()?.parse().ok()?),
            drawn: words.next()?.parse().ok()?,
        }),
        "open" => Some(Notice::Open { owner: OwnerId::parse(words.next()?)? }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notices_travel_unchanged_and_noise_is_passed_over() {
        let owner = OwnerId::parse("0123456789abcdef0123456789abcdef").unwrap();
        let ttl = Duration::from_micros(1_234_567);
        let sent =
            [Notice::Granted { owner, token: Token::MAX, ttl, drawn: 17 }, Notice::Open { owner }];
        let mut text = String::new();
        write(&mut text, &sent[0]);
        text.push_str("granted 12 x\nshout\n\ngranted\nopen zz\n");
        write(&mut text, &Notice::Gap);
        write(&mut text, &sent[1]);
        assert_eq!(read(text.as_bytes()).collect::<Vec<_>>(), sent);
        assert_eq!(read(&[0xff, 0xfe, b'\n']).count(), 0);
    }
}
