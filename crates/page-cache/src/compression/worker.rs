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
        let form = self.form_of(&identity)?;
        store.keep(&key, &Head::bare(Kind::Form(self.version)), &[Bytes::from(form)], times, &[], None)?;
        Some(())
    }
}

impl Job {
    /// The form of an identity; empty if it isn't worth its place. None: it could not be made, or bytes of the identity were lost
    /// while it was made. The form could have zeros in their place, and the identity may be intact for other processes.
    fn form_of(&self, identity: &Found) -> Option<Vec<u8>> {
        let form = encoded(self.coding, identity.bytes())?;
        let is_worth_it = is_smaller(form.len(), identity.bytes().len());
        identity.is_intact().then(|| if is_worth_it { form } else { Vec::new() })
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

#[cfg(test)]
mod tests {
    use std::fs::File;

    use eyewall_http::terms::{TERMS_BYTES, Terms};
    use http::{HeaderMap, StatusCode};

    use super::*;

    #[test]
    fn no_form_is_made_of_lost_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("volume.eyewall");
        let store =
            Arc::new(Store::new(eyewall::Options::new().size(8 << 20).survive_sigbus(true).open(&path).unwrap()));
        let kind = Kind::Response(Terms::from_bytes([0; TERMS_BYTES]).unwrap());
        let times = Times { fresh: Some(Duration::from_mins(1)), stale: Duration::ZERO };
        let page = Bytes::from("a line of a page\n".repeat(10_000));
        store.keep(b"key", &Head::new(kind, StatusCode::OK, HeaderMap::new()), &[page], times, &[], None).unwrap();
        let identity = store.glance(b"key").found().unwrap();
        let (asked, version) = (Arc::new(RecentKeys::new(None)), Version::MIN);
        let job = Job { store: Arc::downgrade(&store), key: b"key".to_vec(), version, coding: Coding::Gzip, asked };
        assert!(job.form_of(&identity).is_some_and(|form| !form.is_empty()));
        File::options().write(true).open(&path).unwrap().set_len(0).unwrap();
        assert_eq!(job.form_of(&identity), None);
    }
}
