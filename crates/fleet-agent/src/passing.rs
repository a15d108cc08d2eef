//! The purges of an outbox on their way into the log.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use eyewall::{Cache, Outbox, Purge, PurgeOf};
use eyewall_fleet_redis::Fleet;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::watch::Watch;
use crate::words::Purging;

/// How often the reader looks if nothing wakes it. Another process may have removed the file, or have given up the turn.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How many purges are on their way to the log at once.
const BATCH_MAX: usize = 256;
/// How long a purge waits before it asks again whether the log takes it.
const RETRY_AFTER: Duration = Duration::from_millis(100);
/// If an outbox has become as long, because it is never read to its end, purges have to wait for a moment.
const LONG_BYTES: u64 = 1 << 20;
/// For how long at most.
const HOLD_TIME: Duration = Duration::from_millis(100);

/// How far the purges of a volume's outbox are in the log, for those who must not miss one.
#[derive(Debug)]
pub(crate) struct Progress {
    /// A volume without a file has no outbox: no other program can purge there.
    has_file: bool,
    outbox: OnceLock<PathBuf>,
    /// All records up to here are in the log. [`UNKNOWN`] while the file is emptied, and while it is another process's turn to read it.
    passed: AtomicU64,
}

const UNKNOWN: u64 = u64::MAX;

impl Progress {
    pub(crate) fn of(cache: &Cache) -> Arc<Self> {
        let (has_file, passed) = (cache.path().is_some(), AtomicU64::new(UNKNOWN));
        Arc::new(Self { has_file, outbox: OnceLock::new(), passed })
    }

    /// Lets the fleet take foreign responses only while no purge of a program is on its way into the log. A purge leaves the outbox when
    /// its line is noted, so it can't be missed by both (N11).
    pub(crate) fn guard(self: &Arc<Self>, fleet: &Fleet) {
        let progress = Arc::clone(self);
        fleet.takes_only_if(move || progress.is_all_passed());
    }

    /// Whether all purges of the outbox were in the log, and read from there, at a moment of this call.
    fn is_all_passed(&self) -> bool {
        let passed = self.passed.load(SeqCst);
        let Some(outbox) = self.outbox.get() else { return !self.has_file };
        let bytes = std::fs::metadata(outbox).map(|data| data.len());
        // Meanwhile, nobody has emptied the file.
        bytes.is_ok_and(|bytes| bytes == passed) && self.passed.load(SeqCst) == passed
    }

    fn forget(&self, outbox: &mut Outbox) -> eyewall::Result<bool> {
        self.passed.store(UNKNOWN, SeqCst);
        let forgot = outbox.forget();
        self.passed.store(outbox.bytes_read(), SeqCst);
        forgot
    }
}

/// A thread that passes the purges of a volume's outbox on to the fleet, whenever it is this process's turn. Dropping this ends it.
pub struct Passing {
    /// Nothing is sent on it: dropping it ends the thread.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Passing {
    /// Makes the outbox, and starts.
    ///
    /// # Errors
    /// The system's, if it gives no thread or runtime.
    pub fn start(cache: &Cache, fleet: Arc<Fleet>) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel();
        let mut turns = Turns::new(cache.clone());
        let progress = Progress::of(cache);
        progress.guard(&fleet);
        // Purges that come as soon as this returns must find it.
        let first = turns.take();
        let work = async move {
            let mut turn = first;
            loop {
                match &mut turn {
                    Some(outbox) => pass_all(outbox, &fleet, &progress).await,
                    None => tokio::time::sleep(LOOK_EVERY).await,
                }
                // The old one ends before it is asked for a new one.
                drop(turn.take());
                turn = turns.take();
            }
        };
        let run = move || {
            runtime.block_on(async {
                tokio::select! {
                    _ = stopped => {}
                    () = work => {}
                }
            });
        };
        let thread = std::thread::Builder::new().name("outbox".to_owned()).spawn(run)?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Passing {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // The thread has logged a panic already.
            let _ = thread.join();
        }
    }
}

