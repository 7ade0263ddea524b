//! etcd as programs use it, and its faults.
#![allow(missing_docs)]

mod cells;
mod cluster;
mod faults;
mod libraries;
mod locks;
mod model;
mod tls;
