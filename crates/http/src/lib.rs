//! The rules of a shared HTTP cache, as functions of messages and times.

#![forbid(unsafe_code)]

pub mod age;
pub mod field;
pub mod freshness;
pub mod invalidation;
pub mod message;
pub mod partial;
pub mod policy;
pub mod precondition;
pub mod ranges;
pub mod reuse;
pub mod selecting;
pub mod storing;
pub mod strong;
pub mod terms;
pub mod update;
pub mod validation;
