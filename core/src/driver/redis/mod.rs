//! The store on a Redis server (6 or newer, or what speaks its protocol), in our own layout.
//!
//! The lock `K` is a string under `fencelock:{tag}:held:K`: the owner id as 32 hexadecimal digits, with an expiry. In a plain dialect
//! it lies under `K` itself, with the dialect's prefix: that is what redis-py, node-redlock, redsync and many others write, so they
//! exclude us and we them. Beside it, in the same hash slot, lies one hash, the record `fencelock:{tag}:lock:K` (`lock/plain:K`), with
//! everything else and an expiry of its own:
//!
//! | field | content |
//! |---|---|
//! | `h` | the holder of a mutex, packed: owner id, first token, since when, what it says of itself. Valid while the string is that owner id |
//! | `c` | packed: the counter (the newest token drawn, or the highest floor seen), and until when the record is kept at least; that is negative while somebody waits, shares the lock or has a tombstone, which sends every step the long way; then the version of this layout, 1 |
//! | `q` | the queue: owner ids in order, a comma after each |
//! | `w<owner>` | a ticket, packed: refreshed, passed over, ttl, block, since, mode, limit, permits, channel, info |
//! | `m` | since when the lock is open (`fair: false`) |
//! | `x<owner>`, `b` | tombstones and their ends; when the first of them may be swept |
//!
//! A read-write lock or a semaphore has the mark `fencelock:read-write` or `fencelock:semaphore` there while somebody
//! holds it, and of its record beside the above:
//!
//! | field | content |
//! |---|---|
//! | `k` | the kind it is in use as |
//! | `H` | packed: the farthest end, the longest lease asked for, how many permits are held, the soonest end, the number of buckets, the soonest end in each bucket, then the owner id of the writer |
//! | `H0`, `H1`... | a bucket: owner id, end and number of permits of each of its holds; 64 on average |
//! | `h<owner>` | packed: its token, since when, what it says of itself |
//!
//! On a node of a quorum there are also the field `v` (who is told when the lock is given back, packed: owner id, mode,
//! channel, since, refreshed, info) and one key for all locks, the birth mark `fencelock:born`: the run of the server, and
//! since when it has kept its data. A vote costs a Take and a GET.
//!
//! A string that is neither is a foreign holder. If there is no string, the lock is free.
//!
//! The cost of a script, in commands as the server counts them (`INFO commandstats`), the call itself included:
//!
//! | script | commands |
//! |---|---|
//! | Take, nobody waits | 5: EVALSHA TIME HGET SET HSET; once in ten ttls GET HMGET PEXPIRE more |
//! | Free, nobody waits | 4: EVALSHA GET HGET DEL |
//! | Take that queues | 8: EVALSHA TIME HGET SET (fails) GET HMGET PTTL HSET; the second to wait HGET for SET |
//! | Free that hands over | 10: EVALSHA GET HGET TIME HMGET HGET HDEL PUBLISH HSET SET |
//! | Free with a Take of the same lock behind it, nobody waits | 6: EVALSHA TIME HGET GET HSET SET |
//! | the same, handing over and queueing | 11: EVALSHA TIME HGET GET HMGET HGET HDEL PUBLISH HSET SET; HGET more if others wait |
//! | Renew | 4 for each lock: GET HMGET PTTL PEXPIRE; EVALSHA TIME for each 600 locks |
//! | Free in a dialect with a prefix | 3 more where python-redis-lock waits (DEL LPUSH PEXPIRE), 1 where Spring may (PUBLISH) |
//! | Refresh | 6 for each lock: GET HMGET HGET HGET PTTL HSET; EVALSHA TIME for each 600 locks |
//!
//! An answer that is an error has changed nothing: scripts read, and so find what is no lock, before they write; their
//! first write is one that a server which takes none refuses. While memory is short, locks are released, handed over
//! and renewed, but neither taken nor queued for.

// What is said.
mod assemble;
mod cell;
mod code;
mod constants;
mod eviction;
mod fault;
mod foreign_wake;
mod guarantees;
mod keys;
mod notice;
mod outcome;
mod redisson;
mod renew_batch;
mod request;
mod scan;
mod script;

// Over connections of our own.
#[cfg(feature = "redis")]
mod ack_connection;
#[cfg(feature = "redis")]
mod address;
#[cfg(feature = "redis")]
mod cluster;
#[cfg(feature = "redis")]
mod data_age;
#[cfg(feature = "redis")]
mod gate;
#[cfg(feature = "redis")]
mod link;
#[cfg(feature = "redis")]
mod node;
#[cfg(feature = "redis")]
mod sentinel;
#[cfg(feature = "redis")]
mod server_info;
#[cfg(feature = "redis")]
mod store;
#[cfg(feature = "redis")]
mod wire;

// Over a client of the host's.
#[cfg(feature = "host")]
mod host;
#[cfg(feature = "host")]
mod reply;

#[cfg(feature = "redis")]
pub use self::gate::RedisGate;
#[cfg(feature = "host")]
pub use self::host::{Heard, HostStore, Subscriber, Transport};
#[cfg(feature = "host")]
pub use self::reply::Reply;
#[cfg(feature = "redis")]
pub use self::store::RedisStore;

/// The dialects spoken beside the own layout, by their words.
const DIALECTS: &[&str] = &["plain", "redisson"];
