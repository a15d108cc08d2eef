//! Counts of a replay of requests.

/// Hits of a replay, in objects and in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Hits {
    /// Requests replayed.
    pub requests: u64,
    /// Requests that hit.
    pub hits: u64,
    /// Bytes of all requests.
    pub bytes: u64,
    /// Bytes that hits served.
    pub hit_bytes: u64,
}

impl Hits {
    /// Counts one request.
    pub fn count(&mut self, bytes: u64, hit: bool) {
        self.requests += 1;
        self.bytes += bytes;
        if hit {
            self.hits += 1;
            self.hit_bytes += bytes;
        }
    }

    /// Object hit ratio in percent.
    pub fn object_percent(&self) -> f64 {
        100.0 * self.hits as f64 / self.requests.max(1) as f64
    }

    /// Byte hit ratio in percent.
    pub fn byte_percent(&self) -> f64 {
        100.0 * self.hit_bytes as f64 / self.bytes.max(1) as f64
    }
}
