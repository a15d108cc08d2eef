//! A successor's side of an upgrade.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use socket2::Socket;

use super::VARIABLE;
use super::channel::{AdminPlace, Channel, Message};
use crate::config::listen::ListenAddress;
use crate::sandbox::{self, Closed};

/// The time of the process before to send its sockets, and to let this one go on.
const TIMEOUT: Duration = Duration::from_secs(30);

/// What a process gets from the one that it takes over from. Give it to [`Builder::inherit`](crate::Builder::inherit).
pub struct Inherited {
    channel: Channel,
    pub(crate) sockets: Vec<InheritedSocket>,
    pub(crate) admin: Option<InheritedAdmin>,
    /// The volume, if it is in memory.
    pub(crate) memory: Option<OwnedFd>,
}

/// A socket that listens for clients.
pub(crate) struct InheritedSocket {
    /// The address of the configuration of the process before.
    pub(crate) asked: ListenAddress,
    /// With the real port.
    pub(crate) address: ListenAddress,
    /// Whether a server has made its file.
    pub(crate) has_file: bool,
    /// Whether its clients speak TLS.
    pub(crate) is_tls: bool,
    pub(crate) socket: Socket,
}

/// The socket of the administration.
pub(crate) struct InheritedAdmin {
    pub(crate) place: AdminPlace,
    pub(crate) listener: OwnedFd,
}

impl Inherited {
    /// The sockets of the process that has started this one by an upgrade; `None` if it was started otherwise. Call it once, before
    /// anything reads standard input, which is the channel to that process.
    ///
    /// # Errors
    /// The system's, and [`io::ErrorKind::UnexpectedEof`] if that process has ended.
    pub fn from_parent() -> io::Result<Option<Self>> {
        let parent = rustix::process::getppid().map(rustix::process::Pid::as_raw_nonzero);
        let told = std::env::var(VARIABLE).ok().and_then(|value| value.parse().ok());
        // A process that a successor has started for another purpose has the variable, too.
        if told.is_none() || told != parent {
            return Ok(None);
        }
        let channel = Channel::of(rustix::stdio::stdin().try_clone_to_owned()?);
        rustix::stdio::dup2_stdin(std::fs::File::open("/dev/null")?)?;
        let mut places = Vec::new();
        let mut inherited = Self { channel, sockets: Vec::new(), admin: None, memory: None };
        loop {
            match inherited.channel.receive(TIMEOUT)? {
                (Message::Listener { asked, address, has_file, is_tls }, Some(descriptor)) => {
                    let socket = descriptor.into();
                    inherited.sockets.push(InheritedSocket { asked, address, has_file, is_tls, socket });
                }
                (Message::Admin(place), Some(listener)) => {
                    inherited.admin = Some(InheritedAdmin { place, listener });
                }
                (Message::Memory, memory) => inherited.memory = memory,
                (Message::Place(place), _) => places.push(place),
                (Message::Sandbox { landlock, seccomp }, _) => {
                    sandbox::inherit(Closed { landlock, seccomp, places: std::mem::take(&mut places) });
                }
                (Message::Whole, _) => return Ok(Some(inherited)),
                (message, _) => return Err(io::Error::other(format!("the process before this one sent {message:?}"))),
            }
        }
    }

    /// Tells the process before that this one can't start. Do this for errors before [`Builder::start`](crate::Builder::start), which
    /// tells its own.
    pub fn fail(&self, why: &str) {
        // That process may have ended.
        let _ = self.channel.send(&Message::Failed(why.to_owned()), None);
    }

    /// Tells the process before that this one accepts connections, and waits until that one doesn't.
    pub(crate) fn ready(&self, has_admin: bool) {
        // If that process has ended, there is nothing to wait for.
        if self.channel.send(&Message::Ready { has_admin }, None).is_ok() {
            let _ = self.channel.receive(TIMEOUT);
        }
    }
}

impl std::fmt::Debug for Inherited {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Inherited").field("sockets", &self.sockets.len()).finish_non_exhaustive()
    }
}
