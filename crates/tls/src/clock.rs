//! The time of day, behind a seam: tests step it instead of sleeping.

use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;
use std::sync::PoisonError;
use std::time::{Duration, SystemTime};

use tokio::sync::watch;

/// Tells the time, and waits for a time.
pub trait Clock: Debug + Send + Sync {
    /// The time now.
    fn now(&self) -> SystemTime;

    /// Ends once [`Clock::now`] is `at` or later. Dropping the future ends the wait.
    fn sleep_until(&self, at: SystemTime) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}

/// The clock of the system. Its [`Clock::sleep_until`] needs a tokio runtime with time.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

/// A wait looks at the clock again after this time, since an operator or NTP may set the clock meanwhile.
const LOOK_AGAIN: Duration = Duration::from_mins(1);

impl Clock for SystemClock {
    fn now(&self) -> SystemTime {
        SystemTime::now()
    }

    fn sleep_until(&self, at: SystemTime) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async move {
            while let Ok(left) = at.duration_since(SystemTime::now())
                && !left.is_zero()
            {
                tokio::time::sleep(left.min(LOOK_AGAIN)).await;
            }
        })
    }
}

/// A clock for tests. It stands still except when [`SteppedClock::step`] moves it.
#[derive(Debug)]
pub struct SteppedClock(watch::Sender<SystemTime>);

impl SteppedClock {
    /// A clock that shows `now`.
    pub fn new(now: SystemTime) -> Self {
        Self(watch::Sender::new(now))
    }

    /// Moves the clock forward, and wakes those whose time has come.
    pub fn step(&self, by: Duration) {
        self.0.send_modify(|now| *now += by);
    }

    /// Sets the clock, forward or back.
    pub fn set(&self, now: SystemTime) {
        self.0.send_replace(now);
    }
}

impl Clock for SteppedClock {
    fn now(&self) -> SystemTime {
        *self.0.borrow()
    }

    fn sleep_until(&self, at: SystemTime) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        let mut receiver = self.0.subscribe();
        Box::pin(async move {
            // The sender lives as long as this clock, which the future borrows.
            let _ = receiver.wait_for(|now| *now >= at).await;
        })
    }
}

/// Whole seconds since 1970. Earlier times count as 0.
pub(crate) fn unix_seconds(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// The time that is so many seconds after 1970, or the latest that the platform knows of.
pub(crate) fn of_unix_seconds(seconds: u64) -> SystemTime {
    /// The year 9999, the last that a certificate can name (RFC 5280, section 4.1.2.5).
    const SECONDS_MAX: u64 = 253_402_300_799;
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds.min(SECONDS_MAX))
}

/// Locks a mutex whose content every panic leaves whole.
pub(crate) fn locked<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_stepped_clock_wakes_those_whose_time_has_come() {
        let clock = SteppedClock::new(of_unix_seconds(100));
        clock.sleep_until(of_unix_seconds(100)).await;
        let mut wait = clock.sleep_until(of_unix_seconds(110));
        clock.step(Duration::from_secs(9));
        tokio::select! {
            biased;
            () = &mut wait => panic!("it woke a second early"),
            () = std::future::ready(()) => {}
        }
        clock.step(Duration::from_secs(1));
        wait.await;
        assert_eq!(unix_seconds(clock.now()), 110);
    }

    #[tokio::test]
    async fn the_system_clock_does_not_wait_for_the_past() {
        SystemClock.sleep_until(SystemTime::now() - Duration::from_secs(5)).await;
    }
}
