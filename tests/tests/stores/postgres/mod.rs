//! PostgreSQL as programs use it, and its faults.

mod faults;
mod figures;
mod gate;
mod input;
mod jobs;
mod libraries;
mod model;
mod own_rows;
mod own_table;
mod pooled;
mod rows;
mod session_clauses;
mod session_faults;
mod sessions;
mod standby;
