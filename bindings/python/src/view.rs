//! Views of held values.

use std::ffi::c_int;

use eyewall::OwnedHit;
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::OrRaise;

const INHERITED: &str = "this process inherited the view by a fork and must not read it; call get_view again";

/// The object behind a memoryview. It holds the pin until the last view of it is gone.
#[pyclass(frozen, module = "eyewall")]
pub(crate) struct View(pub(crate) OwnedHit);

#[pymethods]
impl View {
    /// Exports the value's bytes, read-only.
    ///
    /// # Safety
    /// The interpreter calls it, with a buffer that it may fill.
    unsafe fn __getbuffer__(slf: &Bound<'_, Self>, buffer: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let hit = &slf.get().0;
        if buffer.is_null() || hit.is_inherited() {
            return Err(PyBufferError::new_err(INHERITED));
        }
        let value = hit.value();
        let start = value.as_ptr().cast_mut().cast();
        // SAFETY: the buffer is the interpreter's. The bytes stay as they are for as long as the hit lives, which this object
        // holds, and the buffer holds the object. They are given for reading only (the 1), so nobody writes through the pointer.
        let filled = unsafe { ffi::PyBuffer_FillInfo(buffer, slf.as_ptr(), start, value.len() as isize, 1, flags) };
        if filled == 0 { Ok(()) } else { Err(PyErr::fetch(slf.py())) }
    }

    /// The value's metadata.
    #[getter]
    fn metadata<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        if self.0.is_inherited() {
            return Err(PyBufferError::new_err(INHERITED));
        }
        let metadata = PyBytes::new(py, self.0.metadata());
        self.0.check_intact().or_raise(py)?;
        Ok(metadata)
    }

    /// Raises `FailedError` unless the bytes that were read so far are those that were put
    /// (`survive_sigbus`).
    fn check_intact(&self, py: Python<'_>) -> PyResult<()> {
        self.0.check_intact().or_raise(py)
    }
}
