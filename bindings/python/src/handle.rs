//! An open volume and the coding of its values. The methods of the class, and the objects that they return, work on it.

use std::sync::{PoisonError, RwLock};

use pyo3::prelude::*;

use crate::arguments::{Beside, Key};
use crate::errors::{OrRaise, closed};
use crate::value::{Codec, Stored};

/// Puts of more bytes release the interpreter's lock.
const LARGE_BYTES: usize = 64 << 10;

/// An open volume. The stubs, `_eyewall.pyi`, document its methods.
#[pyclass(frozen, subclass, module = "eyewall._eyewall")]
pub(crate) struct Cache {
    /// None after `close`. Only `close` locks it for writing, and fails rather than wait, so no reader ever
    /// waits.
    pub(crate) open: RwLock<Option<eyewall::Cache>>,
    pub(crate) codec: Codec,
}

impl Cache {
    pub(crate) fn codec(&self) -> &Codec {
        &self.codec
    }

    /// Runs `work` on the open volume. No Python code runs in `work`.
    #[inline]
    pub(crate) fn with<T>(&self, py: Python<'_>, work: impl FnOnce(&eyewall::Cache) -> PyResult<T>) -> PyResult<T> {
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner);
        match &*open {
            Some(open) => work(open),
            None => Err(closed(py)),
        }
    }

    /// The open volume, for work that takes long or runs without the interpreter's lock.
    pub(crate) fn shared(&self, py: Python<'_>) -> PyResult<eyewall::Cache> {
        self.with(py, |open| Ok(open.clone()))
    }

    /// Runs `work` without the interpreter's lock.
    pub(crate) fn detached<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&eyewall::Cache) -> eyewall::Result<T> + Send,
    ) -> PyResult<T> {
        let open = self.shared(py)?;
        py.detach(move || work(&open)).or_raise(py)
    }

    #[inline]
    pub(crate) fn found<'py>(&self, py: Python<'py>, key: Key<'_>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let stored = self.with(py, |open| match open.get(key.0).or_raise(py)? {
            Some(hit) => Stored::of(py, &hit).map(Some),
            None => Ok(None),
        })?;
        stored.map(|stored| stored.decoded(&self.codec)).transpose()
    }

    /// Stores a value by one of the engine's methods.
    #[inline]
    pub(crate) fn store<T: Send>(
        &self,
        value: &Bound<'_, PyAny>,
        beside: &Beside<'_>,
        work: impl FnOnce(&eyewall::Cache, &[u8], &eyewall::PutOptions<'_>) -> eyewall::Result<T> + Send,
    ) -> PyResult<T> {
        let py = value.py();
        let encoded = self.codec.encode(value)?;
        let (bytes, metadata) = (encoded.bytes()?, beside.metadata(py, encoded.metadata())?);
        if bytes.len() > LARGE_BYTES {
            return self.detached(py, |open| beside.with(metadata, |options| work(open, bytes, options)));
        }
        self.with(py, |open| beside.with(metadata, |options| work(open, bytes, options)).or_raise(py))
    }
}
