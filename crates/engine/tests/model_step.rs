//! The index makes a step while readers look for keys. In every interleaving, an existing key is found, and nothing
//! is read through bytes that are no longer a slot.
//!
//! There are two buckets with one slot each. With one bucket, it is the first. A split moves the key to the second,
//! and a merge moves it back.
#![cfg(test)]
#![cfg(loom)]

mod words;

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use eyewall::protocol::{Word, collect_pins, is_same_step, make_step, pin, replace, unpin};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;
use words::{NO_FENCE_BEFORE_SCAN, NO_FENCE_BEHIND_PIN, Shared, WHOLE};

const EMPTY: u64 = 0;
/// The word of the steps: how many buckets there are and, above, the steps so far.
const ONE: u64 = 1;
const TWO: u64 = 2;
const STEP: u64 = 1 << 8;

/// What readers do before they follow a slot.
const CAREFUL: bool = true;
const CARELESS: bool = false;

struct Volume<const DEFECT: u8> {
    steps: Shared<DEFECT>,
    buckets: [Shared<DEFECT>; 2],
    pin: Shared<DEFECT>,
    /// A slot that holds n names record n.
    records: [UnsafeCell<u64>; 3],
}

// SAFETY: loom checks every access to the cells.
unsafe impl<const DEFECT: u8> Sync for Volume<DEFECT> {}
// SAFETY: as above.
unsafe impl<const DEFECT: u8> Send for Volume<DEFECT> {}

impl<const DEFECT: u8> Volume<DEFECT> {
    fn new(steps: u64, buckets: [u64; 2]) -> Arc<Self> {
        Arc::new(Self {
            steps: Shared::new(steps),
            buckets: buckets.map(Shared::new),
            pin: Shared::new(0),
            records: [0, 1, 2].map(UnsafeCell::new),
        })
    }

    /// Looks the key up. `None`: it isn't there.
    fn get(&self, is_careful: bool) -> Option<u64> {
        self.get_from(is_careful, |steps| &self.buckets[usize::from(steps % STEP == TWO)..][..1])
    }

    /// The same for a key that has both buckets.
    fn get_of_both(&self, is_careful: bool) -> Option<u64> {
        self.get_from(is_careful, |_| &self.buckets)
    }

    fn get_from<'a>(&'a self, is_careful: bool, buckets: impl Fn(u64) -> &'a [Shared<DEFECT>]) -> Option<u64> {
        loop {
            let steps = self.steps.load(Acquire);
            let is_same = || !is_careful || is_same_step(&self.steps, steps);
            let found = buckets(steps).iter().map(|slot| (slot, slot.load(Acquire))).find(|(_, seen)| *seen != EMPTY);
            let Some((slot, seen)) = found else {
                if is_same() {
                    return None;
                }
                continue;
            };
            if !pin(slot, seen, &self.pin, seen, |now, then| now == then) {
                continue;
            }
            if !is_same() {
                unpin(&self.pin);
                continue;
            }
            // SAFETY: loom fails the model if anybody writes it meanwhile.
            let read = self.records[seen as usize].with(|record| unsafe { *record });
            unpin(&self.pin);
            return Some(read);
        }
    }

    fn write(&self, record: usize, value: u64) {
        // SAFETY: loom fails the model if anybody reads or writes it meanwhile.
        self.records[record].with_mut(|record| unsafe { *record = value });
    }

    fn split(&self) {
        self.buckets[1].store(self.buckets[0].load(Acquire), Release);
        make_step(&self.steps, (self.steps.load(Relaxed) / STEP + 1) * STEP + TWO);
        replace(&self.buckets[0], |_| EMPTY);
    }

    fn merge(&self) {
        replace(&self.buckets[0], |_| self.buckets[1].load(Relaxed));
        make_step(&self.steps, (self.steps.load(Relaxed) / STEP + 1) * STEP + ONE);
        replace(&self.buckets[1], |_| EMPTY);
    }

    /// Moves the entry to its other bucket.
    fn displace(&self) {
        self.buckets[0].store(self.buckets[1].load(Acquire), Release);
        make_step(&self.steps, self.steps.load(Relaxed) + STEP);
        replace(&self.buckets[1], |_| EMPTY);
    }

    /// Overwrites the entry, and uses its bytes again unless somebody holds them.
    fn overwrite(&self, bucket: usize) {
        let old = replace(&self.buckets[bucket], |_| 2);
        let mut is_held = false;
        collect_pins([&self.pin].into_iter(), |claim| is_held |= claim == old);
        if !is_held {
            self.write(old as usize, 7);
        }
    }
}

