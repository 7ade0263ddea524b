//! Redis: bad input, faults on a real server, cut connections, what lies there, other clients of it.

mod clock;
mod cuts;
mod eviction;
mod gate;
mod late;
mod layout;
mod neighbours;
mod redisson;
mod redisson_kinds;
mod rights;
mod scenarios;
mod server;
mod votes;
