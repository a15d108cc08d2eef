//! Eyewall for tower: what axum, hyper and tonic services answer, out of a volume that all processes of a machine share.
//!
//! [`layer`] caches the responses of other services; [`files`] serves folders and files.

#![forbid(unsafe_code)]

pub mod files;
pub mod layer;

pub use files::{ServeDir, ServeFile};
pub use layer::{
    BoxError, CacheLayer, CacheService, CachedBody, KeyParts, PurgeError, Purger, RequestBody, ResponseFuture, Tags,
};

/// Its snippets are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
