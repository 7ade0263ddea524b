//! Conformance as data: cases in YAML, played by one engine over actors of any language on any backend.

mod ask;
pub mod case;
pub mod cell_step;
mod cells;
mod check;
mod claim;
mod column;
mod command_line;
mod engine;
mod grid;
mod ground;
mod guard_step;
mod incumbent;
mod lacks;
mod leases;
mod outside;
pub mod player;
mod ready;
mod rest;
mod scope;
pub mod step;
mod trouble;
mod world;

pub use column::{Column, columns, neighbours, packages};
pub use grid::Grid;
pub use ground::Backend;
pub use incumbent::Incumbent;
