//! Shared by the tests: the `eyewall` binary, a running server, a client, and origins.

pub(crate) mod admin;
pub(crate) mod authority;
#[allow(dead_code, reason = "the tests of the second level use more of it")]
#[path = "../../../second-level/tests/stores/bucket.rs"]
pub(crate) mod bucket;
#[path = "../../../server/tests/common/client.rs"]
pub(crate) mod client;
pub(crate) mod collector;
pub(crate) mod command;
pub(crate) mod film;
pub(crate) mod http2;
pub(crate) mod http2_origin;
pub(crate) mod https;
pub(crate) mod load;
pub(crate) mod metrics;
#[path = "../../../server/tests/common/origin.rs"]
pub(crate) mod origin;
pub(crate) mod redis;
pub(crate) mod relay;
pub(crate) mod server;
pub(crate) mod upgrading;
