//! MySQL and MariaDB as programs use them, and their faults.

mod faults;
mod figures;
mod gate;
mod input;
mod jobs;
mod libraries;
mod model;
mod own_rows;
mod own_table;
mod polling;
mod rows;
mod session_clauses;
mod session_faults;
mod sessions;
