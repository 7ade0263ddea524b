//! etcd as programs use it, and its faults.

mod cells;
mod cluster;
mod faults;
mod libraries;
mod locks;
mod model;
mod tls;
