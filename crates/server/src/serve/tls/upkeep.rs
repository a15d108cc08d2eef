//! The upkeep of certificates and session tickets: a thread looks every second whether their files changed.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime};

use eyewall_tls::clock::Clock;
use eyewall_tls::{Certificates, Change, Identity, IdentityFiles, Tickets, Watched};

use crate::serve::error::Error;

/// How often the end of a certificate is logged.
const TELL_EVERY: Duration = Duration::from_hours(24);
/// How often the thread looks. Processes have a minute to learn of a new key for tickets.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The thread. Dropping this ends it.
pub(crate) struct Upkeep {
    kept: Arc<Mutex<Kept>>,
    /// Nothing is sent on it: dropping it ends the thread.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// The certificates that clients get, and why a newer one isn't used.
pub(super) struct Kept {
    pub(super) watched: Watched,
    pub(super) errors: HashMap<IdentityFiles, String>,
    /// Those that the operator renews, with the time of the last warning that they end soon.
    own: HashMap<IdentityFiles, Option<SystemTime>>,
}

impl Upkeep {
    /// The operator renews the `own` certificates.
    ///
    /// # Errors
    /// [`Error::Start`], if the system gives no thread.
    pub(super) fn start(
        watched: Watched,
        own: impl IntoIterator<Item = IdentityFiles>,
        certificates: Arc<Certificates>,
        tickets: Arc<Tickets>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, Error> {
        let own = own.into_iter().map(|files| (files, None)).collect();
        let mut kept = Kept { watched, errors: HashMap::new(), own };
        kept.tell_ends(clock.now());
        let kept = Arc::new(Mutex::new(kept));
        let (stop, stopped) = channel();
        let work = {
            let kept = Arc::clone(&kept);
            move || run(&kept, &certificates, &tickets, &*clock, &stopped)
        };
        let thread = thread::Builder::new().name("certificates".to_owned()).spawn(work).map_err(Error::Start)?;
        Ok(Self { kept, stop: Some(stop), thread: Some(thread) })
    }

    pub(super) fn kept(&self) -> MutexGuard<'_, Kept> {
        locked(&self.kept)
    }
}

impl Drop for Upkeep {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // The thread has logged a panic already.
            let _ = thread.join();
        }
    }
}

fn locked(kept: &Mutex<Kept>) -> MutexGuard<'_, Kept> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

fn run(kept: &Mutex<Kept>, certificates: &Certificates, tickets: &Tickets, clock: &dyn Clock, stopped: &Receiver<()>) {
    while stopped.recv_timeout(LOOK_EVERY) == Err(RecvTimeoutError::Timeout) {
        locked(kept).look(certificates, clock.now());
        if let Err(error) = tickets.look() {
            tracing::warn!(%error, "clients may not be able to resume their TLS sessions");
        }
    }
}

impl Kept {
    fn look(&mut self, certificates: &Certificates, now: SystemTime) {
        for change in self.watched.look(certificates) {
            match change {
                Change::Loaded { files, identity } => {
                    tracing::info!(names = identity.names().join(" "), "a new certificate is in use");
                    warn_of(&files, &identity, now);
                    self.errors.remove(&files);
                }
                Change::Kept { files, error } => {
                    tracing::warn!(%error, "the certificate from before stays in use");
                    self.errors.insert(files, error.to_string());
                }
                _ => {}
            }
        }
        self.tell_ends(now);
    }

    /// Logs the certificates that end soon, each once a day.
    fn tell_ends(&mut self, now: SystemTime) {
        for (files, identity) in self.watched.identities() {
            let Some(told) = self.own.get_mut(files) else { continue };
            let is_due = told.is_none_or(|told| now.duration_since(told).is_ok_and(|since| since >= TELL_EVERY));
            if is_due && identity.ends_soon(now) {
                *told = Some(now);
                let (file, days) = (super::shown(&files.certificate), identity.days_left(now));
                tracing::warn!(file, days, "the certificate expires soon; renew it (logged once a day)");
            }
        }
    }
}

/// Logs the problems of a certificate that can still be used.
pub(super) fn warn_of(files: &IdentityFiles, identity: &Identity, now: SystemTime) {
    for warning in identity.warnings(now) {
        tracing::warn!(file = super::shown(&files.certificate), "{warning}");
    }
}
