//! Reads values while a writer writes them.

use std::time::{Duration, Instant};

use eyewall::Error;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::arguments::Seconds;
use crate::errors::OrRaise;
use crate::turns::InTurns;

/// After so long a wait, check for signals, such as an interrupt.
const SIGNALS_EVERY: Duration = Duration::from_millis(100);
/// Default and maximum number of bytes per read.
const PIECE_BYTES: i64 = 64 << 10;
const PIECE_BYTES_MAX: i64 = 1 << 20;
const WAIT: Duration = Duration::from_secs(30);

/// Reads a value from its first byte on while a writer writes it, and iterates over its pieces. It holds the
/// bytes against eviction until it ends.
#[pyclass(frozen, module = "eyewall")]
pub(crate) struct Follower {
    reads: InTurns<eyewall::Follower>,
    /// The metadata of the coming entry.
    #[pyo3(get)]
    metadata: Py<PyBytes>,
    /// The serial of the coming entry.
    #[pyo3(get)]
    serial: u64,
}

impl Follower {
    pub(crate) fn new(py: Python<'_>, follower: eyewall::Follower) -> Self {
        let metadata = PyBytes::new(py, follower.metadata()).unbind();
        let serial = follower.serial();
        Self { reads: InTurns::new("follower", follower), metadata, serial }
    }

    fn next<'py>(&self, py: Python<'py>, bytes: usize, wait: Duration) -> PyResult<Bound<'py, PyBytes>> {
        let start = Instant::now();
        loop {
            let left = wait.saturating_sub(start.elapsed());
            let read = self.reads.using(py, |follower| {
                let mut piece = vec![0; bytes];
                let length = follower.read(&mut piece, left.min(SIGNALS_EVERY))?;
                piece.truncate(length);
                Ok(piece)
            })?;
            match read {
                Err(Error::Busy { .. }) if left > SIGNALS_EVERY => py.check_signals()?,
                read => return read.or_raise(py).map(|piece| PyBytes::new(py, &piece)),
            }
        }
    }
}

#[pymethods]
impl Follower {
    /// Returns the next bytes, up to `size`, or `b""` at the end of a stored entry. Waits for up to `wait`
    /// seconds; then it raises `BusyError`, and you may call it again. `InterruptedWriteError`: the entry
    /// will not come, and what you have read is part of none.
    #[pyo3(signature = (size=PIECE_BYTES, *, wait=None), text_signature = "($self, size=65536, *, wait=30)")]
    fn read<'py>(&self, py: Python<'py>, size: i64, wait: Option<Seconds>) -> PyResult<Bound<'py, PyBytes>> {
        if size < 1 {
            return Err(PyValueError::new_err(format!("{size} is no number of bytes to read; it is at least 1")));
        }
        self.next(py, size.min(PIECE_BYTES_MAX) as usize, wait.map_or(WAIT, |wait| wait.0))
    }

    /// Stops reading.
    fn end(&self) -> PyResult<()> {
        self.reads.end().map(drop)
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let piece = self.next(py, PIECE_BYTES as usize, WAIT)?;
        Ok(Some(piece).filter(|piece| !piece.as_bytes().is_empty()))
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, _raised: &Bound<'_, PyAny>) -> PyResult<()> {
        self.end()
    }
}
