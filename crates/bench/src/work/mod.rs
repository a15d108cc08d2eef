//! The workloads. Each measures one part of the benchmark and records its rows.

pub mod replay;
