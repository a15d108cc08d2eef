//! The suite: workloads that are data, measured by procedures, written to a record (bench/METHODOLOGY.md, bench/RECORD.md).
//!
//! A [`definition::Definition`] names a procedure of [`crate::procedure`], its settings, and parameters whose values
//! make cases. A procedure measures one [`cell::Cell`] at a time. It opens the stores as [`entrant`]s, which take
//! [`turns`]. A [`crate::session::Session`] goes through the cells, and the [`recorder::Recorder`] saves the results of
//! each cell as soon as it is done.

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
