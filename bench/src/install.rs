//! The peers to measure, from their registries, and our own packages for other languages. Who cannot be had is left out, and the tables say why.

use std::path::Path;

use fencelock_peers::{DOORS, Family, Role};

use crate::contender::Contender;

/// The measured libraries of every family.
const PEERS: &[(Family, &[&str])] = &[
    (Family::Rust, &["rslock"]),
    (Family::Go, &["redislock", "redsync", "rueidislock"]),
    (Family::Node, &["redis-semaphore", "node-redlock"]),
    (Family::Python, &["redis-py", "redis-py-asyncio", "python-redis-lock"]),
    (Family::Java, &["redisson"]),
];

/// The peers, and why some are missing.
pub(crate) fn peers(target: &Path) -> (Vec<Contender>, Vec<String>) {
    let (mut peers, mut missing) = (Vec::new(), Vec::new());
    for (family, names) in PEERS {
        eprintln!("installing the peers of peers/{}", family.name());
        match family.install(Role::Bench, target) {
            Ok(program) => {
                peers.extend(names.iter().map(|name| Contender::peer(name, &program)));
            }
            Err(lack) => missing.push(format!("without the peers of {}: {lack}", family.name())),
        }
    }
    for door in DOORS {
        eprintln!("installing fencelock for {}", door.language);
        match door.install(Role::Bench, target) {
            Ok(program) => peers.push(Contender::door(door.language, &program)),
            Err(lack) => missing.push(format!("without {}: {lack}", door.language)),
        }
    }
    (peers, missing)
}
