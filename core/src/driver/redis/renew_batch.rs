//! Renewals and refreshes, of which one script carries out many: what it is told, and what it answers.

use std::time::Duration;

use redis::{Cmd, Value};

use super::outcome::outcome;
use super::request::millis;
use super::script::{Form, word};
use crate::fence::Token;
use crate::port::{Action, Outcome, Step};

/// The most locks of one script, so that no script keeps the server for long.
pub(super) const GROUP: usize = 600;
/// Words of a reply for each lock of which there is more to say.
pub(super) const WORDS: usize = 5;
/// Digits of a lease in what is told.
const DIGITS: usize = 17;
/// The size of the argument for one lock: the owner, whether it is a Refresh, the lease.
pub(super) const ENTRY_SIZE: usize = 32 + 1 + DIGITS;

/// Adds what the script is told of all its locks, as one word: a hundred thousand leases are renewed three times in each of
/// their lengths, and every word more costs both sides.
pub(super) fn write_arguments(command: &mut Cmd, steps: &[Step]) {
    let mut entries = String::with_capacity(ENTRY_SIZE * steps.len());
    let (mut length, mut digits) = (0, String::new());
    for step in steps {
        entries.push_str(step.owner.encode(&mut [0; 32]));
        entries.push(if matches!(step.action, Action::Refresh { .. }) { '1' } else { '0' });
        // Most want the same.
        let millis = millis(lease(&step.action));
        if millis != length {
            length = millis;
            digits = format!("{millis:0DIGITS$}");
        }
        entries.push_str(&digits);
    }
    command.arg(entries);
}

/// The script's answer for each step: first, in one word, the tokens of those who hold for as long as they asked for; then of
/// each of the others, whose token is 0, what there is to say.
pub(super) fn read<'a>(
    steps: &'a [Step],
    reply: &'a [Value],
    form: Form,
) -> impl Iterator<Item = Told<'a>> {
    let (tokens, mut others) = match reply.split_first() {
        Some((Value::BulkString(tokens), others)) => (&tokens[..], others),
        _ => (&[][..], reply),
    };
    let mut tokens = Tokens { rest: tokens, form };
    steps.iter().map(move |step| match tokens.next() {
        Some(0) => {
            let (words, rest) = others.split_at_checked(WORDS).unwrap_or_default();
            others = rest;
            match words {
                [Value::Int(word::FAILED), Value::BulkString(text), ..] => Told::Failed(text),
                words => outcome(words).map_or(Told::Garbled, Told::Outcome),
            }
        }
        Some(token) => {
            let left = Duration::from_millis(millis(lease(&step.action)));
            Told::Outcome(Outcome::Granted { token: Token::new(token), left, drawn: 1 })
        }
        None => Told::Garbled,
    })
}

/// The script's answer for one step.
pub(super) enum Told<'a> {
    Outcome(Outcome),
    /// The server's own words for what it did not do, or not to the end.
    Failed(&'a [u8]),
    /// A reply that no script of ours gives.
    Garbled,
}

fn lease(action: &Action) -> Duration {
    match action {
        Action::Refresh { ttl } | Action::Renew { ttl } => *ttl,
        _ => Duration::ZERO,
    }
}

/// Numbers in one word: eight bytes each, or in digits with a blank behind each.
struct Tokens<'a> {
    rest: &'a [u8],
    form: Form,
}

impl Iterator for Tokens<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        match self.form {
            Form::Packed => {
                let (number, rest) = self.rest.split_first_chunk()?;
                self.rest = rest;
                Some(f64::from_le_bytes(*number) as u64)
            }
            Form::Text => {
                let end = self.rest.iter().position(|byte| *byte == b' ')?;
                let number = std::str::from_utf8(&self.rest[..end]).ok()?.parse().ok()?;
                self.rest = &self.rest[end + 1..];
                Some(number)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::port::{Kind, LockKey, OwnerId};

    fn steps(count: usize) -> Vec<Step> {
        let owner = OwnerId::parse(&"1".repeat(32)).expect("32 digits");
        let (lock, kind) = (LockKey::new("orders"), Kind::Mutex);
        let step = |at: usize| {
            let ttl = Duration::from_micros(1500) * u32::try_from(at + 1).expect("few");
            let action = if at == 1 { Action::Refresh { ttl } } else { Action::Renew { ttl } };
            Step { lock: lock.clone(), owner, kind, action }
        };
        (0..count).map(step).collect()
    }

    #[test]
    fn what_is_told_of_a_lock_has_one_length() {
        let mut command = Cmd::new();
        write_arguments(&mut command, &steps(3));
        let owner = "1".repeat(32);
        let expected =
            format!("{owner}000000000000000002{owner}100000000000000003{owner}000000000000000005");
        assert_eq!(expected.len(), 3 * ENTRY_SIZE);
        assert_eq!(command.args_iter().last(), Some(redis::Arg::Simple(expected.as_bytes())));
    }

    #[test]
    fn tokens_stand_for_those_who_hold_and_words_for_the_others() {
        let packed: Vec<u8> = [7.0, 0.0, 0.0, 9_007_199_254_740_991.0f64]
            .iter()
            .flat_map(|token| token.to_le_bytes())
            .collect();
        let digits = b"7 0 0 9007199254740991 ".to_vec();
        for (tokens, form) in [(packed, Form::Packed), (digits, Form::Text)] {
            let words = [word::GONE, 0, 0, 0, 0, word::FAILED, -1, 0, 0, 0];
            let mut reply = vec![Value::BulkString(tokens)];
            reply.extend(words.map(Value::Int));
            reply[7] = Value::BulkString(b"WRONGTYPE".to_vec());
            let steps = steps(5);
            let told: Vec<_> = read(&steps, &reply, form).collect();
            let held = |token, millis| Outcome::Granted {
                token: Token::new(token),
                left: Duration::from_millis(millis),
                drawn: 1,
            };
            assert!(matches!(&told[0], Told::Outcome(outcome) if *outcome == held(7, 2)));
            assert!(matches!(&told[1], Told::Outcome(Outcome::Gone)));
            assert!(matches!(&told[2], Told::Failed(b"WRONGTYPE")));
            let last = held(9_007_199_254_740_991, 6);
            assert!(matches!(&told[3], Told::Outcome(outcome) if *outcome == last));
            // Nothing was said of it.
            assert!(matches!(&told[4], Told::Garbled));
        }
    }
}
