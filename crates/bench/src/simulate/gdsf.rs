//! Greedy-Dual-Size-Frequency under a byte cap (Cherkasova, 1998): it counts hits per byte, and unused objects age.

use std::collections::{BTreeSet, HashMap};

use super::Policy;
use crate::trace::Request;

#[derive(Debug, Clone, Copy)]
struct Object {
    bytes: u64,
    hits: u64,
    priority: u64,
}

/// Evicts the object with the lowest priority. A use sets the priority to the object's uses per byte, plus the priority
/// of the object that was evicted last. Refuses objects that are larger than the cap.
#[derive(Debug)]
pub struct Gdsf {
    cap_bytes: u64,
    used_bytes: u64,
    /// Priorities are numbers from 0 up. They are stored as their bits, which have the same order.
    age: f64,
    objects: HashMap<u64, Object>,
    by_priority: BTreeSet<(u64, u64)>,
}

impl Gdsf {
    /// An empty cache of `cap_bytes`.
    pub fn new(cap_bytes: u64) -> Self {
        let (objects, by_priority) = (HashMap::new(), BTreeSet::new());
        Self { cap_bytes, used_bytes: 0, age: 0.0, objects, by_priority }
    }

    fn priority(&self, hits: u64, bytes: u64) -> u64 {
        (self.age + hits as f64 / bytes.max(1) as f64).to_bits()
    }

    fn evict_until_fits(&mut self, bytes: u64) {
        while self.used_bytes + bytes > self.cap_bytes {
            let Some((priority, key)) = self.by_priority.pop_first() else {
                return;
            };
            self.age = f64::from_bits(priority);
            if let Some(evicted) = self.objects.remove(&key) {
                self.used_bytes -= evicted.bytes;
            }
        }
    }
}

impl Policy for Gdsf {
    fn request(&mut self, request: Request) -> bool {
        let Request { key, bytes } = request;
        if let Some(mut object) = self.objects.get(&key).copied() {
            self.by_priority.remove(&(object.priority, key));
            object.hits += 1;
            object.priority = self.priority(object.hits, object.bytes);
            self.by_priority.insert((object.priority, key));
            self.objects.insert(key, object);
            return true;
        }
        if bytes <= self.cap_bytes {
            self.evict_until_fits(bytes);
            let priority = self.priority(1, bytes);
            self.objects.insert(key, Object { bytes, hits: 1, priority });
            self.by_priority.insert((priority, key));
            self.used_bytes += bytes;
        }
        false
    }
}
