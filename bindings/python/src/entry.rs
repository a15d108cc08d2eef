//! A copy of what a look-up found.

use eyewall::Hit;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::value::{Codec, Stored};

/// An entry with all its properties.
#[pyclass(frozen, get_all, module = "eyewall")]
pub(crate) struct Entry {
    /// "fresh", "stale" or "negative".
    state: &'static str,
    /// The value; None for a negative entry.
    value: Py<PyAny>,
    /// Identifies this version of the entry, for `replace` and `remove`.
    serial: u64,
    /// The reason code of a negative entry.
    reason: Option<u16>,
    tags: Vec<String>,
    /// The bytes that a program stored beside the value. This package stores the type of the value there.
    metadata: Py<PyBytes>,
    /// Seconds since the put.
    age: f64,
    /// Remaining seconds of its time to live; None: until it is evicted.
    ttl_left: Option<f64>,
}

#[pymethods]
impl Entry {
    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let value = self.value.bind(py).repr()?;
        Ok(format!("<eyewall.Entry {}, serial {}, {value}>", self.state, self.serial))
    }
}

/// An entry that no longer holds its hit, and whose value is still to be decoded.
pub(crate) struct Found<'py> {
    entry: Entry,
    value: Option<Stored<'py>>,
}

impl<'py> Found<'py> {
    pub(crate) fn of(py: Python<'py>, hit: &Hit<'_>) -> PyResult<Self> {
        let reason = hit.reason();
        let state = match reason {
            Some(_) => "negative",
            None if hit.is_stale() => "stale",
            None => "fresh",
        };
        let entry = Entry {
            state,
            value: py.None(),
            serial: hit.serial(),
            reason,
            tags: hit.tags().map(str::to_owned).collect(),
            metadata: PyBytes::new(py, hit.metadata()).unbind(),
            age: hit.age().as_secs_f64(),
            ttl_left: hit.ttl_left().map(|left| left.as_secs_f64()),
        };
        // Must follow all reads of the hit.
        let value = Stored::of(py, hit)?;
        Ok(Self { entry, value: reason.is_none().then_some(value) })
    }

    pub(crate) fn decoded(mut self, codec: &Codec) -> PyResult<Entry> {
        if let Some(value) = self.value {
            self.entry.value = value.decoded(codec)?.unbind();
        }
        Ok(self.entry)
    }
}
