//! The connection by which a request came.

use std::net::IpAddr;
use std::sync::Arc;

use super::listen::FileQueue;
use crate::key::Scheme;

/// What a connection says about its requests.
#[derive(Debug, Clone)]
pub(crate) struct Arrival {
    pub(crate) client: IpAddr,
    pub(crate) scheme: Scheme,
    /// The host that the client named in its TLS handshake (SNI), in lower case.
    pub(crate) server_name: Option<Arc<str>>,
    /// The files that it has to send, if the kernel can send them itself.
    pub(crate) files: Option<Arc<FileQueue>>,
}

impl Arrival {
    /// A connection without TLS.
    pub(crate) fn clear(client: IpAddr) -> Self {
        Self { client, scheme: Scheme::Http, server_name: None, files: None }
    }
}
