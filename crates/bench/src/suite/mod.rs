//! The suite: workloads that are data, measured by procedures, written to a record (bench/METHODOLOGY.md, bench/RECORD.md).
//!
//! A [`definition::Definition`] names a procedure of [`crate::procedure`], its settings, and parameters whose values make cases.
//! A procedure measures a [`cell::Cell`] at a time, with stores
//! that it opens as [`entrant`]s and that take [`turns`]; a [`crate::session::Session`] goes through the cells, and the [`recorder::Recorder`] keeps
//! what each found as soon as it is done.

pub mod cell;
pub mod compare;
pub mod definition;
pub mod driver;
pub mod entrant;
mod figure;
pub mod interrupt;
pub mod machine;
pub mod named;
pub mod progress;
pub mod recorder;
pub mod size;
pub mod turns;
pub mod value;
