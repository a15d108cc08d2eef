//! An entry is followed while it is written. A follower reads what its writer wrote, wherever the room has moved,
//! whatever the hand frees of dead writers, and whichever thread has the claim afterwards. No follower sleeps through the
//! writer's last step.
#![cfg(test)]
#![cfg(loom)]

mod words;

use std::sync::atomic::Ordering::{self, Acquire, Relaxed, Release};

use eyewall::protocol::{Glimpse, Progress, Word, collect_pins, fall_asleep, follow, signal, try_lock, unlock, unpin};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;
use words::{Lock, Shared, WHOLE};

const PROMISE: u64 = 77;

struct Stage {
    room: Shared<WHOLE>,
    bytes: Shared<WHOLE>,
    promise: Shared<WHOLE>,
    signal: Lock<false>,
    lock: Lock<false>,
    writers_pin: Shared<WHOLE>,
    followers_pin: Shared<WHOLE>,
    /// Two rooms, of two bytes.
    rooms: [[UnsafeCell<u64>; 2]; 2],
}

// SAFETY: loom checks every access to the cells.
unsafe impl Sync for Stage {}
// SAFETY: as above.
unsafe impl Send for Stage {}

impl Stage {
    /// The first byte is in room 1, which the claim names.
    fn new() -> Self {
        let stage = Self {
            room: Shared::new(1),
            bytes: Shared::new(1),
            promise: Shared::new(PROMISE),
            signal: Lock::new(0),
            lock: Lock::new(0),
            writers_pin: Shared::new(1),
            followers_pin: Shared::new(0),
            rooms: std::array::from_fn(|_| std::array::from_fn(|_| UnsafeCell::new(0))),
        };
        stage.write(1, 0, 10);
        stage
    }

    fn progress(&self) -> Progress<'_, Shared<WHOLE>, Lock<false>> {
        Progress { room: &self.room, bytes: &self.bytes, promise: &self.promise, signal: &self.signal }
    }

    fn write(&self, room: u64, byte: u64, value: u64) {
        // SAFETY: loom fails the model if anybody else accesses it.
        self.rooms[room as usize - 1][byte as usize].with_mut(|cell| unsafe { *cell = value });
    }

    fn read(&self, room: u64, byte: u64) -> u64 {
        // SAFETY: as above.
        self.rooms[room as usize - 1][byte as usize].with(|cell| unsafe { *cell })
    }

    fn acquire(&self, me: u32) {
        while try_lock(&self.lock, me).is_err() {
            thread::yield_now();
        }
    }

    /// A follower's look, and its reads of all that it may read.
    fn look(&self) -> Glimpse {
        let glimpse = follow(&self.progress(), PROMISE, &self.followers_pin, 0);
        if let Glimpse::Room(room, bytes) = glimpse {
            for byte in 0..bytes {
                assert_eq!(self.read(room, byte), 10 + byte, "a byte that its writer hasn't written");
            }
            unpin(&self.followers_pin);
        }
        glimpse
    }

    /// The hand frees room 1 if nobody holds it, and gives its bytes to others.
    fn free_room(&self, forgets: bool) {
        self.acquire(2);
        // What the hand knows before it begins: it doesn't touch a living writer's room.
        if self.writers_pin.load(Acquire) != 1 {
            if forgets && self.room.load(Acquire) == 1 {
                self.room.store(0, Release);
            }
            let mut held = false;
            collect_pins([&self.followers_pin, &self.writers_pin].into_iter(), |claim| held |= claim == 1);
            if !held {
                self.write(1, 0, 99);
                self.write(1, 1, 99);
            }
        }
        unlock(&self.lock);
    }
}

fn check(run: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(run);
}

/// Another thread at the same stage.
fn beside<T: 'static>(stage: &Arc<Stage>, work: impl FnOnce(&Stage) -> T + 'static) -> thread::JoinHandle<T> {
    let stage = stage.clone();
    thread::spawn(move || work(&stage))
}

