//! A reader pins a record while the hand wants its bytes for another one. In every interleaving, a reader with a
//! validated pin reads bytes that nobody overwrites, and the hand overwrites only bytes that nobody can still read.
//!
//! The bytes are loom cells: a write that isn't ordered after a read of another thread fails the model.
#![cfg(test)]
#![cfg(loom)]

mod words;

use std::sync::atomic::Ordering::{Acquire, Relaxed};

use eyewall::protocol::{Word, collect_pins, pin, replace, unpin};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;
use words::{NO_FENCE_BEFORE_SCAN, NO_FENCE_BEHIND_PIN, RELAXED_PIN, RELAXED_UNPIN, Shared, TORN_EXCHANGE, WHOLE};

const EMPTY: u64 = 0;
/// The low bits of a slot count uses. The rest names the record, here by its version.
const FREQUENCY: u64 = 7;

fn slot_of(version: u64) -> u64 {
    version << 8
}

fn version_of(slot: u64) -> u64 {
    slot >> 8
}

fn same_record(now: u64, then: u64) -> bool {
    (now ^ then) & !FREQUENCY == 0
}

/// One slot, the bytes that it names, and a pin for each reader.
struct Volume<const DEFECT: u8> {
    slot: Shared<DEFECT>,
    bytes: UnsafeCell<u64>,
    pins: [Shared<DEFECT>; 2],
}

// SAFETY: loom checks every access to the cell.
unsafe impl<const DEFECT: u8> Sync for Volume<DEFECT> {}
// SAFETY: as above.
unsafe impl<const DEFECT: u8> Send for Volume<DEFECT> {}

impl<const DEFECT: u8> Volume<DEFECT> {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            slot: Shared::new(slot_of(1)),
            bytes: UnsafeCell::new(1),
            pins: [Shared::new(0), Shared::new(0)],
        })
    }

    fn read_bytes(&self) -> u64 {
        // SAFETY: loom fails the model if anybody writes meanwhile.
        self.bytes.with(|bytes| unsafe { *bytes })
    }

    fn write_bytes(&self, value: u64) {
        // SAFETY: loom fails the model if anybody reads or writes meanwhile.
        self.bytes.with_mut(|bytes| unsafe { *bytes = value });
    }

    /// One look-up. Returns the version that was read.
    fn get(&self, reader: usize) -> Option<u64> {
        let seen = self.slot.load(Acquire);
        if seen == EMPTY || !pin(&self.slot, seen, &self.pins[reader], 1, same_record) {
            return None;
        }
        let read = self.read_bytes();
        assert_eq!(read, version_of(seen), "another entry's bytes");
        // Counts a use; it may lose against another thread.
        let _ = self.slot.compare_exchange(seen, seen + 1);
        assert_eq!(self.read_bytes(), read, "bytes changed under a pin");
        unpin(&self.pins[reader]);
        Some(read)
    }

    /// Removes the record from the index, and overwrites its bytes unless somebody holds them.
    fn reuse(&self, version: u64, named: u64) -> bool {
        replace(&self.slot, |_| EMPTY);
        let mut held = false;
        collect_pins(self.pins.iter(), |_| held = true);
        if held {
            return false;
        }
        self.write_bytes(version);
        replace(&self.slot, |_| named);
        true
    }
}

fn readers_and_the_hand<const DEFECT: u8>(preemptions: usize) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.check(|| {
        let volume = Volume::<DEFECT>::new();
        let readers = [0, 1].map(|reader| {
            let volume = volume.clone();
            thread::spawn(move || volume.get(reader))
        });
        // The same place in another lap: the slot's word differs from one that a reader may still have.
        volume.reuse(2, slot_of(2));
        for reader in readers {
            reader.join().unwrap();
        }
    });
}

#[test]
fn a_pinned_reader_reads_bytes_that_stay() {
    readers_and_the_hand::<WHOLE>(3);
}

#[test]
#[should_panic(expected = "")]
fn without_a_fence_behind_the_pin_they_would_not() {
    readers_and_the_hand::<NO_FENCE_BEHIND_PIN>(3);
}

#[test]
#[should_panic(expected = "")]
fn without_a_fence_before_the_scan_they_would_not() {
    readers_and_the_hand::<NO_FENCE_BEFORE_SCAN>(3);
}

#[test]
#[should_panic(expected = "")]
fn without_a_release_when_a_pin_is_given_back_they_would_not() {
    readers_and_the_hand::<RELAXED_UNPIN>(3);
}

