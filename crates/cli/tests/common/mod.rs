//! What the tests share: the `eyewall` binary, a server of it, a client, and origins of their own making.

pub(crate) mod admin;
#[path = "../../../server/tests/common/client.rs"]
pub(crate) mod client;
pub(crate) mod command;
pub(crate) mod film;
pub(crate) mod http2;
#[path = "../../../server/tests/common/origin.rs"]
pub(crate) mod origin;
pub(crate) mod server;
