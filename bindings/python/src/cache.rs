//! The class of a volume, with all its operations.

use std::path::PathBuf;
use std::sync::{PoisonError, RwLock, TryLockError};
use std::time::Duration;

use eyewall::{Counter, Lookup, Purge, Touch};
use pyo3::exceptions::{PyKeyError, PyRuntimeError};
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMemoryView};
use pyo3::{IntoPyObjectExt, PyTraverseError, intern};

use crate::arguments::{Beside, Epoch, Key, Seconds, Tags};
use crate::claim::Claim;
use crate::entry::{Entry, Found};
use crate::errors::OrRaise;
use crate::fill::{self, Answer};
use crate::follower::Follower;
use crate::handle::Cache;
use crate::open::OpenOptions;
use crate::value::{Codec, INTEGER, Stored};
use crate::view::View;
use crate::walk::{Walk, Wanted};
use crate::writer::Writer;

/// Number of keys that are looked up at a time. Their hits are held meanwhile, in place as far as the engine
/// allows.
const TOGETHER: usize = 16;

fn kind(soft: bool) -> Purge {
    if soft { Purge::Soft } else { Purge::Hard }
}

#[pymethods]
impl Cache {
    #[new]
    #[pyo3(signature = (path, options, *, kind, dumps, loads, loads_other))]
    fn new(
        py: Python<'_>,
        path: Option<PathBuf>,
        options: OpenOptions,
        kind: u8,
        dumps: Option<Py<PyAny>>,
        loads: Option<Py<PyAny>>,
        loads_other: Py<PyAny>,
    ) -> PyResult<Self> {
        let open = py.detach(move || options.open(path)).or_raise(py)?;
        Ok(Self { open: RwLock::new(Some(open)), codec: Codec { kind, dumps, loads, loads_other } })
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.codec.traverse(&visit)
    }

