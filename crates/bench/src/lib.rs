//! The engine's benchmark: workloads, a recorder, and the peers that cost nothing to build.
//!
//! Peers with heavy dependencies, and the program `bench-engine`, live in `eyewall-bench-compare`.

pub mod error;
pub mod machine;
pub mod random;
pub mod record;
pub mod report;
pub mod run;
pub mod simulate;
pub mod trace;
pub mod work;
