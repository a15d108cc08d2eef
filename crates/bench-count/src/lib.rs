//! Keys and values that `bench-count` shares with the other benchmarks.
//!
//! `bench-count` is a crate of its own, since `make test` builds it with the release profile: the other benchmarks would take far
//! longer to build.

#![forbid(unsafe_code)]

pub mod random;
