//! Another process takes over from a running one, usually with a new version of the program, without losing a connection.
//!
//! ```text
//! the running process                         its successor
//!   starts it, with a channel  ─────────────>   takes the channel
//!   sends its listening sockets  ───────────>   binds what else its configuration asks for
//!                                               opens the volume, and accepts connections
//!                              <─────────────   "ready", or why it failed
//!   accepts no more            ─────────────>   "go": it is the service now
//!   answers what its connections still ask
//!   ends
//! ```
//! `docs/decisions/0026-handing-over-by-a-channel.md` says why it is done so.
//!
//! Both accept from the same sockets, so that a connection that waits in the kernel is taken by one of them. Both work on the same
//! volume, as any processes may; the descriptor of a volume in memory goes with the sockets. If the successor fails, ends or is late, the running process ends it, and goes on as before.

mod channel;
mod inherited;

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use eyewall::Cache;
use serde::Serialize;
use tokio::sync::watch;

use super::handle::Handle;
use super::listen::OpenSocket;
use super::reload::Reloader;
use super::stop::Stop;
use crate::sandbox::{self, Closed};
use crate::serve::error::Error;
pub(crate) use channel::AdminPlace;
use channel::{Channel, Message};
pub use inherited::Inherited;
pub(crate) use inherited::{InheritedAdmin, InheritedSocket};

/// The time of a new process to be ready.
const READY_TIMEOUT: Duration = Duration::from_mins(1);
/// The time of a process to end once it has closed its channel.
const END_TIMEOUT: Duration = Duration::from_secs(1);
/// The environment variable that tells a process that it is a successor. Its value is the process before it.
const VARIABLE: &str = "EYEWALL_UPGRADE";
/// Variables about the process before: its watchdog's, and the sockets that systemd gave it.
const NOT_INHERITED: [&str; 4] = ["WATCHDOG_PID", "LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"];

/// What an upgrade has done.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Upgraded {
    /// The process that has taken over.
    pub process: u32,
}

/// The command that starts a successor.
#[derive(Debug, Clone)]
pub(crate) struct Successor {
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<OsString>,
}

/// The socket of the administration, to be handed over.
pub(crate) struct AdminSocket {
    pub(crate) place: AdminPlace,
    pub(crate) listener: OwnedFd,
    /// Set once another process has the socket: its file must stay.
    pub(crate) is_handed_over: Arc<AtomicBool>,
}

/// Starts successors of this process.
pub(crate) struct Upgrader {
    pub(crate) reloader: Arc<Reloader>,
    successor: Option<Successor>,
    admin: Mutex<Option<AdminSocket>>,
    cache: Cache,
    handle: Handle,
    has_upgraded: AtomicBool,
    /// Says true when the administration accepts no more.
    pub(crate) ending: watch::Sender<bool>,
}

impl Upgrader {
    pub(crate) fn new(reloader: Arc<Reloader>, cache: Cache, successor: Option<Successor>, handle: Handle) -> Self {
        let (admin, has_upgraded) = (Mutex::default(), AtomicBool::new(false));
        Self { reloader, successor, admin, cache, handle, has_upgraded, ending: watch::Sender::new(false) }
    }

    /// Notes the socket of the administration.
    pub(crate) fn set_admin(&self, admin: Option<AdminSocket>) {
        *self.admin.lock().unwrap_or_else(PoisonError::into_inner) = admin;
    }

    /// Takes over the files of Unix sockets from the process before: this one removes them at its end.
    pub(crate) fn own_files(&self) {
        self.reloader.workers().hand_over_files(false);
        if let Some(admin) = &*self.admin.lock().unwrap_or_else(PoisonError::into_inner) {
            admin.is_handed_over.store(false, Ordering::Relaxed);
        }
    }

    /// Whether another process has taken over.
    pub(crate) fn has_upgraded(&self) -> bool {
        self.has_upgraded.load(Ordering::Relaxed)
    }

    /// Closes the sockets here, when the server ends.
    pub(crate) fn close(&self) {
        self.set_admin(None);
        self.reloader.workers().close();
    }

    /// Starts a successor, waits until it has taken over, and logs how that ended. Then this process drains, and ends.
    ///
    /// # Errors
    /// [`Error::Upgrade`]. This process goes on as before then.
    pub(crate) async fn upgrade(self: Arc<Self>) -> Result<Upgraded, Error> {
        let upgrader = Arc::clone(&self);
        let upgrading = tokio::task::spawn_blocking(move || upgrader.upgrade_now());
        // It fails only if it has panicked, which is logged.
        let upgraded = upgrading.await.unwrap_or_else(|error| Err(Error::Upgrade(error.to_string())));
        match &upgraded {
            Ok(Upgraded { process }) => {
                // A client that has read the response finds the new process at the socket.
                self.ending.send_replace(true);
                tracing::warn!(
                    process,
                    "another process has taken over; this one ends when its requests have been answered"
                );
            }
            Err(error) => tracing::error!("{error}"),
        }
        upgraded
    }

