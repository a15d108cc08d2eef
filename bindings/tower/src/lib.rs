//! Eyewall for tower: caches responses of axum, hyper and tonic services in a volume that all processes of a machine share.
//!
//! [`layer`] caches the responses of other services; [`files`] serves folders and files.

#![forbid(unsafe_code)]

pub mod files;
pub mod layer;

pub use files::{ServeDir, ServeFile};
pub use layer::{
    BoxError, CacheLayer, CacheService, CachedBody, Coding, Codings, Compression, KeyParts, PurgeError, Purger,
    RequestBody, ResponseFuture, Tags, TypePattern,
};

/// The snippets of the README are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
