//! ZooKeeper as programs use it, and its faults.

mod cells;
mod curator;
mod ensemble;
mod faults;
mod gate;
mod kazoo;
mod locks;
mod model;
mod sees;
mod tls;
