//! The fields of the requests that a connection waits for, over HTTP/2.
//!
//! Each head is limited (`header_bytes`), but a connection may wait for a hundred requests. So all of them together are limited,
//! too. Fields that the client names by HPACK's table count as if they were sent: their bytes are shared, but not what is made of them.

use std::sync::Arc;

use http::HeaderMap;

use super::connection_state::ConnectionState;

/// How many heads of the largest size a connection may wait for. Browsers send a hundred requests with a few kilobytes each.
const LARGEST_MAX: u64 = 16;
/// The memory of a field beside its name and value; `SETTINGS_MAX_HEADER_LIST_SIZE` counts the same (RFC 9113, section 6.5.2).
const FIELD_BYTES: usize = 32;

/// The counted fields of a request without an answer.
pub(super) struct HeadBytes {
    connection: Arc<ConnectionState>,
    bytes: usize,
}

impl HeadBytes {
    pub(super) fn count(connection: &Arc<ConnectionState>, fields: &HeaderMap) -> Self {
        let bytes = fields.iter().map(|(name, value)| name.as_str().len() + value.len() + FIELD_BYTES).sum();
        connection.count_head(bytes);
        Self { connection: Arc::clone(connection), bytes }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes as u64
    }

    /// Whether the connection waits for more than it may.
    pub(super) fn is_over(&self, head_bytes_max: u64) -> bool {
        self.connection.head_bytes() as u64 > LARGEST_MAX * head_bytes_max
    }
}

impl Drop for HeadBytes {
    fn drop(&mut self) {
        self.connection.uncount_head(self.bytes);
    }
}
