//! Changes under a key's claim.

use std::sync::{Mutex, PoisonError};

use eyewall::{Claimed, Updated};
use pyo3::PyTraverseError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use self_cell::self_cell;

use crate::arguments::{Beside, Epoch, Seconds, Tags};
use crate::errors::{OrRaise, ended};
use crate::handle::Cache;
use crate::value::Stored;

type Held<'a> = Option<Claimed<'a>>;

self_cell!(
    /// A claim and its cache.
    struct Owned {
        owner: eyewall::Cache,
        #[not_covariant]
        dependent: Held,
    }
);

/// The right to change one key. Only one claim of a key stands at a time, over all processes. It ends with `put`,
/// `remove`, `end`, the `with` block or this process.
#[pyclass(frozen, module = "eyewall")]
pub(crate) struct Claim {
    cache: Py<Cache>,
    /// None after its end.
    owned: Mutex<Option<Owned>>,
    /// The key, as bytes.
    #[pyo3(get)]
    key: Py<PyBytes>,
    /// The value when the key was claimed; None if there was no entry.
    #[pyo3(get)]
    value: Py<PyAny>,
    /// Whether there was an entry.
    #[pyo3(get)]
    found: bool,
}

impl Claim {
    pub(crate) fn begin(cache: &Bound<'_, Cache>, key: &[u8]) -> PyResult<Self> {
        let py = cache.py();
        let open = cache.get().shared(py)?;
        let begun = py.detach(|| Owned::try_new(open, |open| open.claim(key).map(Some)));
        let mut owned = begun.or_raise(py)?;
        let stored = owned.with_dependent_mut(|_, held| {
            let entry = held.as_mut().and_then(Claimed::take_entry);
            entry.map(|entry| Stored::of(py, &entry)).transpose()
        })?;
        let found = stored.is_some();
        let value = match stored {
            Some(stored) => stored.decoded(cache.get().codec())?.unbind(),
            None => py.None(),
        };
        let key = PyBytes::new(py, key).unbind();
        Ok(Self { cache: cache.clone().unbind(), owned: Mutex::new(Some(owned)), key, value, found })
    }

    fn take(&self) -> Option<Owned> {
        self.owned.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Ends the claim by `work`.
    fn last(
        &self,
        py: Python<'_>,
        work: impl FnOnce(Claimed<'_>) -> eyewall::Result<Updated> + Send,
    ) -> PyResult<Updated> {
        let mut owned = self.take().ok_or_else(|| ended(py, "claim"))?;
        let done = py.detach(|| owned.with_dependent_mut(|_, held| held.take().map(work)));
        done.ok_or_else(|| ended(py, "claim"))?.or_raise(py)
    }
}

#[pymethods]
impl Claim {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.cache)?;
        visit.call(&self.value)
    }

    /// Stores a value and ends the claim. Returns the serial, or None if another caller has changed the entry
    /// since.
    #[pyo3(signature = (value, *, ttl=None, stale=None, tags=None, metadata=None, begun_in=None))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords where it is called")]
    fn put(
        &self,
        py: Python<'_>,
        value: &Bound<'_, PyAny>,
        ttl: Option<Seconds>,
        stale: Option<Seconds>,
        tags: Option<Tags>,
        metadata: Option<&[u8]>,
        begun_in: Option<&Bound<'_, Epoch>>,
    ) -> PyResult<Option<u64>> {
        let encoded = self.cache.get().codec().encode(value)?;
        let beside = Beside::new(ttl, stale, tags).and(metadata, begun_in);
        let (bytes, metadata) = (encoded.bytes()?, beside.metadata(py, encoded.metadata())?);
        let done = self.last(py, |claimed| beside.with(metadata, |options| claimed.put(bytes, options)))?;
        Ok(if let Updated::Stored(serial) = done { Some(serial) } else { None })
    }

    /// Removes the entry and ends the claim. Returns False if another caller has changed the entry since.
    #[expect(clippy::redundant_closure_for_method_calls, reason = "the method is that of one lifetime")]
    fn remove(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.last(py, |claimed| claimed.remove())? != Updated::Superseded)
    }

    /// Ends the claim and leaves the entry unchanged.
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
