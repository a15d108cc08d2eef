//! How a front door wants its cache to work.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use eyewall_http::policy::Policy;

use crate::pages::Lasting;

type Now = dyn Fn() -> SystemTime + Send + Sync;

/// What time it is.
#[derive(Clone, Default)]
pub struct Clock(Option<Arc<Now>>);

impl Clock {
    /// One that goes as a test says.
    pub fn by(now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(now)))
    }

    /// What time it is.
    pub fn now(&self) -> SystemTime {
        self.0.as_ref().map_or_else(SystemTime::now, |now| now())
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Clock").field("is_set", &self.0.is_some()).finish()
    }
}

/// Where a cache stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In front of an origin server that others run. The cache widens ranges to whole fragments, and leaves `If-Match` to the origin.
    Gateway,
    /// In the origin server itself. The cache evaluates all preconditions, and leaves ranges and conditions of what it can't store
    /// to the upstream.
    Origin,
}

/// How a front door wants its cache to work.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where the cache stands. Default: [`Place::Gateway`].
    pub place: Place,
    /// Whether a stored response may be sent. What may be stored is judged by [`crate::upstream::Rules`].
    pub policy: Policy,
    /// A stale response is kept for so long at least, to be sent where the upstream can't be reached; where the policy says more, for
    /// longer.
    pub when_unreachable: Duration,
    /// Whether an error without a body, whose time only the policy says, is remembered by its status alone. Default: no.
    pub remembers_bare_errors: bool,
    /// The name of this cache in `Cache-Status`. None: responses don't tell what it did. Default: `Eyewall`.
    pub name: Option<String>,
    /// The longest body that is stored.
    pub body_bytes_max: u64,
    /// How long a request waits for the answer to another one before it asks for itself. Default: 5 s.
    pub collapse_timeout: Duration,
    /// Whether requests wait for those of other processes, too. Default: no.
    pub is_across_processes: bool,
    /// The longest wait for the next piece of an upstream's body. Default: none.
    pub piece_timeout: Option<Duration>,
    /// What time it is.
    pub clock: Clock,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            place: Place::Gateway,
            policy: Policy::default(),
            when_unreachable: Duration::ZERO,
            remembers_bare_errors: false,
            name: Some("Eyewall".to_owned()),
            body_bytes_max: u64::MAX,
            collapse_timeout: Duration::from_secs(5),
            is_across_processes: false,
            piece_timeout: None,
            clock: Clock::default(),
        }
    }
}

impl Settings {
    /// What time it is.
    pub fn now(&self) -> SystemTime {
        self.clock.now()
    }

    /// By which for how long a response is kept.
    pub fn lasting(&self) -> Lasting {
        let of_policy = self.policy.stale_if_unreachable.unwrap_or_default();
        Lasting { now: self.now(), when_unreachable: self.when_unreachable.max(of_policy) }
    }
}
