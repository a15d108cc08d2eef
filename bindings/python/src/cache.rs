//! The class of a volume: all that is asked of it.

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

/// So many keys are looked up at a time: what is found is held meanwhile, in place as far as the engine allows.
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

    /// Leaves the volume; the last process to leave writes it to storage. Views, claims and writers live on.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let left = match self.open.try_write() {
            Ok(mut open) => open.take(),
            Err(TryLockError::Poisoned(open)) => open.into_inner().take(),
            Err(TryLockError::WouldBlock) => {
                return Err(PyRuntimeError::new_err("a call of this cache is under way; close it when that is done"));
            }
        };
        // The last process to leave writes the volume to storage.
        py.detach(move || drop(left));
        Ok(())
    }

    #[getter]
    fn closed(&self) -> bool {
        self.open.read().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    /// The value of a key, copied; `default` where there is none. Keeps the interpreter's lock: it takes less than a microsecond.
    #[pyo3(signature = (key, default=None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: Key<'_>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(self.found(py, key)?.or(default))
    }

    /// As `get`, but a miss isn't counted: for a short way, with a longer one behind it that looks again.
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

    /// The values of those keys that have one. Faster than one by one.
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

    /// The bytes of a value where they lie, for reading only; None where there is none.
    ///
    /// They stay as they are, and can't be evicted, until the last view of them is gone: hold it for as long as you read. A
    /// forked child must not read what its parent holds: a new view of it there is refused by a `BufferError`.
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

    /// All that is known about a key: fresh, stale, or negative; None: nothing.
    fn lookup(&self, py: Python<'_>, key: Key<'_>) -> PyResult<Option<Entry>> {
        let found = self.with(py, |open| match open.lookup(key.0).or_raise(py)? {
            Lookup::Fresh(hit) | Lookup::Stale(hit) | Lookup::Negative(hit) => Found::of(py, &hit).map(Some),
            Lookup::Miss => Ok(None),
        })?;
        found.map(|found| found.decoded(&self.codec)).transpose()
    }

    /// Stores a value for `ttl` seconds (None: until it is evicted), usable as a stale one for `stale` after that; its serial.
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

    /// Stores a value if there is none; its serial, or None: there is one.
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

    /// Stores a value if the entry still has this serial; None: it has another, has expired or is gone.
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

    /// Notes that there is nothing, and why: a number from 0 to 65535. `lookup` gives it, `get` misses.
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

    /// Removes an entry, of this serial only if one is given; False: there was none.
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

    /// From now on the entry is valid for `ttl` (None: until it is evicted); False: there is none, or one of another `serial` than is given.
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

    /// Adds to an integer, in one step over all processes and languages; what it is then. An absent one begins at `start`.
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

    /// Purges all entries with this tag; softly: makes them stale.
    #[pyo3(signature = (tag, *, soft=false))]
    fn purge_tag(&self, py: Python<'_>, tag: &str, soft: bool) -> PyResult<()> {
        self.detached(py, |open| open.purge_tag(tag, kind(soft)))
    }

    /// Purges all entries whose key begins so.
    #[pyo3(signature = (prefix, *, soft=false))]
    fn purge_prefix(&self, py: Python<'_>, prefix: Key<'_>, soft: bool) -> PyResult<()> {
        self.detached(py, |open| open.purge_prefix(prefix.0, kind(soft)))
    }

    /// Purges everything, in the time of a few stores.
    #[pyo3(signature = (*, soft=false))]
    fn purge_all(&self, py: Python<'_>, soft: bool) -> PyResult<()> {
        self.detached(py, |open| open.purge_all(kind(soft)))
    }

    /// Removes all entries, one by one; how many.
    fn clear(&self, py: Python<'_>) -> PyResult<u64> {
        self.detached(py, eyewall::Cache::clear)
    }

    /// Drops what is purged or over; how many. Nobody needs to call it.
    fn sweep(&self, py: Python<'_>) -> PyResult<u64> {
        self.detached(py, eyewall::Cache::sweep)
    }

    /// Brings everything to storage, and waits for it.
    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        self.detached(py, eyewall::Cache::sync)
    }

    /// Maps every page now, so that no later read faults.
    fn populate(&self, py: Python<'_>) -> PyResult<()> {
        self.detached(py, eyewall::Cache::populate)
    }

    /// Whether reading the value would find it in memory; None: there is none.
    fn is_resident(&self, py: Python<'_>, key: Key<'_>) -> PyResult<Option<bool>> {
        self.with(py, |open| open.is_resident(key.0).or_raise(py))
    }

    /// Reads the entry into memory; False: there is none.
    fn prefault(&self, py: Python<'_>, key: Key<'_>) -> PyResult<bool> {
        self.detached(py, |open| open.prefault(key.0))
    }

    /// Claims a key, to look at its entry and change it: one at a time over all processes. Plain puts don't wait for it.
    fn claim(slf: &Bound<'_, Self>, key: Key<'_>) -> PyResult<Claim> {
        Claim::begin(slf, key.0)
    }

    /// The state of a key's entry, and what goes with it: the value, the reason, or a flight. While it waits, it asks now and then whether that is
    /// wanted still.
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

    /// Begins to write a value of bytes piece by piece; `length` is its length if it is known.
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

    /// Reads what somebody is writing to a key, whatever process it is, from its first byte on; None: nobody is. Bytes come before their writer
    /// has vouched for them: until the end was reached they may come to nothing.
    fn follow(&self, py: Python<'_>, key: Key<'_>) -> PyResult<Option<Follower>> {
        let found = self.with(py, |open| open.follow(key.0).or_raise(py))?;
        Ok(found.map(|follower| Follower::new(py, follower)))
    }

    /// This moment, for `begun_in`: what is stored with it counts as stored now, so that what is purged from now on purges it, too. To be asked
    /// for before whatever the value is made of is read.
    fn now(&self, py: Python<'_>) -> PyResult<Epoch> {
        self.with(py, |open| open.epoch().or_raise(py)).map(Epoch)
    }

    fn __iter__(slf: &Bound<'_, Self>) -> PyResult<Walk> {
        Walk::begin(slf, Wanted::Keys)
    }

    /// All keys, in no order: `str` where they are UTF-8, else `bytes`.
    fn keys(slf: &Bound<'_, Self>) -> PyResult<Walk> {
        Walk::begin(slf, Wanted::Keys)
    }

    fn values(slf: &Bound<'_, Self>) -> PyResult<Walk> {
        Walk::begin(slf, Wanted::Values)
    }

    fn items(slf: &Bound<'_, Self>) -> PyResult<Walk> {
        Walk::begin(slf, Wanted::Items)
    }

    /// Numbers about the volume, over all processes. Looks at the whole index.
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

    /// Why the volume's size is no promise on its file system, if it isn't.
    #[getter]
    fn storage_warning(&self, py: Python<'_>) -> PyResult<Option<&'static str>> {
        self.with(py, |open| Ok(open.storage_warning()))
    }
}
