//! Exact LRU under a byte cap.

use std::collections::{BTreeMap, HashMap};

use super::Policy;
use crate::trace::Request;

/// Evicts the objects that were used longest ago until the newcomer fits. Refuses objects that are larger than the cap.
#[derive(Debug)]
pub struct Lru {
    cap_bytes: u64,
    used_bytes: u64,
    clock: u64,
    objects: HashMap<u64, (u64, u64)>,
    by_use: BTreeMap<u64, u64>,
}

impl Lru {
    /// An empty cache of `cap_bytes`.
    pub fn new(cap_bytes: u64) -> Self {
        Self { cap_bytes, used_bytes: 0, clock: 0, objects: HashMap::new(), by_use: BTreeMap::new() }
    }

    fn evict_until_fits(&mut self, bytes: u64) {
        while self.used_bytes + bytes > self.cap_bytes {
            let Some((_, key)) = self.by_use.pop_first() else {
                return;
            };
            if let Some((_, evicted_bytes)) = self.objects.remove(&key) {
                self.used_bytes -= evicted_bytes;
            }
        }
    }
}

impl Policy for Lru {
    fn request(&mut self, request: Request) -> bool {
        self.clock += 1;
        if let Some((used, _)) = self.objects.get_mut(&request.key) {
            self.by_use.remove(used);
            *used = self.clock;
            self.by_use.insert(self.clock, request.key);
            return true;
        }
        if request.bytes <= self.cap_bytes {
            self.evict_until_fits(request.bytes);
            self.objects.insert(request.key, (self.clock, request.bytes));
            self.by_use.insert(self.clock, request.key);
            self.used_bytes += request.bytes;
        }
        false
    }
}
