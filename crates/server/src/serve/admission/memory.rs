//! The memory that requests may need together: their half of `memory` of `[server.limits]`. `connections` counts that of connections.
//!
//! It is counted without a limit, too, so that a reload that sets one finds the right number. What counts is the most that a request
//! may need, not what it has: the sum is a bound.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What all workers have given out. The count orders nothing else, so it needs no ordering.
#[derive(Default)]
pub(crate) struct MemoryUse(AtomicU64);

/// Bytes of a request, while it exists.
pub(crate) struct MemoryHeld {
    memory: Arc<MemoryUse>,
    bytes: u64,
}

impl MemoryUse {
    /// Counts the bytes of a request. None if there is no room for them.
    pub(crate) fn request(self: &Arc<Self>, bytes: u64, max: Option<u64>) -> Option<MemoryHeld> {
        let before = self.0.fetch_add(bytes, Ordering::Relaxed);
        let held = MemoryHeld { memory: Arc::clone(self), bytes };
        // Dropping it gives the bytes back.
        max.is_none_or(|max| before + bytes <= max).then_some(held)
    }
}

impl Drop for MemoryHeld {
    fn drop(&mut self) {
        self.memory.0.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ends_makes_room() {
        let memory = Arc::new(MemoryUse::default());
        let first = memory.request(60, Some(100)).unwrap();
        assert!(memory.request(60, Some(100)).is_none());
        let second = memory.request(40, Some(100)).unwrap();
        drop(first);
        assert!(memory.request(61, Some(100)).is_none() && memory.request(60, Some(100)).is_some());
        let unlimited = memory.request(1000, None).unwrap();
        assert!(memory.request(1, Some(100)).is_none(), "a limit counts what began without it");
        drop((second, unlimited));
        assert!(memory.request(100, Some(100)).is_some());
    }
}
