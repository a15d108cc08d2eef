//! Certificates from an authority by ACME (RFC 8555), such as Let's Encrypt, and their renewal.
//!
//! | module | what it knows |
//! |---|---|
//! | `settings` | the operator's settings, checked |
//! | `account` | the account at the authority |
//! | `challenge` | the answers for an authority that asks |
//! | `dns` | the operator's command that sets TXT records |
//! | `order` | from an order to a certificate |
//! | `renewal` | when to renew, and when to try again |
//! | `state` | the folder that processes share |
//! | `client` | the HTTP client |
//! | `worker` | the thread that does it |
//!
//! ```text
//!            no certificate, or one that is due
//!   Waiting ----------------------------------> Ordering --issued--> Valid
//!      ^                                          |  ^                 | due
//!      |  another process has the lock            |  +-----------------+
//!      +------------------------------------------+--failed--> Failing --back-off over--> Ordering
//! ```
//! Nothing takes a working certificate away: its file is replaced by a newer one that was checked, or stays. A failure is logged, counted and
//! shown by [`Acme::status`].

mod account;
mod challenge;
mod client;
mod dns;
mod order;
mod renewal;
mod settings;
mod state;
mod worker;

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::SystemTime;

use tokio::sync::oneshot;

pub use challenge::{ChallengeKind, Challenges, HTTP_PATH};
pub use settings::{AcmeSettings, ExternalAccount, LETS_ENCRYPT, LETS_ENCRYPT_STAGING};

use crate::clock::{Clock, locked};
use crate::identity::IdentityFiles;
use state::State;

/// Why ACME can't start: a wrong setting, or something that the system doesn't give.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AcmeError {
    /// A setting is wrong.
    #[error("{what}: {reason}")]
    Setting {
        /// The setting, and what it is.
        what: String,
        /// The fault, and the remedy.
        reason: &'static str,
    },
    /// The certificates to trust can't be read.
    #[error("can't read certificates of authorities from {}: {reason}", path.display())]
    Roots {
        /// The file.
        path: PathBuf,
        /// The fault.
        reason: String,
    },
    /// The state folder can't be used.
    #[error("can't use the folder {} for certificates: {source}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The system gives no thread, or nothing to wait with.
    #[error("can't start the thread that gets certificates: {0}")]
    Thread(io::Error),
    /// Ours: the library refuses what we ask of it.
    #[error("TLS can't be set up: {0}")]
    Library(#[from] rustls::Error),
}

/// The state of a set of names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SetState {
    /// It has no certificate, or one that is due, and another process is at it.
    #[default]
    Waiting,
    /// An order is under way.
    Ordering,
    /// The certificate is good until its renewal.
    Valid,
    /// The last attempt failed. A certificate that was there before is in use.
    Failing,
}

/// The status of a set of names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SetStatus {
    /// The names.
    pub names: Vec<String>,
    /// The state that the set is in.
    pub state: SetState,
    /// Until when the certificate is valid, if there is one.
    pub not_after: Option<SystemTime>,
    /// When it is to be renewed, or when the next attempt begins.
    pub next: Option<SystemTime>,
    /// The attempts that failed since the last success, in all processes.
    pub failures: u32,
    /// Why the last attempt failed; `None` after a success.
    pub error: Option<String>,
}

/// Gets certificates for sets of names, and renews them, on a thread of its own.
///
/// Several processes may have the same folder: one works with the authority at a time, and all answer its challenges.
#[derive(Debug)]
pub struct Acme {
    state: State,
    challenges: Arc<Challenges>,
    statuses: Arc<Mutex<Vec<SetStatus>>>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Acme {
    /// Checks the settings, makes the folder, and starts the thread. Each set of names gets one certificate. Sets of one name are best: a name
    /// that fails holds up no other, and a certificate stays in use when names come and go.
    ///
    /// # Errors
    /// Faults of settings or names, and refusals of the system. A silent authority is no error: the worker tries it again.
    pub fn start(settings: AcmeSettings, sets: &[Vec<String>], clock: Arc<dyn Clock>) -> Result<Self, AcmeError> {
        let sets = settings::check(&settings, sets)?;
        let state = State::new(&settings.folder, &settings.directory);
        let failed = |source| AcmeError::Folder { path: state.folder().to_owned(), source };
        state.make().map_err(failed)?;
        let challenges = Arc::new(Challenges::open(&state.challenges()).map_err(failed)?);
        let statuses: Vec<SetStatus> =
            sets.iter().map(|names| SetStatus { names: names.clone(), ..SetStatus::default() }).collect();
        let statuses = Arc::new(Mutex::new(statuses));
        let (stop, stopped) = oneshot::channel();
        let worker = worker::Worker::new(settings, sets, state.clone(), challenges.clone(), statuses.clone(), clock)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(AcmeError::Thread)?;
        let thread = std::thread::Builder::new()
            .name("acme".to_owned())
            .spawn(move || {
                runtime.block_on(worker.run(stopped));
                // The system may still be at a name that nobody waits for any more.
                runtime.shutdown_background();
            })
            .map_err(AcmeError::Thread)?;
        Ok(Self { state, challenges, statuses, stop: Some(stop), thread: Some(thread) })
    }

    /// The answers that an authority asks for: for [`Certificates::new`](crate::Certificates::new), and for port 80.
    pub fn challenges(&self) -> &Arc<Challenges> {
        &self.challenges
    }

    /// The file in which the certificate of a set of names is, or will be: for [`Watched`](crate::Watched), where it may be missing.
    pub fn files(&self, names: &[String]) -> IdentityFiles {
        let path = self.state.certificate(&settings::normal(names));
        IdentityFiles { certificate: path.clone(), key: path, ocsp: None }
    }

    /// The status of each set, in the order in which they were given.
    pub fn status(&self) -> Vec<SetStatus> {
        locked(&self.statuses).clone()
    }
}

impl Drop for Acme {
    /// Ends the thread. An order under way is given up; its TXT records are cleared, which may take as long as the operator's command, ten
    /// seconds at most.
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
