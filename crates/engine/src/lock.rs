//! The lock that processes share: one futex word, which names its holder and can be taken from a dead one.
//!
//! It is not a robust pthread mutex; `docs/decisions/` says why. Waiters check every 5 ms whether the holder is
//! alive. A living holder never loses the lock, however long it is stopped. A wait ends at the deadline.

use std::sync::atomic::AtomicU32;
use std::time::{Duration, Instant};

use eyewall_region::futex;

use crate::error::{Error, Result};
use crate::format::owner::{INCARNATION_MASK, Owner};
use crate::protocol::{self, HalfWord, WAITERS};
use crate::volume::Volume;

const PROBE_EVERY: Duration = Duration::from_millis(5);
const SPINS: u32 = 60;

/// How a lock was acquired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Got {
    Free,
    /// The holder died with it, so what the lock protects must be repaired.
    FromTheDead,
}

/// Waits for `lock` and takes it for this process.
///
/// # Errors
/// `Busy` at the volume's lock deadline. `Failed`. `TooManyProcesses` for a process without an owner word.
#[inline]
pub(crate) fn acquire(volume: &Volume, lock: &AtomicU32, what: &'static str) -> Result<Got> {
    let me = volume.membership.owner_word();
    if me == 0 {
        return Err(Error::TooManyProcesses { max: volume.layout.processes });
    }
    match protocol::try_lock(lock, me) {
        Ok(()) => Ok(Got::Free),
        Err(_) => acquire_slowly(volume, lock, me, what),
    }
}

/// Takes `lock` if it is free, or if `probe` is set and its holder is dead. Doesn't wait.
pub(crate) fn try_acquire(volume: &Volume, lock: &AtomicU32, probe: bool) -> Option<Got> {
    let me = volume.membership.owner_word();
    if me == 0 {
        return None;
    }
    match protocol::try_lock(lock, me) {
        Ok(()) => Some(Got::Free),
        Err(word) => {
            let taken = probe && is_dead(volume, word) && protocol::take_over(lock, word, me);
            taken.then_some(Got::FromTheDead)
        }
    }
}

#[cold]
fn acquire_slowly(volume: &Volume, lock: &AtomicU32, me: u32, what: &'static str) -> Result<Got> {
    for _ in 0..SPINS {
        std::hint::spin_loop();
        if HalfWord::load(lock) == 0 && protocol::try_lock(lock, me).is_ok() {
            return Ok(Got::Free);
        }
    }
    let start = Instant::now();
    loop {
        // A process that has slept can't know who else sleeps, so it takes the lock with the waiters bit set.
        let Err(word) = protocol::try_lock(lock, me | WAITERS) else { return Ok(Got::Free) };
        let asleep = word | WAITERS;
        if word != asleep && HalfWord::compare_exchange(lock, word, asleep).is_err() {
            continue;
        }
        let waited = start.elapsed();
        let Some(left) = volume.lock_deadline.checked_sub(waited).filter(|left| !left.is_zero()) else {
            volume.count_busy();
            return Err(Error::Busy { what, waited });
        };
        futex::wait(lock, asleep, PROBE_EVERY.min(left));
        let still = HalfWord::load(lock);
        let dead = still == asleep && is_dead(volume, still);
        // A wait on a failed volume would be in vain, and a lost process table makes every process look dead.
        volume.check_intact()?;
        if dead && protocol::take_over(lock, still, me) {
            return Ok(Got::FromTheDead);
        }
    }
}

fn is_dead(volume: &Volume, word: u32) -> bool {
    match Owner::from_word(word & !WAITERS) {
        Some(owner) => !volume.membership.is_alive(&volume.region, &volume.layout, owner),
        // No process writes such a word, so the file is damaged.
        None => word & !WAITERS != 0,
    }
}

/// Leaves `lock` as a dead process would, for the next that wants it. For a holder that must not finish what it
/// began.
#[cold]
pub(crate) fn abandon(volume: &Volume, lock: &AtomicU32) {
    let Some(me) = Owner::from_word(volume.membership.owner_word()) else { return };
    let last = if me.incarnation > 1 { me.incarnation - 1 } else { INCARNATION_MASK };
    let left = Owner { process: me.process, incarnation: last }.word();
    if HalfWord::swap(lock, left) & WAITERS != 0 {
        futex::wake(lock, 1);
    }
}

/// Releases `lock` and wakes one waiter.
#[inline]
pub(crate) fn release(lock: &AtomicU32) {
    if protocol::unlock(lock) {
        futex::wake(lock, 1);
    }
}
