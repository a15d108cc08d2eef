//! The messages between a process and its successor: JSON, each with a descriptor or without one.
//!
//! The channel is a pair of Unix sockets that keep the borders of messages. The successor has its end as standard input, because that
//! is the descriptor that a new process can be given, and can take, without unsafe code.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use serde::{Deserialize, Serialize};

use crate::config::listen::ListenAddress;
use crate::sandbox::{Extent, Place};

/// The longest message.
const BYTES_MAX: usize = 64 << 10;
/// The time of the other process to take a message.
const SEND_TIMEOUT: Duration = Duration::from_mins(1);

/// A message. Programs of different versions exchange them: a message may get new fields with defaults, and never loses one.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Message {
    /// To the successor: a socket that listens for clients, with its descriptor.
    Listener {
        /// The address of the configuration.
        asked: ListenAddress,
        /// With the real port.
        address: ListenAddress,
        /// Whether a server has made its file, which it removes at its end.
        #[serde(default)]
        has_file: bool,
        /// Whether its clients speak TLS.
        #[serde(default)]
        is_tls: bool,
    },
    /// To the successor: the socket of the administration, with its descriptor.
    Admin(AdminPlace),
    /// To the successor: the volume, if it is in memory, with its descriptor.
    Memory,
    /// To the successor: a place of the sandbox that both are in.
    Place(Place),
    /// To the successor: that sandbox, after all of its places.
    Sandbox {
        /// The restriction of files.
        landlock: Extent,
        /// The restriction of system calls.
        seccomp: Extent,
    },
    /// To the successor: no more sockets follow.
    Whole,
    /// From the successor: it accepts connections.
    Ready {
        /// Whether it has the socket of the administration.
        has_admin: bool,
    },
    /// From the successor: it can't start, for this reason.
    Failed(String),
    /// To the successor: the process before it accepts no more.
    Go,
}

/// Where the administration listens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AdminPlace {
    /// The path of a Unix socket.
    Socket(PathBuf),
    /// An address of the configuration.
    Address(SocketAddr),
}

/// An end of the channel.
pub(super) struct Channel(OwnedFd);

impl Channel {
    /// Both ends; the second one is for the successor.
    pub(super) fn pair() -> io::Result<(Self, OwnedFd)> {
        let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        Ok((Self(ours), theirs))
    }

    pub(super) fn of(end: OwnedFd) -> Self {
        Self(end)
    }

    pub(super) fn send(&self, message: &Message, descriptor: Option<BorrowedFd<'_>>) -> io::Result<()> {
        let bytes = serde_json::to_vec(message)?;
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let descriptors = descriptor.as_slice();
        if !descriptors.is_empty() {
            control.push(SendAncillaryMessage::ScmRights(descriptors));
        }
        // It waits only if the other process doesn't read.
        set_socket_timeout(&self.0, Timeout::Send, Some(SEND_TIMEOUT))?;
        match sendmsg(&self.0, &[IoSlice::new(&bytes)], &mut control, SendFlags::NOSIGNAL) {
            Ok(_) => Ok(()),
            Err(Errno::AGAIN) => Err(io::ErrorKind::TimedOut.into()),
            Err(error) => Err(error.into()),
        }
    }

    /// The next message, with its descriptor.
    ///
    /// # Errors
    /// [`io::ErrorKind::UnexpectedEof`] if the other process has ended, and [`io::ErrorKind::TimedOut`].
    pub(super) fn receive(&self, timeout: Duration) -> io::Result<(Message, Option<OwnedFd>)> {
        set_socket_timeout(&self.0, Timeout::Recv, Some(timeout))?;
        let mut bytes = vec![0; BYTES_MAX];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let received = loop {
            match recvmsg(&self.0, &mut [IoSliceMut::new(&mut bytes)], &mut control, RecvFlags::CMSG_CLOEXEC) {
                Ok(received) => break received.bytes,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Err(io::ErrorKind::TimedOut.into()),
                Err(error) => return Err(error.into()),
            }
        };
        if received == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut descriptors = control.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
            _ => None,
        });
        let descriptor = descriptors.next().and_then(|mut descriptors| descriptors.next());
        let message = serde_json::from_slice(bytes.get(..received).unwrap_or_default())?;
        Ok((message, descriptor))
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::os::fd::AsFd as _;

    use super::*;

    #[test]
    fn a_socket_arrives_with_its_addresses() {
        let (old, new) = Channel::pair().unwrap();
        let new = Channel::of(new);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (asked, told) = ("127.0.0.1:0".parse().unwrap(), ListenAddress::Tcp(address));
        let message = Message::Listener { asked, address: told.clone(), has_file: false, is_tls: false };
        old.send(&message, Some(listener.as_fd())).unwrap();
        old.send(&Message::Whole, None).unwrap();
        drop((listener, old));
        let (message, descriptor) = new.receive(Duration::from_secs(1)).unwrap();
        assert!(matches!(&message, Message::Listener { address, .. } if *address == told), "{message:?}");
        assert_eq!(TcpListener::from(descriptor.unwrap()).local_addr().unwrap(), address);
        let (message, descriptor) = new.receive(Duration::from_secs(1)).unwrap();
        assert!(matches!(message, Message::Whole) && descriptor.is_none(), "{message:?}");
        let ended = new.receive(Duration::from_secs(1)).unwrap_err();
        assert_eq!(ended.kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn a_silent_process_is_not_waited_for_without_end() {
        let (old, _new) = Channel::pair().unwrap();
        assert_eq!(old.receive(Duration::from_millis(1)).unwrap_err().kind(), io::ErrorKind::TimedOut);
    }
}
