//! Python values as bytes of the volume.
//!
//! `bytes` are stored unchanged, without metadata. So the bytes and strings of other languages are `bytes` here, and vice versa.
//! For every other type, one byte of metadata names the type. None of these bytes begins UTF-8, or an ASCII word that another
//! program might use. A value with other metadata is `bytes`. The bytes before `SERIALIZED` are the same in PHP
//! (`bindings/php/ext/value.c`).

use eyewall::Hit;
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyInt, PyString};
use pyo3::{IntoPyObjectExt, PyTraverseError, intern};

use crate::errors::{OrRaise, exception};

/// Eight bytes, little-endian: a counter, in every language.
pub(crate) const INTEGER: u8 = 0xC0;
/// A zero byte and a little-endian double. Nine bytes, so that nobody takes it for a counter.
const FLOAT: u8 = 0xC1;
const NONE: u8 = 0xF5;
const FALSE: u8 = 0xF6;
const TRUE: u8 = 0xF7;
/// From here to the next constant (PHP's two, JSON, pickle, msgpack, an application's own), Python functions
/// decode the value.
const SERIALIZED: u8 = 0xF8;
const SERIALIZED_LAST: u8 = 0xFD;
/// The UTF-8 of a `str`.
const TEXT: u8 = 0xFE;
/// Integers beyond 64 bits, as decimal digits.
const LARGE_INTEGER: u8 = 0xFF;

/// Whether this single byte of metadata names a type.
pub(crate) fn is_kind(byte: u8) -> bool {
    matches!(byte, INTEGER | FLOAT | NONE..=LARGE_INTEGER)
}

/// How a cache serializes other types; `eyewall/_serializers.py` chooses it.
pub(crate) struct Codec {
    pub(crate) kind: u8,
    /// From a value to bytes; `None`: such values are refused.
    pub(crate) dumps: Option<Py<PyAny>>,
    /// From bytes of `kind` to the value.
    pub(crate) loads: Option<Py<PyAny>>,
    /// From another kind and bytes to the value.
    pub(crate) loads_other: Py<PyAny>,
}

impl Codec {
    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.dumps)?;
        visit.call(&self.loads)?;
        visit.call(&self.loads_other)
    }

    /// The bytes and metadata to store.
    #[inline]
    pub(crate) fn encode<'py>(&self, value: &Bound<'py, PyAny>) -> PyResult<Encoded<'py>> {
        if let Ok(bytes) = value.cast_exact::<PyBytes>() {
            return Ok(Encoded { body: Body::Bytes(bytes.clone()), metadata: None });
        }
        if let Ok(text) = value.cast_exact::<PyString>() {
            return Ok(Encoded { body: Body::Text(text.clone()), metadata: Some(TEXT) });
        }
        match Encoded::scalar(value)? {
            Some(encoded) => Ok(encoded),
            None => self.encode_structure(value),
        }
    }

    fn encode_structure<'py>(&self, value: &Bound<'py, PyAny>) -> PyResult<Encoded<'py>> {
        let py = value.py();
        let Some(dumps) = &self.dumps else { return Encoded::plain(value) };
        let bytes = dumps.bind(py).call1((value,))?;
        let Ok(bytes) = bytes.cast_into::<PyBytes>() else {
            return Err(PyTypeError::new_err("the serializer returned something other than bytes"));
        };
        Ok(Encoded { body: Body::Bytes(bytes), metadata: Some(self.kind) })
    }
}

/// A value to be stored.
pub(crate) struct Encoded<'py> {
    body: Body<'py>,
    metadata: Option<u8>,
}

