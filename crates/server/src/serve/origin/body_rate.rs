//! The minimum rate at which a client must send the body of its request.
//!
//! Only time in which Eyewall waits for the client counts. While the origin takes nothing, Eyewall doesn't wait for the client.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

use super::error::ProxyError;

/// The limits of a body, from the configuration. Zero means unlimited.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct BodyRate {
    /// Bytes per second.
    pub(crate) rate_min: u64,
    /// The time by which the client may fall behind `rate_min`. It has all of it at first, and whenever it has sent enough.
    pub(crate) grace: Duration,
    /// The timeout of the whole body.
    pub(crate) total: Duration,
}

/// The time that a client has left.
#[derive(Default)]
pub(super) struct BodyRateTimer {
    body_rate: BodyRate,
    /// Time until it is too slow; each byte adds some. `None`: unlimited.
    credit: Option<Duration>,
    /// Time until the whole body is late. `None`: unlimited.
    left: Option<Duration>,
    /// The time since which Eyewall waits for the client.
    since: Option<Instant>,
    alarm: Option<Pin<Box<Sleep>>>,
}

impl BodyRateTimer {
    pub(super) fn new(body_rate: BodyRate) -> Self {
        let credit = (body_rate.rate_min > 0).then_some(body_rate.grace);
        let left = Some(body_rate.total).filter(|total| !total.is_zero());
        Self { body_rate, credit, left, since: None, alarm: None }
    }

    /// The client has sent nothing yet. Ready once it is too slow.
    pub(super) fn poll_late(&mut self, context: &mut Context<'_>) -> Poll<ProxyError> {
        let Some(allowed) = self.credit.into_iter().chain(self.left).min() else { return Poll::Pending };
        if self.since.is_none() {
            let now = Instant::now();
            self.since = Some(now);
            match &mut self.alarm {
                Some(alarm) => alarm.as_mut().reset(now + allowed),
                None => self.alarm = Some(Box::pin(sleep_until(now + allowed))),
            }
        }
        if let Some(alarm) = &mut self.alarm {
            ready!(alarm.as_mut().poll(context));
        }
        let is_overdue = self.left.is_some_and(|left| left <= allowed);
        Poll::Ready(if is_overdue {
            ProxyError::ClientOverdue(self.body_rate.total)
        } else {
            ProxyError::ClientSlow(self.body_rate.rate_min)
        })
    }

    /// The client has sent this many bytes, or the end.
    pub(super) fn took(&mut self, bytes: u64) {
        let waited = self.since.take().map_or(Duration::ZERO, |since| since.elapsed());
        self.left = self.left.map(|left| left.saturating_sub(waited));
        let earned = u128::from(bytes) * 1_000_000_000 / u128::from(self.body_rate.rate_min.max(1));
        let earned = Duration::from_nanos(u64::try_from(earned).unwrap_or(u64::MAX));
        self.credit =
            self.credit.map(|credit| credit.saturating_sub(waited).saturating_add(earned).min(self.body_rate.grace));
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::time::{advance, timeout};

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const BODY_RATE: BodyRate =
        BodyRate { rate_min: 100, grace: Duration::from_secs(20), total: Duration::from_mins(10) };

    /// Waits for a client that sends nothing for this time.
    async fn waited(rate_timer: &mut BodyRateTimer, silence: Duration) -> Option<ProxyError> {
        timeout(silence, poll_fn(|context| rate_timer.poll_late(context))).await.ok()
    }

    #[tokio::test(start_paused = true)]
    async fn a_byte_now_and_then_is_too_slow_after_the_grace() {
        let mut rate_timer = BodyRateTimer::new(BODY_RATE);
        for _ in 0..3 {
            assert_eq!(waited(&mut rate_timer, 5 * SECOND).await, None);
            rate_timer.took(1);
        }
        let start = Instant::now();
        assert_eq!(waited(&mut rate_timer, 10 * SECOND).await, Some(ProxyError::ClientSlow(100)));
        assert_eq!(start.elapsed().as_secs(), 5);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_at_the_minimum_rate_is_in_time_until_it_stops() {
        let mut rate_timer = BodyRateTimer::new(BODY_RATE);
        for _ in 0..50 {
            assert_eq!(waited(&mut rate_timer, 10 * SECOND).await, None);
            rate_timer.took(1000);
        }
        assert_eq!(waited(&mut rate_timer, 19 * SECOND).await, None);
        assert_eq!(
            waited(&mut rate_timer, 2 * SECOND).await,
            Some(ProxyError::ClientSlow(100)),
            "bytes bring no more than the grace"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn small_pieces_count_as_much_as_large_ones() {
        let mut rate_timer = BodyRateTimer::new(BodyRate { rate_min: 64_000, ..BODY_RATE });
        for _ in 0..100_000 {
            assert_eq!(waited(&mut rate_timer, Duration::from_millis(1)).await, None);
            rate_timer.took(65);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_timeout_of_the_whole_body_does_not_depend_on_the_rate() {
        let mut rate_timer = BodyRateTimer::new(BODY_RATE);
        for _ in 0..59 {
            assert_eq!(waited(&mut rate_timer, 10 * SECOND).await, None);
            rate_timer.took(1 << 30);
        }
        assert_eq!(waited(&mut rate_timer, 11 * SECOND).await, Some(ProxyError::ClientOverdue(BODY_RATE.total)));
    }

    #[tokio::test(start_paused = true)]
    async fn time_in_which_nobody_waits_for_the_client_does_not_count() {
        let mut rate_timer = BodyRateTimer::new(BODY_RATE);
        for _ in 0..10 {
            assert_eq!(waited(&mut rate_timer, SECOND).await, None);
            rate_timer.took(1);
            advance(1000 * SECOND).await;
        }
        assert_eq!(waited(&mut rate_timer, 9 * SECOND).await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn zero_means_unlimited() {
        for (body_rate, error) in [
            (BodyRate { rate_min: 0, total: Duration::ZERO, ..BODY_RATE }, None),
            (BodyRate { rate_min: 0, ..BODY_RATE }, Some(ProxyError::ClientOverdue(BODY_RATE.total))),
            (BodyRate { total: Duration::ZERO, ..BODY_RATE }, Some(ProxyError::ClientSlow(100))),
        ] {
            assert_eq!(
                waited(&mut BodyRateTimer::new(body_rate), Duration::from_hours(1000)).await,
                error,
                "{body_rate:?}"
            );
        }
    }
}