fn model(check: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(check);
}

/// A reader beside the holder of the stripe's lock.
fn beside<const DEFECT: u8>(
    is_careful: bool,
    steps: u64,
    buckets: [u64; 2],
    act: impl Fn(&Volume<DEFECT>) + Sync + Send + Copy + 'static,
) {
    beside_reader(move |volume| volume.get(is_careful), steps, buckets, act);
}

fn beside_reader<const DEFECT: u8>(
    get: impl Fn(&Volume<DEFECT>) -> Option<u64> + Sync + Send + Copy + 'static,
    steps: u64,
    buckets: [u64; 2],
    act: impl Fn(&Volume<DEFECT>) + Sync + Send + Copy + 'static,
) {
    model(move || {
        let volume = Volume::<DEFECT>::new(steps, buckets);
        let reader = {
            let volume = volume.clone();
            thread::spawn(move || get(&volume))
        };
        act(&volume);
        let read = reader.join().unwrap().expect("a false miss");
        assert!(read == 1 || read == 2, "bytes of no record");
    });
}

fn split_and_overwrite<const DEFECT: u8>(is_careful: bool) {
    beside::<DEFECT>(is_careful, ONE, [1, EMPTY], |volume| {
        volume.split();
        volume.overwrite(1);
    });
}

#[test]
fn a_key_that_a_split_moves_is_found_and_its_bytes_stay_while_they_are_read() {
    split_and_overwrite::<WHOLE>(CAREFUL);
}

#[test]
#[should_panic(expected = "a false miss")]
fn without_a_second_look_at_the_steps_a_split_would_hide_it() {
    split_and_overwrite::<WHOLE>(CARELESS);
}

#[test]
#[should_panic(expected = "")]
fn without_a_fence_behind_the_pin_its_bytes_would_not_stay() {
    split_and_overwrite::<NO_FENCE_BEHIND_PIN>(CAREFUL);
}

/// The bytes of the merged bucket are used again. The new bytes look like a slot, and name bytes that are being
/// written.
fn merge_and_reuse<const DEFECT: u8>(is_careful: bool) {
    beside::<DEFECT>(is_careful, STEP + TWO, [EMPTY, 1], |volume| {
        volume.merge();
        volume.buckets[1].store(2, Relaxed);
        volume.write(2, 7);
    });
}

#[test]
fn a_former_bucket_names_nothing() {
    merge_and_reuse::<WHOLE>(CAREFUL);
}

#[test]
#[should_panic(expected = "")]
fn without_a_second_look_at_the_steps_it_would() {
    merge_and_reuse::<WHOLE>(CARELESS);
}

#[test]
#[should_panic(expected = "")]
fn without_a_fence_behind_the_step_it_would() {
    merge_and_reuse::<NO_FENCE_BEFORE_SCAN>(CAREFUL);
}

/// The count of buckets is the same before and after two steps, but the word isn't.
#[test]
fn a_split_and_a_merge_hide_nothing() {
    beside::<WHOLE>(CAREFUL, ONE, [1, EMPTY], |volume| {
        volume.split();
        volume.merge();
    });
}

/// Somebody died after a split's word, so the key's slot is still in both buckets. The repair clears the first one,
/// and work continues.
#[test]
fn a_death_in_a_split_hides_nothing_and_leaves_nothing() {
    beside::<WHOLE>(CAREFUL, STEP + TWO, [1, 1], |volume| {
        replace(&volume.buckets[0], |_| EMPTY);
        volume.overwrite(1);
        volume.merge();
    });
}

/// Somebody died in a merge before its word. The same holds, and the merge is made again.
#[test]
fn a_death_in_a_merge_hides_nothing() {
    beside::<WHOLE>(CAREFUL, STEP + TWO, [1, 1], |volume| {
        replace(&volume.buckets[0], |_| EMPTY);
        volume.merge();
        volume.overwrite(0);
    });
}

/// The entry moves from the bucket that is looked at last to the one that was looked at first.
fn displace_and_overwrite(is_careful: bool) {
    beside_reader::<WHOLE>(
        move |volume| volume.get_of_both(is_careful),
        TWO,
        [EMPTY, 1],
        |volume| {
            volume.displace();
            volume.overwrite(0);
        },
    );
}

#[test]
fn a_key_that_goes_to_its_other_bucket_is_found_and_its_bytes_stay_while_they_are_read() {
    displace_and_overwrite(CAREFUL);
}

#[test]
#[should_panic(expected = "a false miss")]
fn without_a_second_look_at_the_steps_it_would_be_missed() {
    displace_and_overwrite(CARELESS);
}
