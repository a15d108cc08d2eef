//! Processes lock a stripe, wait, die with the lock, and take it over. There is one holder at a time, nobody sleeps
//! forever beside a free lock, and only a dead holder loses its lock, once.
//!
//! The futex is modelled by a bucket lock and a condition: a thread compares the word under the bucket lock before it
//! sleeps.
#![cfg(test)]
#![cfg(loom)]

mod words;

// Not loom's Arc, which panics a second time if a model ends in a deadlock.
use std::sync::Arc;

use eyewall::protocol::{HalfWord, WAITERS, take_over, try_lock, unlock};
use loom::cell::UnsafeCell;
use loom::sync::{Condvar, Mutex};
use loom::thread;
use words::Lock;

struct Stripe<const RELAXED: bool> {
    lock: Lock<RELAXED>,
    bucket: Mutex<()>,
    woken: Condvar,
    /// What the lock protects.
    state: UnsafeCell<u32>,
}

// SAFETY: loom checks every access to the cell.
unsafe impl<const RELAXED: bool> Sync for Stripe<RELAXED> {}
// SAFETY: as above.
unsafe impl<const RELAXED: bool> Send for Stripe<RELAXED> {}

impl<const RELAXED: bool> Stripe<RELAXED> {
    fn new(word: u32) -> Arc<Self> {
        Arc::new(Self {
            lock: Lock::new(word),
            bucket: Mutex::new(()),
            woken: Condvar::new(),
            state: UnsafeCell::new(0),
        })
    }

    /// As the engine does it, except that nobody is dead and no sleep ends by itself.
    fn acquire(&self, me: u32, after_sleep: u32) {
        if try_lock(&self.lock, me).is_ok() {
            return;
        }
        loop {
            let Err(word) = try_lock(&self.lock, me | after_sleep) else { return };
            let asleep = word | WAITERS;
            if word != asleep && self.lock.compare_exchange(word, asleep).is_err() {
                continue;
            }
            let bucket = self.bucket.lock().unwrap();
            if self.lock.load() == asleep {
                drop(self.woken.wait(bucket).unwrap());
            }
        }
    }

    fn release(&self) {
        if unlock(&self.lock) {
            let _bucket = self.bucket.lock().unwrap();
            self.woken.notify_one();
        }
    }

    fn change(&self) {
        // SAFETY: loom fails the model if two threads are here without an order between them.
        self.state.with_mut(|state| unsafe { *state += 1 });
    }

    fn state(&self) -> u32 {
        // SAFETY: as above.
        self.state.with(|state| unsafe { *state })
    }
}

/// `others` and this thread change the state once each.
fn contenders<const RELAXED: bool>(others: u32, after_sleep: u32, preemptions: usize) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.check(move || {
        let stripe = Stripe::<RELAXED>::new(0);
        let threads: Vec<_> = (2..others + 2)
            .map(|me| {
                let stripe = stripe.clone();
                thread::spawn(move || {
                    stripe.acquire(me, after_sleep);
                    stripe.change();
                    stripe.release();
                })
            })
            .collect();
        stripe.acquire(1, after_sleep);
        stripe.change();
        stripe.release();
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(stripe.state(), others + 1);
        assert_eq!(stripe.lock.load(), 0);
    });
}

#[test]
fn one_holds_the_lock_at_a_time() {
    contenders::<false>(1, WAITERS, 4);
}

#[test]
fn nobody_sleeps_forever_beside_a_free_lock() {
    contenders::<false>(2, WAITERS, 3);
}

#[test]
#[should_panic(expected = "")]
fn a_lock_that_orders_nothing_would_let_two_in() {
    contenders::<true>(1, WAITERS, 4);
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_sleeper_that_forgets_the_others_would_leave_one_asleep() {
    contenders::<false>(2, 0, 3);
}

#[test]
fn of_two_that_take_over_from_a_dead_holder_one_succeeds() {
    const DEAD: u32 = 9 | WAITERS;
    loom::model(|| {
        let stripe = Stripe::<false>::new(DEAD);
        let waiters = [1, 2].map(|me| {
            let stripe = stripe.clone();
            thread::spawn(move || {
                // Both have probed the holder and found it dead.
                let mine = take_over(&stripe.lock, DEAD, me);
                if mine {
                    stripe.change();
                    assert!(unlock(&stripe.lock), "a thread that waits for the new holder is woken");
                }
                mine
            })
        });
        let successes = waiters.map(|waiter| waiter.join().unwrap());
        assert_eq!(successes.iter().filter(|mine| **mine).count(), 1);
        assert_eq!((stripe.state(), stripe.lock.load()), (1, 0));
    });
}

#[test]
fn nobody_takes_over_from_a_holder_that_came_after_the_dead_one() {
    const DEAD: u32 = 9 | WAITERS;
    loom::model(|| {
        let stripe = Stripe::<false>::new(DEAD);
        let late = {
            let stripe = stripe.clone();
            thread::spawn(move || {
                let probed = stripe.lock.load();
                if probed == DEAD && take_over(&stripe.lock, probed, 2) {
                    stripe.change();
                    unlock(&stripe.lock);
                }
            })
        };
        if take_over(&stripe.lock, DEAD, 1) {
            stripe.change();
            unlock(&stripe.lock);
            // Take it again, as a living holder.
            if try_lock(&stripe.lock, 1).is_ok() {
                stripe.change();
                unlock(&stripe.lock);
            }
        }
        late.join().unwrap();
        assert_eq!(stripe.lock.load(), 0);
    });
}
