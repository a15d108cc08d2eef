//! Values that are written piece by piece.

use std::io::Write;

use eyewall::{Committed, Error};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyType};

use crate::errors::{OrRaise, raised};
use crate::turns::InTurns;

/// Writes a value of bytes piece by piece. Look-ups don't find it before it is committed. As a context manager it
/// commits, unless the block raises.
#[pyclass(frozen, module = "eyewall")]
pub(crate) struct Writer {
    writer: InTurns<eyewall::Writer>,
}

impl Writer {
    pub(crate) fn new(writer: eyewall::Writer) -> Self {
        Self { writer: InTurns::new("writer", writer) }
    }
}

#[pymethods]
impl Writer {
    /// Writes the next piece, completely or not at all; returns its length.
    fn write(&self, piece: &Bound<'_, PyAny>) -> PyResult<usize> {
        let py = piece.py();
        let piece = match piece.cast::<PyBytes>() {
            Ok(bytes) => bytes.clone(),
            Err(_) => pyo3::types::PyMemoryView::from(piece)?.call_method0("tobytes")?.cast_into::<PyBytes>()?,
        };
        let bytes = piece.as_bytes();
        let written = self.writer.using(py, |writer| writer.write_all(bytes))?;
        match written.map_err(std::io::Error::downcast::<Error>) {
            Ok(()) => Ok(bytes.len()),
            Err(Ok(error)) => Err(raised(py, &error)),
            Err(Err(error)) => Err(error.into()),
        }
    }

    /// Publishes the entry. Returns its serial, or None if another caller has changed the entry since.
    fn commit(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        let writer = self.writer.last(py)?;
        Ok(match py.detach(|| writer.commit()).or_raise(py)? {
            Committed::Stored(serial) => Some(serial),
            Committed::Superseded => None,
        })
    }

    /// Discards the value.
    fn abort(&self) -> PyResult<()> {
        self.writer.end().map(drop)
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (raised=None, *_more))]
    fn __exit__(&self, py: Python<'_>, raised: Option<&Bound<'_, PyType>>, _more: &Bound<'_, PyAny>) -> PyResult<()> {
        // The block may have ended it already.
        let Some(writer) = self.writer.end()? else { return Ok(()) };
        if raised.is_none() {
            py.detach(|| writer.commit()).or_raise(py)?;
        }
        Ok(())
    }
}
