//! Converts keys, times and tags from Python.

use std::time::Duration;

use eyewall::PutOptions;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyBytes, PyFloat, PyInt, PyString};

use crate::errors::exception;
use crate::value;

/// A key: `bytes`, or `str` as UTF-8.
#[derive(Clone, Copy)]
pub(crate) struct Key<'a>(pub(crate) &'a [u8]);

impl<'a, 'py> FromPyObject<'a, 'py> for Key<'a> {
    type Error = PyErr;

    #[inline]
    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if given.cast::<PyString>().is_ok() {
            return Ok(Self(given.extract::<&'a str>()?.as_bytes()));
        }
        if given.cast::<PyBytes>().is_ok() {
            return Ok(Self(given.extract::<&'a [u8]>()?));
        }
        let class = given.get_type().name()?;
        Err(PyTypeError::new_err(format!("a key is str or bytes, not {class}; convert it")))
    }
}

/// A duration: seconds as `int` or `float`, or a `timedelta`. Infinity is the longest.
#[derive(Clone, Copy)]
pub(crate) struct Seconds(pub(crate) Duration);

impl<'a, 'py> FromPyObject<'a, 'py> for Seconds {
    type Error = PyErr;

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let seconds = if given.cast::<PyFloat>().is_ok() || given.cast::<PyInt>().is_ok() {
            given.extract::<f64>()?
        } else if let Ok(method) = given.getattr("total_seconds") {
            method.call0()?.extract::<f64>()?
        } else {
            let class = given.get_type().name()?;
            return Err(PyTypeError::new_err(format!("a time is a number of seconds, or a timedelta, not {class}")));
        };
        if seconds.is_nan() || seconds < 0.0 {
            return Err(PyValueError::new_err("a time can't be negative; give None for no limit"));
        }
        Ok(Self(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)))
    }
}

/// Tags: one `str`, or several.
#[derive(Default)]
pub(crate) struct Tags(Vec<PyBackedStr>);

impl<'a, 'py> FromPyObject<'a, 'py> for Tags {
    type Error = PyErr;

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if given.cast::<PyString>().is_ok() {
            return Ok(Self(vec![given.extract()?]));
        }
        let tags = given.try_iter()?.map(|tag| tag?.extract::<PyBackedStr>());
        tags.collect::<PyResult<_>>().map(Self)
    }
}

/// A moment between two purges of a volume.
#[pyclass(frozen, eq, module = "eyewall")]
#[derive(PartialEq)]
pub(crate) struct Epoch(pub(crate) eyewall::Epoch);

/// The options of a put.
pub(crate) struct Beside<'a> {
    ttl: Option<Duration>,
    stale: Duration,
    tags: Vec<PyBackedStr>,
    /// The caller's metadata.
    metadata: &'a [u8],
    begun_in: Option<eyewall::Epoch>,
}

impl<'a> Beside<'a> {
    #[inline]
    pub(crate) fn new(ttl: Option<Seconds>, stale: Option<Seconds>, tags: Option<Tags>) -> Self {
        Self {
            ttl: ttl.map(|ttl| ttl.0).filter(|ttl| *ttl != Duration::MAX),
            stale: stale.map_or(Duration::ZERO, |stale| stale.0),
            tags: tags.unwrap_or_default().0,
            metadata: &[],
            begun_in: None,
        }
    }

    /// Adds the caller's metadata, and the moment when work on the value began.
    #[inline]
    pub(crate) fn and(mut self, metadata: Option<&'a [u8]>, begun_in: Option<&Bound<'_, Epoch>>) -> Self {
        self.metadata = metadata.unwrap_or_default();
        self.begun_in = begun_in.map(|epoch| epoch.get().0);
        self
    }

    /// The metadata to store: the caller's, or the byte that names the kind of value.
    #[inline]
    pub(crate) fn metadata<'b>(&self, py: Python<'_>, kind: &'b [u8]) -> PyResult<&'b [u8]>
    where
        'a: 'b,
    {
        let own = self.metadata;
        if own.is_empty() {
            return Ok(kind);
        }
        if !kind.is_empty() {
            let words = "metadata goes only with a value of bytes, since other values use it for their type; convert the value to bytes";
            return Err(exception(py, "InvalidError", words));
        }
        if let [byte] = own
            && value::is_kind(*byte)
        {
            let words = format!("metadata of the single byte {byte:#04x} means a type of value; add another byte");
            return Err(exception(py, "InvalidError", &words));
        }
        Ok(own)
    }

    /// Runs `work` with the engine's form of these options.
    #[inline]
    pub(crate) fn with<T>(&self, metadata: &[u8], work: impl FnOnce(&PutOptions<'_>) -> T) -> T {
        let mut options = PutOptions::new().metadata(metadata);
        if let Some(ttl) = self.ttl {
            options = options.ttl(ttl).stale(self.stale);
        }
        if let Some(epoch) = self.begun_in {
            options = options.begun_in(epoch);
        }
        if self.tags.is_empty() {
            return work(&options);
        }
        let tags: Vec<&str> = self.tags.iter().map(|tag| &**tag).collect();
        work(&options.tags(&tags))
    }
}
