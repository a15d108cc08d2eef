//! The rules of a shared HTTP cache, as functions of messages and times.

#![forbid(unsafe_code)]

pub mod age;
pub mod field;
pub mod freshness;
pub mod message;
pub mod policy;
pub mod reuse;
pub mod selecting;
pub mod storing;
pub mod terms;
pub mod validation;
