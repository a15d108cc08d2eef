//! What a cache of HTTP responses needs beside the rules of `eyewall-http`, whoever is asked for what isn't there: an origin, by
//! `eyewall serve`, or a service of the same process, by `eyewall-tower`.
//!
//! | module | what it knows |
//! |---|---|
//! | [`collapsing`] | who asks for what many want at once, and who waits for that |
//! | [`recent_purges`] | what was purged by its address while it was asked for |
//! | [`blocking`] | whether an event loop may write to the volume by itself |
//!
//! No HTTP, no sockets: what an answer is, its user says.

#![forbid(unsafe_code)]

pub mod blocking;
pub mod collapsing;
pub mod recent_purges;