    fn upgrade_now(&self) -> Result<Upgraded, Error> {
        let _turn = self.reloader.turn();
        if self.has_upgraded() {
            return Err(Error::Upgrade("another process has taken over already".to_owned()));
        }
        if self.reloader.workers().are_ending() {
            return Err(Error::Upgrade("the server is ending; start it again".to_owned()));
        }
        let Some(successor) = &self.successor else {
            return Err(Error::Upgrade("the program of this server has no successor; restart it".to_owned()));
        };
        let (channel, mut child) = start(successor).map_err(|error| not_started(successor, &error))?;
        let handed_over = self.hand_over(&channel).map_err(|error| in_words(&error, &mut child));
        let handed_over = handed_over.and_then(|ready| ready).and_then(|has_admin| {
            let is_ending = self.reloader.workers().are_ending();
            if is_ending { Err("the server was asked to end meanwhile".to_owned()) } else { Ok(has_admin) }
        });
        let has_admin = match handed_over {
            Ok(has_admin) => has_admin,
            Err(why) => {
                // It may have ended.
                let _ = child.kill();
                let _ = child.wait();
                return Err(Error::Upgrade(why));
            }
        };
        let process = child.id();
        if let Some(admin) = &*self.admin.lock().unwrap_or_else(PoisonError::into_inner) {
            admin.is_handed_over.store(has_admin, Ordering::Relaxed);
        }
        self.reloader.workers().refuse_changes();
        self.reloader.workers().hand_over_files(true);
        self.has_upgraded.store(true, Ordering::Relaxed);
        self.reloader.supervisor().main_process(process);
        // If it fails, the successor has ended meanwhile, and its supervisor starts another one.
        let _ = channel.send(&Message::Go, None);
        self.handle.raise(Stop::HandedOver);
        Ok(Upgraded { process })
    }

    /// Sends all sockets, and waits for the answer: whether the successor has the administration, or why it failed.
    fn hand_over(&self, channel: &Channel) -> io::Result<Result<bool, String>> {
        self.reloader.workers().each_socket(|OpenSocket { asked, address, has_file, is_tls, socket }| {
            let (asked, address) = (asked.clone(), address.clone());
            channel.send(&Message::Listener { asked, address, has_file, is_tls }, Some(socket.as_fd()))
        })?;
        if let Some(admin) = &*self.admin.lock().unwrap_or_else(PoisonError::into_inner) {
            channel.send(&Message::Admin(admin.place.clone()), Some(admin.listener.as_fd()))?;
        }
        if let Some(memory) = self.cache.share().map_err(io::Error::other)? {
            channel.send(&Message::Memory, Some(memory.as_fd()))?;
        }
        if let Some(Closed { landlock, seccomp, places }) = sandbox::closed() {
            // JSON has no other paths, and the configuration names none.
            for place in places.iter().filter(|place| place.path.to_str().is_some()) {
                channel.send(&Message::Place(place.clone()), None)?;
            }
            channel.send(&Message::Sandbox { landlock: *landlock, seccomp: *seccomp }, None)?;
        }
        channel.send(&Message::Whole, None)?;
        match channel.receive(READY_TIMEOUT)?.0 {
            Message::Ready { has_admin } => Ok(Ok(has_admin)),
            Message::Failed(why) => Ok(Err(why)),
            other => Ok(Err(format!("the new process answered {other:?}"))),
        }
    }
}

/// Starts a successor, and returns the channel to it.
fn start(successor: &Successor) -> io::Result<(Channel, Child)> {
    let (channel, theirs) = Channel::pair()?;
    let mut command = Command::new(&successor.program);
    command.args(&successor.arguments).stdin(Stdio::from(theirs)).env(VARIABLE, std::process::id().to_string());
    for name in NOT_INHERITED {
        command.env_remove(name);
    }
    let child = command.spawn()?;
    Ok((channel, child))
}

fn not_started(successor: &Successor, error: &io::Error) -> Error {
    let is_kept_out = error.kind() == io::ErrorKind::PermissionDenied && sandbox::closed().is_some();
    let advice = if is_kept_out {
        "; if it is in a folder that the sandbox of this process doesn't include, restart the server"
    } else {
        ""
    };
    Error::Upgrade(format!("{} can't be started: {error}{advice}", successor.program.display()))
}

/// The status of a child that ends by itself, soon after it has closed its channel.
fn ended(child: &mut Child) -> io::Result<Option<ExitStatus>> {
    let deadline = Instant::now() + END_TIMEOUT;
    loop {
        let status = child.try_wait()?;
        if status.is_some() || Instant::now() >= deadline {
            return Ok(status);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Why there is no answer of a successor.
fn in_words(error: &io::Error, child: &mut Child) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => match ended(child)
        {
            Ok(None) => "the new process closed its channel, and was ended".to_owned(),
            Ok(Some(status)) => format!("the new process ended ({status}); its messages are in the server's log"),
            Err(error) => format!("the new process ended: {error}"),
        },
        io::ErrorKind::TimedOut => {
            format!("the new process was not ready within {} s, and was ended", READY_TIMEOUT.as_secs())
        }
        _ => format!("the new process can't be reached: {error}"),
    }
}
