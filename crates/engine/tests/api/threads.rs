//! A process has far more threads than its volume has thread slots. Threads without a slot read copies, and write
//! under the lock. When other threads end, their slots are used again.

use std::sync::Barrier;

use eyewall::Options;

use crate::common::{fast_folder, value, version_of};

/// The smallest volume has 64 thread slots.
const THREADS: u32 = 100;

#[test]
fn more_threads_than_thread_slots_read_and_write() {
    let folder = fast_folder();
    let path = folder.path().join("volume");
    let cache = Options::new().size(512 << 10).open(&path).unwrap();
    let everybody = Barrier::new(THREADS as usize);
    let copies: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|number| {
                let (cache, everybody) = (&cache, &everybody);
                scope.spawn(move || {
                    let key = number.to_le_bytes();
                    // Also a large one, which threads with a slot fill outside of the lock.
                    cache.put("large", value(b"large", number, 20_000)).unwrap();
                    // Other threads' large ones may have evicted it before it is held.
                    let hit = loop {
                        cache.put(key, value(&key, 1, 100)).unwrap();
                        if let Some(hit) = cache.get(key).unwrap() {
                            break hit;
                        }
                    };
                    everybody.wait();
                    assert_eq!(version_of(&key, &hit), 1);
                    assert!(cache.get("absent").unwrap().is_none());
                    if let Some(large) = cache.get("large").unwrap() {
                        assert!(version_of(b"large", &large) < THREADS);
                    }
                    everybody.wait();
                    usize::from(hit.is_copy())
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert!(copies >= THREADS as usize - 64, "{copies}");
    let stats = cache.stats().unwrap();
    assert_eq!((stats.threads, stats.pins), (0, 0), "ended threads give their slots back");
    cache.put("one more", "value").unwrap();
    assert!(!cache.get("one more").unwrap().unwrap().is_copy(), "a slot is free again");
    assert_eq!(cache.stats().unwrap().threads, 1);
}
