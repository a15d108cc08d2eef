//! S3-FIFO under a byte cap, plain and with size thresholds.

use std::collections::{HashMap, VecDeque};

use super::Policy;
use crate::trace::Request;

/// The settings of an [`S3Fifo`].
#[derive(Debug, Clone, Copy)]
pub struct S3FifoOptions {
    /// Bytes of both queues.
    pub cap_bytes: u64,
    /// The small queue's target, in percent of the cap.
    pub small_percent: u64,
    /// Objects above this size are never admitted.
    pub object_bytes_max: u64,
    /// Whether larger objects need more hits to stay: by their size, divided by the mean of the resident objects.
    pub size_thresholds: bool,
}

impl S3FifoOptions {
    /// S3-FIFO as published: a small queue of a tenth, one hit to stay.
    pub fn plain(cap_bytes: u64) -> Self {
        Self { cap_bytes, small_percent: 10, object_bytes_max: cap_bytes, size_thresholds: false }
    }

    /// Hits needed to stay: 1, 2, 3, 5 at size/mean up to 1, 4, 16, more; objects above cap/16 refused.
    pub fn sized(cap_bytes: u64) -> Self {
        Self { object_bytes_max: cap_bytes / 16, size_thresholds: true, ..Self::plain(cap_bytes) }
    }
}

#[derive(Debug, Clone, Copy)]
struct Object {
    bytes: u64,
    hits: u8,
}

/// New objects enter `small`. Objects that are hit there, or requested again soon after they left, move to `main`. The
/// ghost list remembers as many names as there are resident objects. An object that stays pays with the hits that it
/// needed.
#[derive(Debug)]
pub struct S3Fifo {
    options: S3FifoOptions,
    objects: HashMap<u64, Object>,
    small: VecDeque<u64>,
    main: VecDeque<u64>,
    small_bytes: u64,
    main_bytes: u64,
    /// Maps a name to the stamp of its latest entry in `ghost_order`. Older entries there don't count.
    ghosts: HashMap<u64, u64>,
    ghost_order: VecDeque<(u64, u64)>,
    ghost_stamp: u64,
}

impl S3Fifo {
    /// An empty cache.
    pub fn new(options: S3FifoOptions) -> Self {
        Self {
            options,
            objects: HashMap::new(),
            small: VecDeque::new(),
            main: VecDeque::new(),
            small_bytes: 0,
            main_bytes: 0,
            ghosts: HashMap::new(),
            ghost_order: VecDeque::new(),
            ghost_stamp: 0,
        }
    }

    fn hits_max(&self) -> u8 {
        if self.options.size_thresholds { 7 } else { 3 }
    }

    fn hits_needed(&self, bytes: u64) -> u8 {
        if !self.options.size_thresholds {
            return 1;
        }
        let resident_bytes = self.small_bytes + self.main_bytes;
        let resident = self.objects.len().max(1) as u64;
        // size/mean <= n, without the division: size * resident <= n * resident_bytes.
        let scaled = u128::from(bytes) * u128::from(resident);
        let within = |times: u64| scaled <= u128::from(times) * u128::from(resident_bytes);
        match () {
            () if within(1) => 1,
            () if within(4) => 2,
            () if within(16) => 3,
            () => 5,
        }
    }

    fn evict_one(&mut self) {
        let small_target = self.options.cap_bytes * self.options.small_percent / 100;
        if self.small_bytes > small_target || self.main.is_empty() {
            self.evict_small();
        } else {
            self.evict_main();
        }
    }

    fn evict_small(&mut self) {
        let Some(key) = self.small.pop_front() else {
            return;
        };
        let object = self.objects[&key];
        self.small_bytes -= object.bytes;
        if object.hits >= self.hits_needed(object.bytes) {
            self.enter_main(key, object.bytes);
        } else {
            self.objects.remove(&key);
            self.remember(key);
        }
    }

    fn evict_main(&mut self) {
        let Some(key) = self.main.pop_front() else {
            return;
        };
        let Object { bytes, hits } = self.objects[&key];
        let needed = self.hits_needed(bytes);
        if hits >= needed {
            self.main.push_back(key);
            if let Some(object) = self.objects.get_mut(&key) {
                object.hits -= needed;
            }
        } else {
            self.objects.remove(&key);
            self.main_bytes -= bytes;
        }
    }

    fn enter_main(&mut self, key: u64, bytes: u64) {
        self.main.push_back(key);
        self.main_bytes += bytes;
        self.objects.insert(key, Object { bytes, hits: 0 });
    }

    fn remember(&mut self, key: u64) {
        self.ghost_stamp += 1;
        self.ghosts.insert(key, self.ghost_stamp);
        self.ghost_order.push_back((key, self.ghost_stamp));
        while self.ghosts.len() > self.objects.len().max(1) {
            let Some((oldest, stamp)) = self.ghost_order.pop_front() else {
                return;
            };
            if self.ghosts.get(&oldest) == Some(&stamp) {
                self.ghosts.remove(&oldest);
            }
        }
    }
}

impl Policy for S3Fifo {
    fn request(&mut self, request: Request) -> bool {
        let hits_max = self.hits_max();
        if let Some(object) = self.objects.get_mut(&request.key) {
            object.hits = (object.hits + 1).min(hits_max);
            return true;
        }
        if request.bytes > self.options.object_bytes_max {
            return false;
        }
        while self.small_bytes + self.main_bytes + request.bytes > self.options.cap_bytes {
            self.evict_one();
        }
        if self.ghosts.remove(&request.key).is_some() {
            self.enter_main(request.key, request.bytes);
        } else {
            self.small.push_back(request.key);
            self.small_bytes += request.bytes;
            let object = Object { bytes: request.bytes, hits: 0 };
            self.objects.insert(request.key, object);
        }
        false
    }
}
