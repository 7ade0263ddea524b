//! Which node has which slot, as some node told.

use redis::Value;

use crate::driver::redis::address::Host;
use crate::driver::redis::keys::SLOTS;

/// No node that we know of.
const NOBODY: u16 = u16::MAX;

/// The masters and their slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Map {
    owners: Vec<Host>,
    slots: Vec<u16>,
}

impl Map {
    /// Nobody has anything.
    pub(super) fn empty() -> Self {
        Self { owners: Vec::new(), slots: vec![NOBODY; SLOTS] }
    }

    /// Reads the answer to `CLUSTER SLOTS`. A node that does not say its own host is where it was `asked`.
    pub(super) fn read(reply: &Value, asked: &Host) -> Option<Self> {
        let Value::Array(ranges) = reply else { return None };
        let mut map = Self::empty();
        for range in ranges {
            let Value::Array(words) = range else { return None };
            let [Value::Int(first), Value::Int(last), Value::Array(master), ..] = &words[..] else {
                return None;
            };
            let [host, Value::Int(port), ..] = &master[..] else { return None };
            let host = match host {
                Value::BulkString(name) => String::from_utf8_lossy(name).into_owned(),
                Value::SimpleString(name) => name.clone(),
                _ => String::new(),
            };
            let owner = place(&host, u16::try_from(*port).ok()?, asked);
            let owner = map.number(owner);
            let (first, last) = (usize::try_from(*first).ok()?, usize::try_from(*last).ok()?);
            map.slots.get_mut(first..=last)?.fill(owner);
        }
        (!map.owners.is_empty()).then_some(map)
    }

    /// The node that has the slot.
    pub(super) fn owner(&self, slot: u16) -> Option<&Host> {
        self.owners.get(usize::from(self.slots[usize::from(slot)]))
    }

    /// All who have any.
    pub(super) fn owners(&self) -> &[Host] {
        &self.owners
    }

    /// The slot was seen elsewhere.
    pub(super) fn moved(&mut self, slot: u16, to: Host) {
        self.slots[usize::from(slot)] = self.number(to);
    }

    fn number(&mut self, owner: Host) -> u16 {
        let known = self.owners.iter().position(|known| *known == owner);
        let number = known.unwrap_or_else(|| {
            self.owners.push(owner);
            self.owners.len() - 1
        });
        u16::try_from(number).unwrap_or(NOBODY)
    }
}

/// Where a node is that is named in an answer: without a name, or one it does not know, where the one asked is.
fn place(host: &str, port: u16, asked: &Host) -> Host {
    match asked {
        Host::Tcp(name, _) if matches!(host, "" | "?") => Host::Tcp(name.clone(), port),
        _ => Host::Tcp(host.to_owned(), port),
    }
}

/// Where a `MOVED` or `ASK` leads: `3999 127.0.0.1:6381`.
pub(super) fn redirection(details: &str, asked: &Host) -> Option<Host> {
    let (_, to) = details.split_once(' ')?;
    let (host, port) = to.split(' ').next()?.rsplit_once(':')?;
    Some(place(host, port.parse().ok()?, asked))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str, port: u16) -> Host {
        Host::Tcp(name.to_owned(), port)
    }

    fn range(first: i64, last: i64, name: &str, port: i64) -> Value {
        let name = Value::BulkString(name.as_bytes().to_vec());
        Value::Array(vec![
            Value::Int(first),
            Value::Int(last),
            Value::Array(vec![name, Value::Int(port)]),
        ])
    }

    #[test]
    fn slots_have_owners() {
        let asked = host("seed", 1);
        let told = [range(0, 99, "a", 7), range(100, 199, "", 8), range(300, 16383, "a", 7)];
        let mut map = Map::read(&Value::Array(told.to_vec()), &asked).unwrap();
        assert_eq!(map.owners(), [host("a", 7), host("seed", 8)]);
        assert_eq!(map.owner(99), Some(&host("a", 7)));
        assert_eq!(map.owner(100), Some(&host("seed", 8)));
        assert_eq!(map.owner(200), None);
        map.moved(200, host("::1", 9));
        assert_eq!(map.owner(200), Some(&host("::1", 9)));
        for odd in [vec![], vec![range(0, 16384, "a", 7)], vec![range(9, -1, "a", 7)]] {
            assert_eq!(Map::read(&Value::Array(odd), &asked), None);
        }
    }

    #[test]
    fn redirections_lead_somewhere() {
        let asked = host("seed", 1);
        assert_eq!(redirection("3999 10.0.0.1:6381", &asked), Some(host("10.0.0.1", 6381)));
        assert_eq!(redirection("3999 ::1:6381", &asked), Some(host("::1", 6381)));
        assert_eq!(redirection("3999 :6381", &asked), Some(host("seed", 6381)));
        for odd in ["", "3999", "3999 here", "3999 here:x"] {
            assert_eq!(redirection(odd, &asked), None);
        }
    }
}
