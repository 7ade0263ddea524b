//! The token that a client proposes to all nodes.

use std::time::Duration;

use crate::fence::Token;
use crate::port::Instant;

/// Room for the way of the first request after a clock was met, in microseconds.
const ROOM: u64 = 1000;
/// The most that the clocks may have drifted apart since.
const DRIFT: Duration = Duration::from_millis(50);

/// The token a Take proposes, so that all nodes store the same one and nothing has to be written back: the time that the
/// fastest clock among the nodes shows, as far as known. Without a counter a node's token is its clock.
#[derive(Default)]
pub(super) struct Proposal(Option<(Token, Instant)>);

impl Proposal {
    /// The token to propose now, at least `floor`.
    pub(super) fn make(&self, now: Instant, floor: Token) -> Token {
        let Some((token, at)) = self.0 else { return floor };
        let since = now.since(at);
        let passed = since + (since / 8192).min(DRIFT);
        let passed = u64::try_from(passed.as_micros()).unwrap_or(u64::MAX >> 1);
        floor.max(Token::new(token.get() + passed))
    }

    /// The nodes did not agree on what was proposed at `sent`: one of them answered more.
    pub(super) fn missed(&mut self, proposed: Token, answered: Token, sent: Instant) {
        if self.0.is_none() {
            self.0 = Some((Token::new(answered.get() + ROOM), sent));
        } else if answered > proposed {
            self.0 = Some((answered, sent));
        }
    }
}
