//! Benchmarks: what is measured, how, and the peers that cost nothing to build.
//!
//! A [`store::Store`] is anything that is measured; [`contender::Contender`] runs the timed loops on it, compiled for its type. Two
//! programs measure by that. Both live in `eyewall-bench-compare`, with the peers that have heavy dependencies: nothing here depends
//! on them.
//!
//! - `eyewall-bench`, which is [`program`]: the [`suite`] goes through the workloads that `bench/workloads` defines, lets a
//!   [`procedure`] measure each of their cells, and writes a record for the explorer.
//! - `bench-engine`: what only the engine has, and puts. The modules of [`work`] say what is done and against which bar; a
//!   [`run::Run`] collects their rows.
//!
//! No figure is asserted by a test.

#![forbid(unsafe_code)]

pub mod barrier;
pub mod child;
pub mod clock;
pub mod contender;
pub mod error;
pub mod load;
pub mod looks;
pub mod machine;
pub mod memory;
pub mod mix;
pub mod procedure;
pub mod program;
pub mod readers;
pub mod reads;
pub mod record;
pub mod replay;
pub mod report;
pub mod run;
pub mod scratch;
pub mod simulate;
pub mod store;
pub mod suite;
pub mod touch;
pub mod trace;
pub mod traffic;
pub mod windows;
pub mod work;

pub use eyewall_bench_count::random;
