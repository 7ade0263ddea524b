//! Redis over TLS, under sentinels, as a cluster; replicas that acknowledge; failovers under load.

mod acks;
mod cluster;
mod guarded;
mod redisson_cluster;
mod sentinel;
mod tls;
mod transients;
