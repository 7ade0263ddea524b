//! The peers to measure, from their registries, and our own packages for other languages. Who cannot be had is left out, and the tables say why.

use std::path::Path;

use fencelock_peers::{DOORS, Door, Family, Role};

use crate::arguments::Arguments;
use crate::contender::Contender;
use crate::workload::Workload;

/// The measured libraries of every family.
const PEERS: &[(Family, &[&str])] = &[
    (Family::Rust, &["rslock"]),
    (Family::Go, &["redislock", "redsync", "rueidislock", "etcd-bare", "clientv3", "go-zookeeper"]),
    (Family::Node, &["redis-semaphore", "node-redlock"]),
    (Family::Python, &["redis-py", "redis-py-asyncio", "python-redis-lock", "kazoo"]),
    (Family::Java, &["redisson", "curator", "jetcd", "shedlock", "spring-jdbc"]),
];

/// The peers to measure, all of them or those that are named, and the doors where they are measured; why some are missing.
pub(crate) fn peers(target: &Path, arguments: &Arguments) -> (Vec<Contender>, Vec<String>) {
    let (mut peers, mut missing) = (Vec::new(), Vec::new());
    let wanted = |name: &str| {
        arguments.peers.is_empty() || arguments.peers.iter().any(|wanted| wanted == name)
    };
    for (family, names) in PEERS {
        let names: Vec<&str> = names.iter().copied().filter(|name| wanted(name)).collect();
        if names.is_empty() {
            continue;
        }
        eprintln!("installing the peers of peers/{}", family.name());
        match family.install(Role::Bench, target) {
            Ok(program) => {
                peers.extend(names.iter().map(|name| Contender::peer(name, &program)));
            }
            Err(lack) => missing.push(format!("without the peers of {}: {lack}", family.name())),
        }
    }
    let doors = arguments.workloads.iter().any(|workload| matches!(workload, Workload::Doors));
    let measured = |door: &&Door| doors && wanted(&format!("fencelock {}", door.language));
    for door in DOORS.iter().filter(measured) {
        eprintln!("installing fencelock for {}", door.language);
        match door.install(Role::Bench, target) {
            Ok(program) => peers.push(Contender::door(door.language, &program)),
            Err(lack) => missing.push(format!("without {}: {lack}", door.language)),
        }
    }
    (peers, missing)
}
