//! What `bench-count` shares with the other benchmarks: keys and values.
//!
//! `bench-count` is a crate of its own because `make test` builds it with the release profile: that takes far less time than to build
//! all that the other benchmarks are made of.

#![forbid(unsafe_code)]

pub mod random;