    /// Closes the cache. The last process that leaves a volume writes it to storage. Views, claims and
    /// writers stay usable.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let left = match self.open.try_write() {
            Ok(mut open) => open.take(),
            Err(TryLockError::Poisoned(open)) => open.into_inner().take(),
            Err(TryLockError::WouldBlock) => {
                return Err(PyRuntimeError::new_err(
                    "another thread uses this cache; close it when that call has returned",
                ));
            }
        };
        py.detach(move || drop(left));
        Ok(())
    }

    #[getter]
    fn closed(&self) -> bool {
        self.open.read().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    /// Returns a copy of the value, or `default` if there is none. Keeps the interpreter's lock, since a
    /// look-up takes less than a microsecond.
    #[pyo3(signature = (key, default=None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: Key<'_>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(self.found(py, key)?.or(default))
    }

    /// As `get`, but a miss isn't counted: the fast path calls it, and the full path looks again.
    #[pyo3(signature = (key, default=None))]
    fn _look<'py>(
        &self,
        py: Python<'py>,
        key: Key<'_>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let stored = self.with(py, |open| match open.get_if(key.0, |_| true).or_raise(py)? {
            Some(hit) => Stored::of(py, &hit).map(Some),
            None => Ok(None),
        })?;
        let found = stored.map(|stored| stored.decoded(&self.codec)).transpose()?;
        Ok(found.or(default))
    }

    fn __getitem__<'py>(&self, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let found = self.found(key.py(), key.extract()?)?;
        found.ok_or_else(|| PyKeyError::new_err(key.clone().unbind()))
    }

    fn __setitem__(&self, key: Key<'_>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.put(key, value, None, None, None, None, None)?;
        Ok(())
    }

    fn __delitem__(&self, key: &Bound<'_, PyAny>) -> PyResult<()> {
        let is_removed = self.remove(key.py(), key.extract()?, None)?;
        if is_removed { Ok(()) } else { Err(PyKeyError::new_err(key.clone().unbind())) }
    }

    fn __contains__(&self, py: Python<'_>, key: Key<'_>) -> PyResult<bool> {
        self.with(py, |open| open.contains(key.0).or_raise(py))
    }

    /// Returns the values of those keys that have one. Faster than one call per key.
    #[pyo3(signature = (keys, /))]
    fn get_many<'py>(&self, py: Python<'py>, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDict>> {
        let keys = keys.try_iter()?.collect::<PyResult<Vec<_>>>()?;
        let values = PyDict::new(py);
        for keys in keys.chunks(TOGETHER) {
            let wanted = keys.iter().map(|key| Ok(key.extract::<Key<'_>>()?.0)).collect::<PyResult<Vec<_>>>()?;
            let found = self.with(py, |open| {
                let hits = open.get_many(&wanted).or_raise(py)?;
                let stored = hits.iter().map(|hit| hit.as_ref().map(|hit| Stored::of(py, hit)).transpose());
                stored.collect::<PyResult<Vec<_>>>()
            })?;
            for (key, stored) in keys.iter().zip(found) {
                if let Some(stored) = stored {
                    values.set_item(key, stored.decoded(&self.codec)?)?;
                }
            }
        }
        Ok(values)
    }

    /// Returns a read-only view of a value's bytes, without a copy; None if there is none.
    ///
    /// The bytes can't change or be evicted while a view of them exists, so hold a view only while you read.
    /// A forked child must not read its parent's views: a new view of them raises `BufferError` there.
    fn get_view<'py>(&self, py: Python<'py>, key: Key<'_>) -> PyResult<Option<Bound<'py, PyMemoryView>>> {
        let held = self.with(py, |open| {
            let hit = open.get(key.0).or_raise(py)?;
            if let Some(hit) = &hit {
                hit.check_intact().or_raise(py)?;
            }
            Ok(hit.map(eyewall::Hit::into_owned))
        })?;
        let Some(held) = held else { return Ok(None) };
        let view = Bound::new(py, View(held))?;
        PyMemoryView::from(view.as_any()).map(Some)
    }

    /// Returns an entry in any state: fresh, stale or negative; None if there is none.
    fn lookup(&self, py: Python<'_>, key: Key<'_>) -> PyResult<Option<Entry>> {
        let found = self.with(py, |open| match open.lookup(key.0).or_raise(py)? {
            Lookup::Fresh(hit) | Lookup::Stale(hit) | Lookup::Negative(hit) => Found::of(py, &hit).map(Some),
            Lookup::Miss => Ok(None),
        })?;
        found.map(|found| found.decoded(&self.codec)).transpose()
    }

    /// Stores a value and returns its serial. It is valid for `ttl` seconds (None: until it is evicted), and
    /// may be used as a stale one for `stale` seconds after that.
    #[pyo3(signature = (key, value, *, ttl=None, stale=None, tags=None, metadata=None, begun_in=None))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords where it is called")]
    fn put(
        &self,
        key: Key<'_>,
        value: &Bound<'_, PyAny>,
        ttl: Option<Seconds>,
        stale: Option<Seconds>,
        tags: Option<Tags>,
        metadata: Option<&[u8]>,
        begun_in: Option<&Bound<'_, Epoch>>,
    ) -> PyResult<u64> {
        self.store(value, &Beside::new(ttl, stale, tags).and(metadata, begun_in), |open, bytes, options| {
            open.put_with(key.0, bytes, options)
        })
    }

    /// Stores a value if there is no valid entry. Returns its serial, or None if there is an entry.
    #[pyo3(signature = (key, value, *, ttl=None, stale=None, tags=None, metadata=None, begun_in=None))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords where it is called")]
    fn add(
        &self,
        key: Key<'_>,
        value: &Bound<'_, PyAny>,
        ttl: Option<Seconds>,
        stale: Option<Seconds>,
        tags: Option<Tags>,
        metadata: Option<&[u8]>,
        begun_in: Option<&Bound<'_, Epoch>>,
    ) -> PyResult<Option<u64>> {
        self.store(value, &Beside::new(ttl, stale, tags).and(metadata, begun_in), |open, bytes, options| {
            open.add(key.0, bytes, options)
        })
    }

    /// Stores a value if the entry still has this serial. Returns the new serial, or None if the entry has
    /// another serial, has expired or is gone.
    #[pyo3(signature = (key, serial, value, *, ttl=None, stale=None, tags=None, metadata=None, begun_in=None))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords where it is called")]
    fn replace(
        &self,
        key: Key<'_>,
        serial: u64,
        value: &Bound<'_, PyAny>,
        ttl: Option<Seconds>,
        stale: Option<Seconds>,
        tags: Option<Tags>,
        metadata: Option<&[u8]>,
        begun_in: Option<&Bound<'_, Epoch>>,
    ) -> PyResult<Option<u64>> {
        let beside = Beside::new(ttl, stale, tags).and(metadata, begun_in);
        self.store(value, &beside, |open, bytes, options| open.replace_if(key.0, serial, bytes, options))
    }

    /// Stores a negative entry with a reason code from 0 to 65535. `lookup` returns it; `get` misses. Returns
    /// its serial.
    #[pyo3(signature = (key, reason, *, ttl=None, tags=None, begun_in=None))]
    fn put_negative(
        &self,
        py: Python<'_>,
        key: Key<'_>,
        reason: u16,
        ttl: Option<Seconds>,
        tags: Option<Tags>,
        begun_in: Option<&Bound<'_, Epoch>>,
    ) -> PyResult<u64> {
        let beside = Beside::new(ttl, None, tags).and(None, begun_in);
        self.with(py, |open| beside.with(&[], |options| open.put_negative(key.0, reason, options)).or_raise(py))
    }

    /// Removes an entry; with `serial`, only if it has that serial. Returns whether it did.
    #[pyo3(signature = (key, *, serial=None))]
    fn remove(&self, py: Python<'_>, key: Key<'_>, serial: Option<u64>) -> PyResult<bool> {
        self.with(py, |open| {
            match serial {
                Some(serial) => open.remove_if(key.0, serial),
                None => open.remove(key.0),
            }
            .or_raise(py)
        })
    }

    /// Gives the entry a new time to live (None: until it is evicted). Returns False if there is no entry, or
    /// if it has another serial than `serial`.
    #[pyo3(signature = (key, ttl=None, *, stale=None, serial=None, begun_in=None))]
    fn touch(
        &self,
        py: Python<'_>,
        key: Key<'_>,
        ttl: Option<Seconds>,
        stale: Option<Seconds>,
        serial: Option<u64>,
        begun_in: Option<&Bound<'_, Epoch>>,
    ) -> PyResult<bool> {
        let stale = stale.map_or(Duration::ZERO, |stale| stale.0);
        let mut touch = Touch::new().ttl(ttl.map(|ttl| ttl.0).filter(|ttl| *ttl != Duration::MAX), stale);
        if let Some(serial) = serial {
            touch = touch.if_serial(serial);
        }
        if let Some(epoch) = begun_in {
            touch = touch.begun_in(epoch.get().0);
        }
        self.with(py, |open| open.touch(key.0, &touch).or_raise(py))
    }

    /// Adds to an integer, atomically over all processes and languages, and returns the sum. A missing
    /// counter begins at `start`.
    #[expect(clippy::too_many_arguments, reason = "they are keywords where it is called")]
    #[pyo3(signature = (key, by=1, *, start=0, min=i64::MIN, max=i64::MAX, ttl=None, tags=None))]
    fn increment(
        &self,
        py: Python<'_>,
        key: Key<'_>,
        by: i64,
        start: i64,
        min: i64,
        max: i64,
        ttl: Option<Seconds>,
        tags: Option<Tags>,
    ) -> PyResult<i64> {
        let counter = Counter::new().start(start).bounds(min, max);
        let beside = Beside::new(ttl, None, tags);
        self.with(py, |open| {
            beside.with(&[INTEGER], |options| open.increment(key.0, by, &counter.options(*options))).or_raise(py)
        })
    }

    /// Purges all entries with this tag. A soft purge makes them stale.
    #[pyo3(signature = (tag, *, soft=false))]
    fn purge_tag(&self, py: Python<'_>, tag: &str, soft: bool) -> PyResult<()> {
        self.detached(py, |open| open.purge_tag(tag, kind(soft)))
    }

    /// Purges all entries whose keys begin with this prefix.
    #[pyo3(signature = (prefix, *, soft=false))]
    fn purge_prefix(&self, py: Python<'_>, prefix: Key<'_>, soft: bool) -> PyResult<()> {
        self.detached(py, |open| open.purge_prefix(prefix.0, kind(soft)))
    }

    /// Purges all entries, in microseconds.
    #[pyo3(signature = (*, soft=false))]
    fn purge_all(&self, py: Python<'_>, soft: bool) -> PyResult<()> {
        self.detached(py, |open| open.purge_all(kind(soft)))
    }

    /// Removes all entries, one by one, and returns how many.
    fn clear(&self, py: Python<'_>) -> PyResult<u64> {
        self.detached(py, eyewall::Cache::clear)
    }

    /// Removes purged and expired entries, and returns how many. It is never necessary.
    fn sweep(&self, py: Python<'_>) -> PyResult<u64> {
        self.detached(py, eyewall::Cache::sweep)
    }

    /// Writes everything to storage, and waits for it.
    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        self.detached(py, eyewall::Cache::sync)
    }

    /// Maps every page now, so that later reads cause no page fault.
    fn populate(&self, py: Python<'_>) -> PyResult<()> {
        self.detached(py, eyewall::Cache::populate)
    }

    /// Whether the whole value is in memory, so that reading it needn't wait for storage; None if there is no
    /// entry.
    fn is_resident(&self, py: Python<'_>, key: Key<'_>) -> PyResult<Option<bool>> {
        self.with(py, |open| open.is_resident(key.0).or_raise(py))
    }

    /// Reads the entry into memory. Returns False if there is none.
    fn prefault(&self, py: Python<'_>, key: Key<'_>) -> PyResult<bool> {
        self.detached(py, |open| open.prefault(key.0))
    }

    /// Claims a key to read and change its entry. Only one claim of a key stands at a time, over all
    /// processes. Plain puts don't wait for it.
    fn claim(slf: &Bound<'_, Self>, key: Key<'_>) -> PyResult<Claim> {
        Claim::begin(slf, key.0)
    }

    /// The state of a key's entry, with its value, its reason or a flight. While it waits, it calls
    /// `is_wanted` now and then, and stops waiting when that returns false.
    #[pyo3(signature = (key, wait, use_stale, is_wanted=None))]
    fn _begin_fill<'py>(
        slf: &Bound<'py, Self>,
        key: Key<'_>,
        wait: Seconds,
        use_stale: bool,
        is_wanted: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<(&'static str, Bound<'py, PyAny>)> {
        let py = slf.py();
        Ok(match fill::begin(slf, key.0, (wait.0, is_wanted), use_stale)? {
            Answer::Found(stored) => ("found", stored.decoded(slf.get().codec())?),
            Answer::Negative(reason) => ("negative", reason.into_bound_py_any(py)?),
            Answer::Ours(flight) => ("ours", Bound::new(py, flight)?.into_any()),
        })
    }

    /// Returns a writer for a value of bytes that comes piece by piece. Give its `length` if you know it.
    #[pyo3(signature = (key, *, length=None, ttl=None, stale=None, tags=None, metadata=None, begun_in=None))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords where it is called")]
    fn writer(
        &self,
        py: Python<'_>,
        key: Key<'_>,
        length: Option<u64>,
        ttl: Option<Seconds>,
        stale: Option<Seconds>,
        tags: Option<Tags>,
        metadata: Option<&[u8]>,
        begun_in: Option<&Bound<'_, Epoch>>,
    ) -> PyResult<Writer> {
        let beside = Beside::new(ttl, stale, tags).and(metadata, begun_in);
        let metadata = beside.metadata(py, &[])?;
        self.detached(py, |open| beside.with(metadata, |options| open.writer(key.0, options, length))).map(Writer::new)
    }

    /// Returns a follower of the writer of a key, in any process, from the first byte on; None if nobody
    /// writes the key. The bytes come before their writer commits them: only at the end is the entry certain.
    fn follow(&self, py: Python<'_>, key: Key<'_>) -> PyResult<Option<Follower>> {
        let found = self.with(py, |open| open.follow(key.0).or_raise(py))?;
        Ok(found.map(|follower| Follower::new(py, follower)))
    }

    /// Returns the present moment, for `begun_in`. Call it before you read the data of a value. A value that
    /// is stored with it counts as older than every purge since, so that those purges apply to it.
    fn now(&self, py: Python<'_>) -> PyResult<Epoch> {
        self.with(py, |open| open.epoch().or_raise(py)).map(Epoch)
    }

    fn __iter__(slf: &Bound<'_, Self>) -> PyResult<Walk> {
        Walk::begin(slf, Wanted::Keys)
    }

    /// Iterates over all keys, in no order: `str` if they are UTF-8, else `bytes`.
    fn keys(slf: &Bound<'_, Self>) -> PyResult<Walk> {
        Walk::begin(slf, Wanted::Keys)
    }

    fn values(slf: &Bound<'_, Self>) -> PyResult<Walk> {
        Walk::begin(slf, Wanted::Values)
    }

    fn items(slf: &Bound<'_, Self>) -> PyResult<Walk> {
        Walk::begin(slf, Wanted::Items)
    }

    /// Returns statistics of the volume, over all processes. Scans the whole index.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let stats = self.detached(py, eyewall::Cache::stats)?;
        let json = serde_json::to_string(&stats).map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
        py.import("json")?.call_method1(intern!(py, "loads"), (json,))
    }

    #[getter]
    fn path(&self, py: Python<'_>) -> PyResult<Option<PathBuf>> {
        self.with(py, |open| Ok(open.path().map(Into::into)))
    }

    #[getter]
    fn size(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |open| Ok(open.size()))
    }

    #[getter]
    fn entry_bytes_max(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |open| Ok(open.entry_bytes_max()))
    }

    #[getter]
    fn is_read_only(&self, py: Python<'_>) -> PyResult<bool> {
        self.with(py, |open| Ok(open.is_read_only()))
    }

    /// Whether bytes of the volume were lost under its map (`survive_sigbus`).
    #[getter]
    fn is_failed(&self, py: Python<'_>) -> PyResult<bool> {
        self.with(py, |open| Ok(open.is_failed()))
    }

    /// Why the file system doesn't guarantee the volume's size; None if it does.
    #[getter]
    fn storage_warning(&self, py: Python<'_>) -> PyResult<Option<&'static str>> {
        self.with(py, |open| Ok(open.storage_warning()))
    }
}