enum Body<'py> {
    Bytes(Bound<'py, PyBytes>),
    Text(Bound<'py, PyString>),
    Number([u8; 9], usize),
}

impl<'py> Encoded<'py> {
    /// Encodes numbers and constants; `None` for other types.
    fn scalar(value: &Bound<'py, PyAny>) -> PyResult<Option<Self>> {
        let constant = |kind| Some(Self { body: Body::Number([0; 9], 0), metadata: Some(kind) });
        if value.is_none() {
            return Ok(constant(NONE));
        }
        if let Ok(truth) = value.cast_exact::<PyBool>() {
            return Ok(constant(if truth.is_true() { TRUE } else { FALSE }));
        }
        let mut number = [0; 9];
        if let Ok(float) = value.cast_exact::<PyFloat>() {
            number[1..].copy_from_slice(&float.value().to_le_bytes());
            return Ok(Some(Self { body: Body::Number(number, 9), metadata: Some(FLOAT) }));
        }
        if value.cast_exact::<PyInt>().is_err() {
            return Ok(None);
        }
        match value.extract::<i64>() {
            Ok(integer) => {
                number[..8].copy_from_slice(&integer.to_le_bytes());
                Ok(Some(Self { body: Body::Number(number, 8), metadata: Some(INTEGER) }))
            }
            Err(error) if error.is_instance_of::<PyOverflowError>(value.py()) => {
                Ok(Some(Self { body: Body::Text(value.str()?), metadata: Some(LARGE_INTEGER) }))
            }
            Err(error) => Err(error),
        }
    }

    /// Without a serializer: encodes subclasses of bytes and str, and buffers.
    fn plain(value: &Bound<'py, PyAny>) -> PyResult<Self> {
        let py = value.py();
        if let Ok(text) = value.cast::<PyString>() {
            return Ok(Self { body: Body::Text(text.clone()), metadata: Some(TEXT) });
        }
        // Any object with the buffer protocol.
        if let Ok(view) = pyo3::types::PyMemoryView::from(value) {
            let bytes = view.call_method0(intern!(py, "tobytes"))?.cast_into::<PyBytes>()?;
            return Ok(Self { body: Body::Bytes(bytes), metadata: None });
        }
        let class = value.get_type().name()?;
        let words = format!(
            "a value of type {class} needs a serializer; open the cache with serializer=\"json\", \"msgpack\" or \"pickle\", \
             or make bytes or str of it"
        );
        Err(exception(py, "SerializerError", &words))
    }

    pub(crate) fn bytes(&self) -> PyResult<&[u8]> {
        match &self.body {
            Body::Bytes(bytes) => Ok(bytes.as_bytes()),
            Body::Text(text) => text.to_str().map(str::as_bytes),
            Body::Number(number, length) => Ok(&number[..*length]),
        }
    }

    pub(crate) fn metadata(&self) -> &[u8] {
        self.metadata.as_slice()
    }
}

/// A copy of what a hit held; the hit is released.
pub(crate) enum Stored<'py> {
    Value(Bound<'py, PyAny>),
    Serialized(u8, Bound<'py, PyBytes>),
}

impl<'py> Stored<'py> {
    /// Copies the held bytes. No Python code runs.
    #[inline]
    pub(crate) fn of(py: Python<'py>, hit: &Hit<'_>) -> PyResult<Self> {
        let copied = match hit.metadata() {
            [kind] => Self::of_kind(py, *kind, hit),
            _ => Ok(Self::bytes(py, hit)),
        };
        // Lost bytes may not be valid text: the lost bytes are the error to report.
        hit.check_intact().or_raise(py)?;
        copied
    }

    fn bytes(py: Python<'py>, value: &[u8]) -> Self {
        Self::Value(PyBytes::new(py, value).into_any())
    }

    fn of_kind(py: Python<'py>, kind: u8, value: &[u8]) -> PyResult<Self> {
        let number = || value.last_chunk::<8>().copied().unwrap_or_default();
        Ok(Self::Value(match (kind, value.len()) {
            (TEXT, _) => PyString::from_bytes(py, value)?.into_any(),
            (INTEGER, 8) => i64::from_le_bytes(number()).into_bound_py_any(py)?,
            (LARGE_INTEGER, _) => py.get_type::<PyInt>().call1((PyString::from_bytes(py, value)?,))?,
            (FLOAT, 9) => PyFloat::new(py, f64::from_le_bytes(number())).into_any(),
            (NONE, _) => py.None().into_bound(py),
            (FALSE | TRUE, _) => PyBool::new(py, kind == TRUE).to_owned().into_any(),
            (SERIALIZED..=SERIALIZED_LAST, _) => return Ok(Self::Serialized(kind, PyBytes::new(py, value))),
            _ => return Ok(Self::bytes(py, value)),
        }))
    }

    /// Decodes the value. Python code may run.
    #[inline]
    pub(crate) fn decoded(self, codec: &Codec) -> PyResult<Bound<'py, PyAny>> {
        match self {
            Self::Value(value) => Ok(value),
            Self::Serialized(kind, bytes) => {
                let py = bytes.py();
                match &codec.loads {
                    Some(loads) if kind == codec.kind => loads.bind(py).call1((bytes,)),
                    _ => codec.loads_other.bind(py).call1((kind, bytes)),
                }
            }
        }
    }
}
