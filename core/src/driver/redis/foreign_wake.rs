//! Clients of other libraries that wait for the same lock, and do not poll for it.

use crate::port::LockKey;

/// Whom to wake when a lock becomes free: an element of this list, and a message to this channel; either may be empty.
pub(super) struct Wake {
    pub(super) list: String,
    pub(super) channel: String,
}

/// The signals for waiters of other libraries, by the dialect's prefix; without a prefix there is nobody to signal.
pub(super) fn wake(lock: &LockKey) -> Option<Wake> {
    let (prefix, name) = lock.split();
    // Of every lock `lock:<name>` python-redis-lock's waiters pop the list `lock-signal:<name>`.
    let list = if prefix == "lock:" { format!("lock-signal:{name}") } else { String::new() };
    // Of the locks `<registry>:<path>` Spring's waiters listen to `<registry>-channel:*`.
    let channel = match prefix.strip_suffix(':') {
        Some(registry) if !registry.is_empty() => format!("{registry}-channel:{}", lock.as_str()),
        _ => String::new(),
    };
    (!list.is_empty() || !channel.is_empty()).then_some(Wake { list, channel })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_prefix_tells_of_neighbours() {
        let told = |lock: &LockKey| wake(lock).map(|wake| (wake.list, wake.channel));
        assert_eq!(told(&LockKey::new("lock:a")), None);
        assert_eq!(told(&LockKey::plain("", "lock:a")), None);
        assert_eq!(told(&LockKey::plain(":", "a")), None);
        assert_eq!(told(&LockKey::plain("locks/", "a")), None);
        let spring = (String::new(), "shop-channel:shop:a".to_owned());
        assert_eq!(told(&LockKey::plain("shop:", "a")), Some(spring));
        let python = ("lock-signal:a".to_owned(), "lock-channel:lock:a".to_owned());
        assert_eq!(told(&LockKey::plain("lock:", "a")), Some(python));
    }
}
