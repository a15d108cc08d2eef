//! Benchmarks: the workloads, the loops that measure them, and the stores that need no long build.
//!
//! The loops measure a [`store::Store`]; [`contender::Contender`] runs them on it, compiled for its type. A [`session`]
//! goes through the workloads that `bench/workloads` defines, lets a [`procedure`] measure each of their cells, and
//! writes a record for the explorer. [`program`] is the command line of `eyewall-bench`. The program itself is in
//! `eyewall-bench-compare`, with the peers that have heavy dependencies: nothing here depends on them.
//!
//! Each layer uses those before it. [`store`] says what a store must do. The loops ([`reads`], [`traffic`], [`replay`],
//! [`contender`]) work on any store. A [`peer`] is a store by name, and [`stores`] has those that need no long build.
//! Then come the suite, the procedures with their child processes ([`procedure::tasks`]), the session, and the program.
//!
//! No figure is asserted by a test.

#![forbid(unsafe_code)]

pub mod barrier;
pub mod child;
pub mod clock;
pub mod contender;
pub mod error;
pub mod footprint;
pub mod hits;
pub mod load;
pub mod looks;
pub mod machine;
pub mod memory;
pub mod mix;
pub mod peer;
pub mod plain;
pub mod procedure;
pub mod program;
pub mod readers;
pub mod reads;
pub mod replay;
pub mod scratch;
pub mod session;
pub mod simulate;
pub mod spread;
mod start;
pub mod store;
pub mod stores;
pub mod suite;
pub mod touch;
pub mod trace;
pub mod traffic;
pub mod windows;

pub use eyewall_bench_count::random;