/// A reader that was stopped for sixty-four laps finds the same word again, and other bytes behind it. It still
/// holds them. The bytes that it reads then are complete, and its key is compared only now.
#[test]
fn a_slot_that_has_the_same_word_again_still_protects_its_bytes() {
    loom::model(|| {
        let volume = Volume::<WHOLE>::new();
        let reader = {
            let volume = volume.clone();
            thread::spawn(move || {
                let seen = volume.slot.load(Acquire);
                if seen != EMPTY && pin(&volume.slot, seen, &volume.pins[0], 1, same_record) {
                    let first = volume.read_bytes();
                    assert!(first == 1 || first == 2);
                    thread::yield_now();
                    assert_eq!(volume.read_bytes(), first);
                    unpin(&volume.pins[0]);
                }
            })
        };
        volume.reuse(2, slot_of(1));
        reader.join().unwrap();
    });
}

fn uses_and_an_eviction<const DEFECT: u8>() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let slot = Arc::new(Shared::<DEFECT>::new(slot_of(1)));
        let readers = [0, 1].map(|_| {
            let slot = slot.clone();
            thread::spawn(move || {
                let seen = slot.load(Acquire);
                seen != EMPTY && slot.compare_exchange(seen, seen + 1).is_ok()
            })
        });
        let replaced = replace(&*slot, |_| EMPTY);
        assert_eq!(version_of(replaced), 1);
        let counted = readers.map(|reader| reader.join().unwrap()).iter().filter(|counted| **counted).count();
        assert_eq!(slot.load(Relaxed), EMPTY, "a use brought an evicted entry back");
        assert!(counted as u64 == replaced & FREQUENCY, "{counted} uses, {replaced:x} replaced");
    });
}

#[test]
fn an_eviction_that_races_with_uses_happens_and_no_use_undoes_it() {
    uses_and_an_eviction::<WHOLE>();
}

#[test]
#[should_panic(expected = "")]
fn with_a_torn_exchange_it_would_not() {
    uses_and_an_eviction::<TORN_EXCHANGE>();
}

/// A reader goes from one record to the next with the same pin. The hand that finds the second claim there concludes
/// that the first record isn't read any more.
fn a_pin_used_again<const DEFECT: u8>() {
    loom::model(|| {
        let volume = Volume::<DEFECT>::new();
        let other = Arc::new(Shared::<DEFECT>::new(slot_of(7)));
        let reader = {
            let (volume, other) = (volume.clone(), other.clone());
            thread::spawn(move || {
                volume.get(0);
                if pin(&*other, slot_of(7), &volume.pins[0], 2, same_record) {
                    unpin(&volume.pins[0]);
                }
            })
        };
        replace(&volume.slot, |_| EMPTY);
        let mut held = false;
        collect_pins(volume.pins.iter(), |claim| held |= claim == 1);
        if !held {
            volume.write_bytes(2);
        }
        reader.join().unwrap();
    });
}

#[test]
fn the_next_claim_in_a_pin_tells_that_the_last_record_was_read() {
    a_pin_used_again::<WHOLE>();
}

#[test]
#[should_panic(expected = "")]
fn a_claim_without_a_release_would_not() {
    a_pin_used_again::<RELAXED_PIN>();
}

/// One thread reads and drops a hit of another thread, which finds its pin free and uses it again.
fn a_hit_dropped_elsewhere(looks: std::sync::atomic::Ordering) {
    loom::model(move || {
        let volume = Volume::<WHOLE>::new();
        let seen = volume.slot.load(Acquire);
        assert!(pin(&volume.slot, seen, &volume.pins[0], 1, same_record));
        let dropper = {
            let volume = volume.clone();
            thread::spawn(move || {
                volume.read_bytes();
                unpin(&volume.pins[0]);
            })
        };
        let hand = {
            let volume = volume.clone();
            thread::spawn(move || {
                replace(&volume.slot, |_| EMPTY);
                let mut held = false;
                collect_pins(volume.pins.iter(), |claim| held |= claim == 1);
                if !held {
                    volume.write_bytes(2);
                }
            })
        };
        if volume.pins[0].load(looks) == 0 {
            volume.pins[0].store_fenced(2);
            unpin(&volume.pins[0]);
        }
        dropper.join().unwrap();
        hand.join().unwrap();
    });
}

#[test]
fn a_hit_may_be_dropped_by_another_thread_than_the_pins_own() {
    a_hit_dropped_elsewhere(Acquire);
}

#[test]
#[should_panic(expected = "")]
fn a_free_pin_must_be_looked_for_with_an_acquire() {
    a_hit_dropped_elsewhere(Relaxed);
}
