//! Locks on a ZooKeeper ensemble: an entry queue of ephemeral nodes, laid out as Apache Curator lays them out.
//!
//! An entry is a child of the lock's node, made by the server with a number at its end and removed by it when the session ends.
//! Its rank is that number. Its fence is the number of the change that made it, which rises over all nodes.
//!
//! | node | is |
//! |---|---|
//! | `<chroot>/<name>` | a container: the server removes it when it is empty |
//! | `<name>/_c_<owner id>-lock-<number>` | an entry of a mutex |
//! | `<name>/_c_<owner id>-__READ__<number>`, `-__WRIT__<number>` | a reader or writer |
//! | `<name>/leases/_c_<owner id>-lease-<number>` | a permit |
//! | `<chroot>/%cells` | a node that stays; its version counts the removals of values that have ended |
//! | `%cells/<two digits>` | a container for the values whose names have this remainder |
//! | `%cells/<two digits>/version:<name>`, `job:<name>` | a value with its version; the last run of a job |
//!
//! `session` keeps a connection for each session, `steps` and `watches` have the calls, `places` compares the numbers, `cells` keeps
//! values and `sweep` removes those that have ended. With TLS `relay` leads the client library to the members.

mod address;
mod cells;
mod fault;
mod guarantees;
mod layout;
mod places;
mod relay;
mod session;
mod steps;
mod store;
mod watches;

pub use self::store::ZookeeperStore;