/// Asks for the turn to read an outbox.
pub(crate) struct Turns {
    cache: Cache,
    has_warned: bool,
}

impl Turns {
    pub(crate) fn new(cache: Cache) -> Self {
        Self { cache, has_warned: false }
    }

    /// The outbox; `None` if it is another process's turn, or if there can be no outbox.
    pub(crate) fn take(&mut self) -> Option<Outbox> {
        let taken = self.cache.outbox();
        let error = taken.as_ref().err().map(ToString::to_string);
        if let Some(error) = error
            && !std::mem::replace(&mut self.has_warned, true)
        {
            tracing::warn!(%error, "purges that programs make in the volume can't be passed on to the fleet");
        }
        taken.ok().flatten()
    }
}

/// Passes purges on, until another process has the turn.
pub(crate) async fn pass_all(outbox: &mut Outbox, fleet: &Arc<Fleet>, progress: &Progress) {
    // All turns have the same path.
    progress.outbox.get_or_init(|| outbox.path().to_owned());
    let watch = Watch::new().ok();
    let mut has_warned = false;
    loop {
        if let Some(watch) = &watch {
            watch.begin(outbox.path());
        }
        match pass_some(outbox, fleet, progress).await {
            Ok(true) => continue,
            Ok(false) if !outbox.is_reader() => return progress.passed.store(UNKNOWN, SeqCst),
            Ok(false) => {}
            Err(error) => {
                if !std::mem::replace(&mut has_warned, true) {
                    tracing::warn!(%error, "purges that programs make in the volume can't be passed on to the fleet");
                }
                tokio::time::sleep(LOOK_EVERY).await;
            }
        }
        match &watch {
            Some(watch) => {
                // A timeout is as good.
                let _ = tokio::time::timeout(LOOK_EVERY, watch.changed()).await;
            }
            None => tokio::time::sleep(RETRY_AFTER).await,
        }
    }
}

/// Passes on what is there, and returns when the log has it. False: nothing was there.
async fn pass_some(outbox: &mut Outbox, fleet: &Arc<Fleet>, progress: &Progress) -> eyewall::Result<bool> {
    let purges = outbox.read()?;
    if purges.is_empty() {
        progress.forget(outbox)?;
        return Ok(false);
    }
    write(fleet, purges).await;
    if !progress.forget(outbox)? && outbox.bytes_read() > LONG_BYTES && outbox.hold()? {
        let done = pass_rest(outbox, fleet, progress).await;
        outbox.release();
        done?;
    }
    Ok(true)
}

/// Passes the rest on while no purge can be added, and empties the outbox.
async fn pass_rest(outbox: &mut Outbox, fleet: &Arc<Fleet>, progress: &Progress) -> eyewall::Result<()> {
    let mut rest = Vec::new();
    loop {
        let more = outbox.read()?;
        if more.is_empty() {
            break;
        }
        rest.extend(more);
    }
    let mut writing = Box::pin(write(fleet, rest));
    if tokio::time::timeout(HOLD_TIME, &mut writing).await.is_ok() {
        return progress.forget(outbox).map(|_| ());
    }
    outbox.release();
    // All purges that were read must be in the log before any is forgotten.
    writing.await;
    Ok(())
}

/// Writes purges to the log, and waits until it has them, for as long as that takes.
async fn write(fleet: &Arc<Fleet>, purges: Vec<(PurgeOf, Purge)>) {
    let mut writing = JoinSet::new();
    for (what, kind) in purges {
        if writing.len() >= BATCH_MAX {
            writing.join_next().await;
        }
        let fleet = Arc::clone(fleet);
        let line = Purging::new(vec![what.into()], kind).encode();
        writing.spawn(async move {
            while !fleet.write(line.clone()).await {
                tokio::time::sleep(RETRY_AFTER).await;
            }
        });
    }
    while writing.join_next().await.is_some() {}
}
