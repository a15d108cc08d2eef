//! The layer in front of services of all kinds: one story in each file.

#![cfg(test)]

mod support;

mod axum_end_to_end;
mod bodies;
mod collapsing;
mod compression;
mod conditions;
mod failures;
mod fragments;
mod freshness;
mod grpc;
mod invalidation;
mod keys;
mod processes;
mod purging;
mod query;
mod ranges;
mod stale;
mod storing;
mod validation;
mod variants;
