//! What the tests share: the `eyewall` binary, a server of it, a client, and origins of their own making.

pub(crate) mod admin;
pub(crate) mod client;
pub(crate) mod command;
pub(crate) mod film;
pub(crate) mod http2;
pub(crate) mod origin;
pub(crate) mod server;
