//! A writer fills a record and stores its slot. A reader that finds the slot finds every byte. An overwrite is one
//! exchange, so a reader never misses a key that is there all the time.
#![cfg(test)]
#![cfg(loom)]

mod words;

use std::sync::atomic::Ordering::{Acquire, Relaxed};

use eyewall::protocol::{Word, pin, replace, unpin};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;
use words::{RELAXED_EXCHANGE, Shared, WHOLE};

/// A slot that names one of two records, and a reader's pin.
struct Volume<const DEFECT: u8> {
    slot: Shared<DEFECT>,
    pin: Shared<DEFECT>,
    records: [[UnsafeCell<u64>; 2]; 2],
}

// SAFETY: loom checks every access to the cells.
unsafe impl<const DEFECT: u8> Sync for Volume<DEFECT> {}
// SAFETY: as above.
unsafe impl<const DEFECT: u8> Send for Volume<DEFECT> {}

impl<const DEFECT: u8> Volume<DEFECT> {
    /// The first record is live if `slot` is 1.
    fn new(slot: u64) -> Arc<Self> {
        let record = || [UnsafeCell::new(slot), UnsafeCell::new(slot)];
        Arc::new(Self { slot: Shared::new(slot), pin: Shared::new(0), records: [record(), record()] })
    }

    fn write(&self, record: usize, value: u64) {
        for word in &self.records[record] {
            // SAFETY: loom fails the model if anybody reads it meanwhile.
            word.with_mut(|word| unsafe { *word = value });
        }
    }

    fn publish(&self, record: u64) {
        // As the engine, which looks the key up first. (Loom counts time by such steps. Otherwise it would treat
        // writes before a thread's first step as older than the thread.)
        self.slot.load(Relaxed);
        self.write(record as usize - 1, record);
        replace(&self.slot, |_| record);
    }

    /// Looks up until the claim holds. `None`: there is no entry.
    fn get(&self) -> Option<u64> {
        loop {
            let seen = self.slot.load(Acquire);
            if seen == 0 {
                return None;
            }
            if !pin(&self.slot, seen, &self.pin, seen, |now, then| now == then) {
                continue;
            }
            for word in &self.records[seen as usize - 1] {
                // SAFETY: loom fails the model if anybody writes it meanwhile.
                assert_eq!(word.with(|word| unsafe { *word }), seen, "half a record");
            }
            unpin(&self.pin);
            return Some(seen);
        }
    }
}

fn a_first_put<const DEFECT: u8>() {
    loom::model(|| {
        let volume = Volume::<DEFECT>::new(0);
        let writer = {
            let volume = volume.clone();
            thread::spawn(move || volume.publish(1))
        };
        assert!(matches!(volume.get(), None | Some(1)));
        writer.join().unwrap();
        assert_eq!(volume.get(), Some(1));
    });
}

fn an_overwrite<const DEFECT: u8>() {
    loom::model(|| {
        let volume = Volume::<DEFECT>::new(1);
        let writer = {
            let volume = volume.clone();
            thread::spawn(move || volume.publish(2))
        };
        assert!(volume.get().is_some(), "a false miss");
        writer.join().unwrap();
        assert_eq!(volume.get(), Some(2));
    });
}

#[test]
fn a_reader_that_sees_the_slot_sees_the_bytes() {
    a_first_put::<WHOLE>();
}

#[test]
#[should_panic(expected = "")]
fn without_a_release_it_would_see_some() {
    a_first_put::<RELAXED_EXCHANGE>();
}

#[test]
fn an_overwritten_key_is_never_missed() {
    an_overwrite::<WHOLE>();
}

#[test]
#[should_panic(expected = "")]
fn an_overwrite_without_a_release_would_show_half_a_record() {
    an_overwrite::<RELAXED_EXCHANGE>();
}
