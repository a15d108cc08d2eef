//! The collectors that get spans. Configurations with the same collector share its queue and its thread, also over a reload.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;

use http::{HeaderMap, HeaderName, HeaderValue};
use toml::Spanned;

use super::span::Span;
use crate::config::collector::CollectorUrl;
use crate::config::trace::Tracing;
use crate::serve::batching::{Lengths, Queue};
use crate::serve::error::Error;
use crate::serve::token::warn_of_readers;

/// If this many spans wait, others are dropped: the collector is too slow.
const WAITING_MAX: usize = 4096;
/// This many are sent at once.
pub(super) const BATCH: usize = 512;

/// All collectors of a server.
#[derive(Default)]
pub(crate) struct Exporters {
    open: Mutex<Vec<Open>>,
    counts: Arc<Counts>,
}

/// What became of spans. The threads that send them write, and the thread of a scrape reads. Nothing depends on it, so it needs no ordering.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) exported: AtomicU64,
    /// By queues that are closed by now.
    lost: AtomicU64,
}

/// A collector to which spans go.
pub(crate) struct Exporter {
    pub(super) queue: Arc<Queue<Span>>,
}

/// Where spans go, and with which fields.
#[derive(Clone, PartialEq)]
pub(super) struct Destination {
    pub(super) url: CollectorUrl,
    pub(super) fields: HeaderMap,
}

/// Sends the spans that wait when it is dropped.
pub(crate) struct LastSpans(pub(crate) Arc<Exporters>);

struct Open {
    destination: Destination,
    exporter: Weak<Exporter>,
    queue: Arc<Queue<Span>>,
    thread: JoinHandle<()>,
}

impl Exporters {
    /// The exporter to the collector of these settings, if they have one. If it isn't open yet, starts the thread that sends to it.
    ///
    /// # Errors
    /// [`Error::CollectorFields`], [`Error::Tls`]; [`Error::Start`], if the system gives no thread.
    pub(crate) fn open(&self, settings: Option<&Tracing>) -> Result<Option<Arc<Exporter>>, Error> {
        let Some((settings, url)) = settings.and_then(|settings| Some((settings, settings.otlp.as_ref()?))) else {
            return Ok(None);
        };
        let file = settings.otlp_headers_file.as_ref().map(Spanned::get_ref);
        let fields = file.map(|path| read_fields(path)).transpose()?.unwrap_or_default();
        let destination = Destination { url: url.get_ref().clone(), fields };
        let mut open = lock(&self.open);
        let mut same = open.iter().filter(|open| open.destination == destination);
        if let Some(exporter) = same.find_map(|open| open.exporter.upgrade()) {
            return Ok(Some(exporter));
        }
        for closed in open.extract_if(.., |open| open.thread.is_finished()) {
            self.counts.lost.fetch_add(closed.queue.lost(), Ordering::Relaxed);
        }
        let queue = Arc::new(Queue::new(Lengths { waiting_max: WAITING_MAX, batch: BATCH }));
        let thread = start(Arc::clone(&queue), &destination, &self.counts)?;
        let exporter = Arc::new(Exporter { queue: Arc::clone(&queue) });
        open.push(Open { destination, exporter: Arc::downgrade(&exporter), queue, thread });
        Ok(Some(exporter))
    }

    /// How many spans collectors have taken.
    pub(crate) fn exported(&self) -> u64 {
        self.counts.exported.load(Ordering::Relaxed)
    }

    /// How many spans no collector has taken.
    pub(crate) fn lost(&self) -> u64 {
        let open = lock(&self.open);
        let closed = self.counts.lost.load(Ordering::Relaxed);
        closed + open.iter().map(|open| open.queue.lost()).sum::<u64>()
    }

    fn end(&self) {
        let all: Vec<_> = lock(&self.open).drain(..).collect();
        for open in &all {
            open.queue.end();
        }
        for Open { queue, thread, .. } in all {
            // The thread has logged a panic already.
            let _ = thread.join();
            self.counts.lost.fetch_add(queue.lost(), Ordering::Relaxed);
        }
    }
}

impl fmt::Debug for Exporter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Exporter").finish_non_exhaustive()
    }
}

impl Drop for Exporter {
    /// No configuration has it any more, and no request.
    fn drop(&mut self) {
        self.queue.end();
    }
}

impl Drop for LastSpans {
    fn drop(&mut self) {
        self.0.end();
    }
}

#[cfg(feature = "otlp")]
fn start(queue: Arc<Queue<Span>>, destination: &Destination, counts: &Arc<Counts>) -> Result<JoinHandle<()>, Error> {
    super::sender::start(queue, destination, Arc::clone(counts))
}

/// The check of a configuration refuses `otlp` then.
#[cfg(not(feature = "otlp"))]
fn start(_: Arc<Queue<Span>>, _: &Destination, _: &Arc<Counts>) -> Result<JoinHandle<()>, Error> {
    Err(Error::Start(io::ErrorKind::Unsupported.into()))
}

/// The fields of requests to a collector: a file with lines such as `Authorization: Bearer SECRET`.
fn read_fields(path: &Path) -> Result<HeaderMap, Error> {
    let failed = |source| Error::CollectorFields { path: PathBuf::from(path), source };
    let text = std::fs::read_to_string(path).map_err(failed)?;
    warn_of_readers(path).map_err(failed)?;
    parse_fields(&text).map_err(|words| failed(io::Error::new(io::ErrorKind::InvalidData, words)))
}

/// An error names the line, and not its text, which may be a secret.
fn parse_fields(text: &str) -> Result<HeaderMap, String> {
    let mut fields = HeaderMap::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let field = line.split_once(':').and_then(|(name, value)| {
            let mut value = HeaderValue::from_str(value.trim()).ok()?;
            value.set_sensitive(true);
            Some((HeaderName::try_from(name.trim()).ok()?, value))
        });
        let (name, value) = field.ok_or_else(|| format!("line {} is no field", number + 1))?;
        fields.append(name, value);
    }
    Ok(fields)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_lines_and_a_wrong_one_is_named_without_its_text() {
        let fields = parse_fields("Authorization: Bearer secret\n\nX-Scope-OrgID: shop:1\n").unwrap();
        assert_eq!((fields.len(), &fields["authorization"]), (2, &HeaderValue::from_static("Bearer secret")));
        assert_eq!(fields["x-scope-orgid"], "shop:1");
        for wrong in ["A: b\nsecret", "A: b\nse cret: x", "A: b\na: \u{0}secret"] {
            assert_eq!(parse_fields(wrong).unwrap_err(), "line 2 is no field");
        }
        assert!(parse_fields("\n").unwrap().is_empty());
    }

    #[test]
    fn a_file_of_fields_that_cannot_be_read_is_an_error_with_its_path() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fields");
        let error = read_fields(&path).unwrap_err().to_string();
        assert!(error.contains("fields") && error.contains("Authorization"), "{error}");
        std::fs::write(&path, "nothing").unwrap();
        assert!(read_fields(&path).unwrap_err().to_string().contains("line 1 is no field"));
    }

    #[test]
    fn settings_without_a_collector_open_none() {
        let exporters = Exporters::default();
        assert!(exporters.open(None).unwrap().is_none());
        assert!(exporters.open(Some(&Tracing::default())).unwrap().is_none());
        assert_eq!((exporters.exported(), exporters.lost()), (0, 0));
    }
}
