//! Entries that one caller makes while the others wait (request collapsing).

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use eyewall::{FillOptions, Filled, Filling, NotStored};
use pyo3::PyTraverseError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use self_cell::self_cell;

use crate::arguments::{Beside, Seconds, Tags};
use crate::errors::{OrRaise, ended, raised};
use crate::handle::Cache;
use crate::value::Stored;

/// The engine asks every few milliseconds whether to go on waiting. After so many of these, check for signals,
/// such as an interrupt.
const ASKS_APART: u32 = 20;

type Begun<'a> = Option<Filling<'a>>;

self_cell!(
    /// The result of a fill and its cache.
    struct Owned {
        owner: eyewall::Cache,
        #[not_covariant]
        dependent: Begun,
    }
);

/// The right, and the duty, to make one entry that others wait for. It ends with `store`, `remember`, `end` or
/// this process.
#[pyclass(frozen, module = "eyewall")]
pub(crate) struct Flight {
    cache: Py<Cache>,
    /// None after its end.
    owned: Mutex<Option<Owned>>,
}

/// The entry, or the right to make it.
pub(crate) enum Answer<'py> {
    Found(Stored<'py>),
    Negative(u16),
    Ours(Flight),
}

/// Finds the entry of a key, waits for it, or gets the right to make it.
pub(crate) fn begin<'py>(
    cache: &Bound<'py, Cache>,
    key: &[u8],
    (wait, is_wanted): (Duration, Option<&Bound<'py, PyAny>>),
    use_stale: bool,
) -> PyResult<Answer<'py>> {
    let py = cache.py();
    let open = cache.get().shared(py)?;
    if let Some(hit) = open.get_if(key, |_| true).or_raise(py)? {
        return Stored::of(py, &hit).map(Answer::Found);
    }
    let is_wanted = is_wanted.map(|asked| asked.clone().unbind());
    let (asks, raised) = (AtomicU32::new(1), Mutex::new(None));
    let goes_on = || {
        if asks.fetch_add(1, Relaxed) % ASKS_APART != 0 {
            return true;
        }
        let asked = Python::try_attach(|py| {
            py.check_signals()?;
            is_wanted.as_ref().map_or(Ok(true), |is_wanted| is_wanted.call0(py)?.is_truthy(py))
        });
        // Nobody waits while the interpreter shuts down.
        asked.unwrap_or(Ok(false)).unwrap_or_else(|error| {
            *raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            false
        })
    };
    let options = FillOptions::new().use_stale(use_stale).wait_while(&goes_on);
    let begun = py.detach(|| Owned::try_new(open, |open| open.begin_fill(key, wait, &options).map(Some)));
    if let Some(error) = raised.lock().unwrap_or_else(PoisonError::into_inner).take() {
        return Err(error);
    }
    let mut owned = begun.or_raise(py)?;
    let known = owned.with_dependent_mut(|_, begun| match begun.as_ref() {
        Some(Filling::Found(Filled::Hit(hit) | Filled::Stale(hit))) => {
            Stored::of(py, hit).map(|it| Some(Answer::Found(it)))
        }
        Some(Filling::Found(Filled::Negative(reason))) => Ok(Some(Answer::Negative(*reason))),
        _ => Ok(None),
    })?;
    Ok(known.unwrap_or_else(|| Answer::Ours(Flight { cache: cache.clone().unbind(), owned: Mutex::new(Some(owned)) })))
}

fn stored(py: Python<'_>, done: Result<u64, NotStored>) -> PyResult<Option<u64>> {
    match done {
        Ok(serial) => Ok(Some(serial)),
        Err(NotStored::Superseded) => Ok(None),
        Err(NotStored::Refused(error)) => Err(raised(py, &error)),
    }
}

impl Flight {
    fn take(&self) -> Option<Owned> {
        self.owned.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Ends the flight by `work`.
    fn last<T: Send>(&self, py: Python<'_>, work: impl FnOnce(eyewall::Flight<'_>) -> T + Send) -> PyResult<T> {
        let mut owned = self.take().ok_or_else(|| ended(py, "flight"))?;
        let done = py.detach(|| {
            owned.with_dependent_mut(|_, begun| match begun.take() {
                Some(Filling::Ours(flight)) => Some(work(flight)),
                _ => None,
            })
        });
        done.ok_or_else(|| ended(py, "flight"))
    }
}

#[pymethods]
impl Flight {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.cache)
    }

    /// Stores the value and ends the flight. Returns the serial, or None if another caller has changed the
    /// entry since.
    #[pyo3(signature = (value, *, ttl=None, stale=None, tags=None, metadata=None))]
    fn store(
        &self,
        py: Python<'_>,
        value: &Bound<'_, PyAny>,
        ttl: Option<Seconds>,
        stale: Option<Seconds>,
        tags: Option<Tags>,
        metadata: Option<&[u8]>,
    ) -> PyResult<Option<u64>> {
        let encoded = self.cache.get().codec().encode(value)?;
        let beside = Beside::new(ttl, stale, tags).and(metadata, None);
        let (bytes, metadata) = (encoded.bytes()?, beside.metadata(py, encoded.metadata())?);
        let done = self.last(py, |flight| beside.with(metadata, |options| flight.store(bytes, options)))?;
        stored(py, done)
    }

    /// Stores a negative entry for `ttl` seconds (None: until it is evicted), and ends the flight. Returns
    /// the serial, or None if another caller has changed the entry since.
    #[pyo3(signature = (reason, *, ttl=None, tags=None))]
    fn remember(&self, py: Python<'_>, reason: u16, ttl: Option<Seconds>, tags: Option<Tags>) -> PyResult<Option<u64>> {
        let beside = Beside::new(ttl, None, tags);
        let done = self.last(py, |flight| beside.with(&[], |options| flight.remember_with(reason, options)))?;
        stored(py, done)
    }

    /// Ends the flight without an entry. One of the waiting callers makes it instead.
    fn end(&self) {
        drop(self.take());
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, _raised: &Bound<'_, PyAny>) {
        self.end();
    }
}
