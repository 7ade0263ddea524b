//! The store on a Redis server (6 or newer, or what speaks its protocol), in our own layout.
//!
//! docs/reference/redis.md has the layout. In short: the lock `K` is a string under `fencelock:{tag}:held:K`, the owner id of a mutex or a
//! mark. In a plain dialect it lies under `K` itself, with the dialect's prefix: that is what redis-py, node-redlock, redsync and many others
//! write, so they exclude us and we them. Beside it, in the same hash slot, lies one hash, the record `fencelock:{tag}:lock:K`
//! (`lock/plain:K`), with everything else and an expiry of its own. A string that is neither is a foreign holder. If there is no string, the
//! lock is free.
//!
//! The cost of a script, in commands as the server counts them (`INFO commandstats`), the call itself included:
//!
//! | script | commands |
//! |---|---|
//! | Take, nobody waits | 5: EVALSHA TIME HGET SET HSET; once in ten ttls GET HMGET PEXPIRE more |
//! | Free, nobody waits | 3: EVALSHA GET DEL |
//! | Take that queues | 9: EVALSHA TIME HGET SET (fails) GET HMGET PTTL HSET SET (the mark); the second to wait 8, with an HGET instead of the SETs |
//! | Free that hands over | 9: EVALSHA GET TIME HMGET HGET HDEL PUBLISH HSET SET |
//! | Free with a Take of the same lock behind it, nobody waits | 6: EVALSHA TIME HGET GET HSET SET |
//! | the same, handing over and queueing | 11: EVALSHA TIME HGET GET HMGET HGET HDEL PUBLISH HSET SET; HGET more if others wait |
//! | Renew | 3 for each lock: GET HMGET PEXPIRE; EVALSHA TIME for each 600 locks |
//! | Free in a dialect with a prefix | 3 more where python-redis-lock waits (DEL LPUSH PEXPIRE), 1 where Spring may (PUBLISH) |
//! | Refresh | 6 for each lock: GET HMGET HGET HGET PTTL HSET; EVALSHA TIME for each 600 locks |
//!
//! An answer that is an error has changed nothing: scripts read, and so find what is no lock, before they write; their
//! first write is one that a server which takes none refuses. While memory is short, locks are released, handed over
//! and renewed, but neither taken nor queued for.

mod cell;
mod fault;
mod guarantees;
mod keys;
mod replies;
mod scripts;
mod steps;

// Over connections of our own.
#[cfg(feature = "redis")]
mod address;
#[cfg(feature = "redis")]
mod cluster;
#[cfg(feature = "redis")]
mod connection;
#[cfg(feature = "redis")]
mod gate;
#[cfg(feature = "redis")]
mod node;
#[cfg(feature = "redis")]
mod sentinel;
#[cfg(feature = "redis")]
mod store;

// Over a client of the host's.
#[cfg(feature = "host")]
mod host;

#[cfg(feature = "redis")]
pub use self::gate::RedisGate;
#[cfg(feature = "host")]
pub use self::host::{HostStore, Published, Reply, Subscriber, Transport};
#[cfg(feature = "redis")]
pub use self::store::RedisStore;
