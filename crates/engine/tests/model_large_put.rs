//! A large entry is filled outside of the stripe's lock. Its writer has pinned it before it releases the lock. So the
//! hand, which may come by meanwhile, doesn't give the bytes away.
#![cfg(test)]
#![cfg(loom)]

mod words;

use std::sync::atomic::Ordering::Relaxed;

use eyewall::protocol::{Word, collect_pins, replace, try_lock, unlock, unpin};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;
use words::{Lock, Shared, WHOLE};

struct Stripe {
    lock: Lock<false>,
    /// Whether the record has become part of the log. Changed under the lock.
    in_log: UnsafeCell<bool>,
    slot: Shared<WHOLE>,
    pin: Shared<WHOLE>,
    bytes: UnsafeCell<u64>,
}

// SAFETY: loom checks every access to the cells.
unsafe impl Sync for Stripe {}
// SAFETY: as above.
unsafe impl Send for Stripe {}

impl Stripe {
    fn acquire(&self, me: u32) {
        while try_lock(&self.lock, me).is_err() {
            thread::yield_now();
        }
    }

    fn write(&self, value: u64) {
        // SAFETY: loom fails the model if anybody else accesses it.
        self.bytes.with_mut(|bytes| unsafe { *bytes = value });
    }

    fn is_in_log(&self) -> bool {
        // SAFETY: as above.
        self.in_log.with(|in_log| unsafe { *in_log })
    }

    fn set_in_log(&self, yes: bool) {
        // SAFETY: as above.
        self.in_log.with_mut(|in_log| unsafe { *in_log = yes });
    }
}

fn a_large_put_and_the_hand(pins_in_time: bool) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(move || {
        let stripe = Arc::new(Stripe {
            lock: Lock::new(0),
            in_log: UnsafeCell::new(false),
            slot: Shared::new(0),
            pin: Shared::new(0),
            bytes: UnsafeCell::new(0),
        });
        let writer = {
            let stripe = stripe.clone();
            thread::spawn(move || {
                stripe.acquire(1);
                if pins_in_time {
                    stripe.pin.store_fenced(1);
                }
                stripe.set_in_log(true);
                unlock(&stripe.lock);
                if !pins_in_time {
                    stripe.pin.store_fenced(1);
                }
                stripe.write(1);
                stripe.acquire(1);
                replace(&stripe.slot, |_| 1);
                unpin(&stripe.pin);
                unlock(&stripe.lock);
            })
        };
        stripe.acquire(2);
        if stripe.is_in_log() {
            replace(&stripe.slot, |_| 0);
            let mut held = false;
            collect_pins(std::iter::once(&stripe.pin), |_| held = true);
            if !held {
                stripe.set_in_log(false);
                stripe.write(2);
            }
        }
        unlock(&stripe.lock);
        writer.join().unwrap();
        if stripe.slot.load(Relaxed) == 1 {
            // SAFETY: everybody else is done.
            assert_eq!(stripe.bytes.with(|bytes| unsafe { *bytes }), 1, "a live slot names given-away bytes");
        }
    });
}

#[test]
fn the_bytes_of_a_put_under_way_are_not_given_away() {
    a_large_put_and_the_hand(true);
}

#[test]
#[should_panic(expected = "")]
fn a_pin_that_comes_after_the_lock_would_be_too_late() {
    a_large_put_and_the_hand(false);
}
