//! The messages that scripts publish: `g<owner> <token> <ttl in ms> <tokens drawn>` for a grant, `o<owner>` for an open lock.

use std::time::Duration;

use crate::fence::Token;
use crate::port::{Notice, OwnerId};

/// Reads a message; anybody may publish, so anything may stand there.
pub(super) fn parse(message: &[u8]) -> Option<Notice> {
    let message = std::str::from_utf8(message).ok()?;
    if let Some(owner) = message.strip_prefix('o') {
        return Some(Notice::Open { owner: OwnerId::parse(owner)? });
    }
    let mut words = message.strip_prefix('g')?.split(' ');
    let owner = OwnerId::parse(words.next()?)?;
    let token = Token::new(words.next()?.parse().ok()?);
    let ttl = Duration::from_millis(words.next()?.parse().ok()?);
    let drawn = words.next()?.parse().ok()?;
    words.next().is_none().then_some(Notice::Granted { owner, token, ttl, drawn })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_messages_are_notices() {
        let owner = "00112233445566778899aabbccddeeff";
        let granted = Notice::Granted {
            owner: OwnerId::parse(owner).unwrap(),
            token: Token::new(7),
            ttl: Duration::from_secs(5),
            drawn: 17,
        };
        assert_eq!(parse(format!("g{owner} 7 5000 17").as_bytes()), Some(granted));
        assert!(parse(format!("o{owner}").as_bytes()).is_some());
        for bad in
            ["", "g", "o", "gx 7 5000 1", &format!("g{owner} 7 5"), &format!("g{owner} 7 5 9 1")]
        {
            assert_eq!(parse(bad.as_bytes()), None, "{bad}");
        }
        assert_eq!(parse(b"o\xff"), None);
    }
}
