//! Iteration over all entries.

use std::sync::{Mutex, TryLockError};

use eyewall::Iter;
use pyo3::exceptions::PyRuntimeError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use pyo3::{IntoPyObjectExt, PyTraverseError};
use self_cell::self_cell;

use crate::errors::{OrRaise, exception};
use crate::handle::Cache;
use crate::value::Stored;

self_cell!(
    /// An iteration and its cache.
    struct Owned {
        owner: eyewall::Cache,
        #[not_covariant]
        dependent: Iter,
    }
);

/// What the iteration yields for each entry.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    Keys,
    Values,
    Items,
}

/// An iterator over all valid entries, in no order. It holds nothing between its steps.
#[pyclass(frozen, module = "eyewall")]
pub(crate) struct Walk {
    cache: Py<Cache>,
    wanted: Wanted,
    owned: Mutex<Owned>,
}

impl Walk {
    pub(crate) fn begin(cache: &Bound<'_, Cache>, wanted: Wanted) -> PyResult<Self> {
        let owned = Owned::new(cache.get().shared(cache.py())?, eyewall::Cache::iter);
        Ok(Self { cache: cache.clone().unbind(), wanted, owned: Mutex::new(owned) })
    }

    /// Key and value of the next entry; None at the end.
    fn step<'py>(&self, py: Python<'py>) -> PyResult<Option<(Bound<'py, PyAny>, Option<Stored<'py>>)>> {
        // Nobody waits for this lock, so its holder may run Python code, for instance to create an
        // exception.
        let mut owned = match self.owned.try_lock() {
            Ok(owned) => owned,
            Err(TryLockError::Poisoned(owned)) => owned.into_inner(),
            Err(TryLockError::WouldBlock) => {
                return Err(PyRuntimeError::new_err("another thread uses this iterator; create one per thread"));
            }
        };
        let next = owned.with_dependent_mut(|_, walk| {
            let hit = walk.next()?;
            let key = match std::str::from_utf8(hit.key()) {
                Ok(text) => PyString::new(py, text).into_any(),
                Err(_) => PyBytes::new(py, hit.key()).into_any(),
            };
            let value = (self.wanted != Wanted::Keys).then(|| Stored::of(py, &hit)).transpose();
            Some(hit.check_intact().or_raise(py).and(value).map(|value| (key, value)))
        });
        if next.is_none() && owned.borrow_owner().is_failed() {
            return Err(exception(
                py,
                "FailedError",
                "the volume failed during the iteration; close it and open it again",
            ));
        }
        next.transpose()
    }
}

#[pymethods]
impl Walk {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.cache)
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some((key, value)) = self.step(py)? else { return Ok(None) };
        let Some(value) = value else { return Ok(Some(key)) };
        let value = value.decoded(self.cache.get().codec())?;
        Ok(Some(if self.wanted == Wanted::Items { (key, value).into_bound_py_any(py)? } else { value }))
    }
}
