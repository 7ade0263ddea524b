//! The documentation and the example programs are true: links, tables, shell blocks, and what each program prints.
#![allow(missing_docs)]

mod blocks;
mod book;
mod crashes;
mod programs;
mod seeds;
mod tables;
