//! The engine's benchmark: workloads, a recorder, and the peers that cost nothing to build.
//!
//! A [`store::Store`] is anything that is measured; [`contender::Contender`] runs the timed loops on it, compiled for
//! its type. The [`work`] modules say what is done, in what order and against which bar; a [`run::Run`] collects their
//! rows and writes the record. Peers with heavy dependencies, and the program `bench-engine`, live in
//! `eyewall-bench-compare`: nothing here depends on them.
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
pub mod random;
pub mod reads;
pub mod record;
pub mod replay;
pub mod report;
pub mod run;
pub mod simulate;
pub mod store;
pub mod suite;
pub mod touch;
pub mod trace;
pub mod traffic;
pub mod windows;
pub mod work;
