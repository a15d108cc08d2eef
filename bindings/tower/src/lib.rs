//! Eyewall for tower: what axum, hyper and tonic services answer, out of a volume that all processes of a machine share.
//!
//! [`files`] serves folders and files: [`ServeDir`] and [`ServeFile`].

#![forbid(unsafe_code)]

pub mod files;

pub use files::{ServeDir, ServeFile};