/// The writer is dead and buried, but its claim still names the room.
fn the_hand_and_the_room_of_a_dead_writer(forgets: bool) {
    check(move || {
        let stage = Arc::new(Stage::new());
        unpin(&stage.writers_pin);
        let follower = beside(&stage, Stage::look);
        stage.free_room(forgets);
        follower.join().unwrap();
    });
}

#[test]
fn the_room_of_a_dead_writer_is_read_or_freed_but_not_both() {
    the_hand_and_the_room_of_a_dead_writer(true);
}

#[test]
#[should_panic(expected = "")]
fn a_claim_that_goes_on_naming_it_would_lead_followers_to_the_bytes_of_others() {
    the_hand_and_the_room_of_a_dead_writer(false);
}

/// The writer moves to room 2 and writes on, while the hand frees room 1.
fn a_move(progress: Ordering) {
    check(move || {
        let stage = Arc::new(Stage::new());
        let writer = beside(&stage, move |stage| {
            stage.write(2, 0, stage.read(1, 0));
            stage.acquire(1);
            stage.room.store(2, Release);
            stage.writers_pin.store(2, Release);
            unlock(&stage.lock);
            stage.write(2, 1, 11);
            stage.bytes.store(2, progress);
        });
        let hand = beside(&stage, |stage| stage.free_room(true));
        stage.look();
        writer.join().unwrap();
        hand.join().unwrap();
        assert_eq!(stage.look(), Glimpse::Room(2, 2));
    });
}

#[test]
fn a_room_that_moves_is_read_where_it_was_or_where_it_is() {
    a_move(Release);
}

#[test]
#[should_panic(expected = "")]
fn progress_that_is_stored_without_a_release_would_show_bytes_that_are_not_there() {
    a_move(Relaxed);
}

#[test]
fn the_next_holder_of_a_claim_is_not_taken_for_the_followed_writer() {
    check(|| {
        let stage = Arc::new(Stage::new());
        let next = beside(&stage, |stage| {
            // The writer gives up. Somebody else takes the line, and comes to fill the same bytes.
            stage.acquire(1);
            stage.room.store(0, Release);
            unpin(&stage.writers_pin);
            unlock(&stage.lock);
            stage.free_room(true);
            stage.promise.store(0, Release);
            stage.bytes.store(0, Release);
            stage.promise.store(PROMISE + 1, Release);
            stage.room.store(1, Release);
            stage.bytes.store(2, Release);
        });
        stage.look();
        next.join().unwrap();
        assert_eq!(stage.look(), Glimpse::Over);
    });
}

/// The writer's last step, and a follower that looks once more before it falls asleep.
fn the_last_step(last_step: fn(&Stage) -> bool) {
    check(move || {
        let stage = Arc::new(Stage::new());
        let writer = beside(&stage, move |stage| {
            stage.write(1, 1, 11);
            last_step(stage)
        });
        let seen = eyewall::protocol::HalfWord::load(&stage.signal);
        let saw_all = stage.look() == Glimpse::Room(1, 2);
        let asleep = !saw_all && fall_asleep(&stage.signal, seen).is_some();
        let woken = writer.join().unwrap();
        if asleep {
            assert!(woken, "the follower sleeps on");
        } else if !saw_all {
            assert_eq!(stage.look(), Glimpse::Room(1, 2), "the woken follower sees nothing new");
        }
        assert_eq!(stage.bytes.load(Relaxed), 2);
    });
}

#[test]
fn a_follower_sees_the_last_step_or_is_woken_by_it() {
    the_last_step(|stage| {
        stage.bytes.store(2, Release);
        signal(&stage.signal)
    });
}

#[test]
#[should_panic(expected = "the follower sleeps on")]
fn a_signal_before_the_step_would_be_slept_through() {
    the_last_step(|stage| {
        let woken = signal(&stage.signal);
        stage.bytes.store(2, Release);
        woken
    });
}
