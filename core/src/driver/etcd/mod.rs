//! Locks on an etcd cluster: an entry queue over its v3 API.
//!
//! A session is a lease of etcd's. An entry is a key `<prefix><name>/<owner id>` that belongs to that lease. Its rank and first
//! fence are the revision that made it, so etcd's own clients (`etcdctl lock`, the `concurrency` package, the lock service) and
//! fencelock exclude each other under one name. What ends a lease ends all its keys at once.
//!
//! | key | lives with | is |
//! |---|---|---|
//! | `<prefix><name>/<owner id>` | the session | an entry: its mode in the first line, who asks in the second |
//! | `<prefix>!session!<lease>` | the session | what each call compares with, so that none acts for a session that has ended |
//! | `<prefix>!version!<name>`, `<prefix>!job!<name>` | itself, or a lease of its end | a value with its version; the last run of a job |
//! | `<prefix>!left!<owner id>` | the session | an owner id whose join makes no entry |
//!
//! `link` keeps one connection to one of the members, `watches` one stream of watches, `steps` has the calls.

mod address;
mod cells;
mod fault;
mod guarantees;
mod layout;
mod link;
mod message;
mod steps;
mod store;
mod watches;

pub use self::store::EtcdStore;
