//! Eyewall for tower: what axum, hyper and tonic services answer, out of a volume that all processes of a machine share.

#![forbid(unsafe_code)]

pub mod layer;

pub use layer::{
    BoxError, CacheLayer, CacheService, CachedBody, KeyParts, PurgeError, Purger, RequestBody, ResponseFuture, Tags,
};

/// Its snippets are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
