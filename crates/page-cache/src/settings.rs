//! The settings of a front door's cache.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use eyewall_http::policy::Policy;

use crate::compression::Compression;
use crate::pages::Lasting;

type Now = dyn Fn() -> SystemTime + Send + Sync;

/// The source of the present time.
#[derive(Clone, Default)]
pub struct Clock(Option<Arc<Now>>);

impl Clock {
    /// A clock that a test sets.
    pub fn by(now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(now)))
    }

    /// The present time.
    pub fn now(&self) -> SystemTime {
        self.0.as_ref().map_or_else(SystemTime::now, |now| now())
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Clock").field("is_set", &self.0.is_some()).finish()
    }
}

/// Where a cache runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In front of an origin server of other operators. The cache widens ranges to whole fragments, and leaves `If-Match` to the
    /// origin.
    Gateway,
    /// In the origin server itself. The cache evaluates all preconditions. If a response can't be stored, it leaves ranges and
    /// conditions to the upstream.
    Origin,
}

/// The settings of a front door's cache.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where the cache runs. Default: [`Place::Gateway`].
    pub place: Place,
    /// Whether a stored response may be sent. [`crate::upstream::Rules`] decide what may be stored.
    pub policy: Policy,
    /// A stale response is kept at least this long, to be sent while the upstream is unreachable; longer if the policy says so.
    pub when_unreachable: Duration,
    /// Whether an error without a body is remembered by its status alone, if only the policy says for how long. Default: no.
    pub remembers_bare_errors: bool,
    /// The name of this cache in `Cache-Status`. None: responses have no such field. Default: `Eyewall`.
    pub name: Option<String>,
    /// The greatest length of a stored body.
    pub body_bytes_max: u64,
    /// How long a request waits for the answer to another one before it asks the upstream itself. Default: 5 s.
    pub collapse_timeout: Duration,
    /// Whether requests also wait for those of other processes. Default: no.
    pub is_across_processes: bool,
    /// The longest wait for the next piece of an upstream's body. Default: none.
    pub piece_timeout: Option<Duration>,
    /// Which stored responses are compressed. Default: none.
    pub compression: Option<Compression>,
    /// The source of the present time.
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
            compression: None,
            clock: Clock::default(),
        }
    }
}

impl Settings {
    /// The present time.
    pub fn now(&self) -> SystemTime {
        self.clock.now()
    }

    /// What decides how long a response is kept.
    pub fn lasting(&self) -> Lasting {
        let of_policy = self.policy.stale_if_unreachable.unwrap_or_default();
        Lasting { now: self.now(), when_unreachable: self.when_unreachable.max(of_policy) }
    }
}
