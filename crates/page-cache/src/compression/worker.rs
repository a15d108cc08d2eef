//! The queue of forms to make, and the thread that makes them.
//!
//! The thread ends when the queue is empty, and the next job starts another one. It does the work in the volume at the usual
//! priority, because other writers may wait for its locks. Each form is encoded by a short-lived thread of its own, whose priority is
//! the lowest: it gets the time that nobody else wants.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use eyewall_http::coding::Coding;

use super::encode::encode;
use super::form;
use crate::head::{Compressible, Head, Kind, Version};
use crate::pages::Pages;
use crate::recent_keys::RecentKeys;
use crate::store::{Found, Store, Times};

/// The most jobs that wait. Each has only a key.
const JOBS_MAX: usize = 256;

static QUEUE: Mutex<Queue> = Mutex::new(Queue { jobs: VecDeque::new(), is_running: false });

struct Queue {
    jobs: VecDeque<Job>,
    /// Whether a thread takes the jobs. It clears this under the lock when it finds none.
    is_running: bool,
}

/// A form to make.
struct Job {
    store: Weak<Store>,
    /// The key of the identity.
    key: Vec<u8>,
    /// The version of the identity.
    version: Version,
    coding: Coding,
    /// The forms that were asked for.
    asked: Arc<RecentKeys>,
}

impl Pages {
    /// Asks for a form of the response under this key. It is made soon, unless the queue is full.
    pub fn ask_for_form(&self, key: &[u8], Compressible { version, .. }: Compressible, coding: Coding) {
        let (asked, form) = (&self.asked_forms, noted(&form::key(key, coding), version));
        if asked.contains(&form) {
            return;
        }
        asked.insert(&form);
        let (store, asked) = (Arc::downgrade(&self.store), Arc::clone(asked));
        let job = Job { store, key: key.to_vec(), version, coding, asked };
        let mut queue = queue();
        if queue.jobs.len() < JOBS_MAX {
            queue.jobs.push_back(job);
        }
        if !queue.is_running {
            let thread = thread::Builder::new().name("compression".to_owned());
            queue.is_running =
                thread.spawn(run).inspect_err(|error| tracing::debug!(%error, "no thread to compress")).is_ok();
        }
    }
}

/// A form in the table of those that were asked for.
fn noted(key: &[u8], version: Version) -> Vec<u8> {
    [key, &version.get().to_le_bytes()].concat()
}

fn queue() -> MutexGuard<'static, Queue> {
    QUEUE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does all jobs.
fn run() {
    let _running = Running;
    while let Some(job) = next() {
        let form = noted(&form::key(&job.key, job.coding), job.version);
        if job.run().is_some() {
            // It can be evicted, and asked for again.
            job.asked.remove(&form);
        }
    }
}

fn next() -> Option<Job> {
    let mut queue = queue();
    let job = queue.jobs.pop_front();
    queue.is_running = job.is_some();
    job
}

/// Lets another thread take over after a panic.
struct Running;

impl Drop for Running {
    fn drop(&mut self) {
        if thread::panicking() {
            queue().is_running = false;
        }
    }
}

impl Job {
    /// None: there is no such form now.
    fn run(&self) -> Option<()> {
        let store = self.store.upgrade()?;
        let is_identity = |found: &Found| found.head.compressible.is_some_and(|found| found.version == self.version);
        let identity = store.glance(&self.key).found().filter(is_identity)?;
        let key = form::key(&self.key, self.coding);
        let times = Times { fresh: identity.usable_left(), stale: Duration::ZERO };
        match store.glance(&key).found() {
            // A soft purge of keys by their prefix has covered it. It is still right.
            Some(form) if form.head.kind == Kind::Form(self.version) => {
                return (!form.is_stale || store.renew(&key, &form, times, None)).then_some(());
            }
            Some(outdated) => store.remove_found(&key, &outdated),
            None => {}
        }
        let _claim = store.claim(&key, Duration::ZERO, &|| true)?;
        if store.has(&key, |head| head.kind == Kind::Form(self.version)) {
            return Some(());
        }
        let form = encoded(self.coding, identity.bytes())?;
        let form = if is_smaller(form.len(), identity.bytes().len()) { form } else { Vec::new() };
        store.keep(&key, &Head::bare(Kind::Form(self.version)), &[Bytes::from(form)], times, &[], None)?;
        Some(())
    }
}

/// Whether a form of this length is worth its place.
fn is_smaller(form: usize, identity: usize) -> bool {
    form <= identity / 10 * 9
}

/// The bytes in a coding, made by a thread of the lowest priority. None: the encoder failed.
fn encoded(coding: Coding, bytes: &[u8]) -> Option<Vec<u8>> {
    let encoding = || {
        lower_priority();
        encode(coding, bytes)
    };
    let encoded = thread::scope(|scope| {
        let thread = thread::Builder::new().name("encoder".to_owned()).spawn_scoped(scope, encoding);
        // The thread has already logged a panic.
        thread?.join().unwrap_or_else(|_| Err(std::io::Error::other("the encoder panicked")))
    });
    encoded.inspect_err(|error| tracing::warn!(%error, coding = coding.name(), "a response was not compressed")).ok()
}

/// Gives this thread the lowest priority.
fn lower_priority() {
    // Linux has a priority for each thread. Elsewhere this would change that of the process.
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::setpriority_process(None, 19) {
        tracing::debug!(%error, "the encoder keeps its priority");
    }
}
