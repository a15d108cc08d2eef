//! The bytes of a connection, in clear text or over TLS.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustls::{ClientConnection, HandshakeKind};

use super::report::Kind;
use super::tls::Tls;

/// The bytes to decrypt into at once: those of a record (RFC 8446, section 5.1).
const DECRYPTED: usize = 16 << 10;

/// A socket, with the state of TLS if it has one. Reading and writing as by [`Read`] and [`Write`] is for the time when it still blocks.
pub(super) struct Stream {
    socket: TcpStream,
    tls: Option<Box<ClientConnection>>,
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.tls {
            None => self.socket.read(buffer),
            Some(tls) => rustls::Stream::new(tls.as_mut(), &mut self.socket).read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.tls {
            None => self.socket.write(bytes),
            Some(tls) => rustls::Stream::new(tls.as_mut(), &mut self.socket).write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.tls {
            None => self.socket.flush(),
            Some(tls) => rustls::Stream::new(tls.as_mut(), &mut self.socket).flush(),
        }
    }
}

impl Stream {
    pub(super) fn new(socket: TcpStream, tls: Option<&Tls>) -> io::Result<Self> {
        let tls = tls.map(Tls::connection).transpose().map_err(io::Error::other)?;
        Ok(Self { socket, tls: tls.map(Box::new) })
    }

    pub(super) fn no_longer_blocks(&self) -> io::Result<()> {
        self.socket.set_nonblocking(true)
    }

    pub(super) fn is_resumed(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.handshake_kind() == Some(HandshakeKind::Resumed))
    }

    /// Sends all bytes. Over TLS, they wait for the end of the handshake.
    ///
    /// # Errors
    /// The system's; and if the socket doesn't take all, although a request is far smaller than its empty buffer.
    pub(super) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.tls {
            None if send(&self.socket, bytes, SendFlags::NOSIGNAL)? == bytes.len() => Ok(()),
            None => Err(io::ErrorKind::WriteZero.into()),
            Some(tls) => {
                tls.writer().write_all(bytes)?;
                written(tls, &mut self.socket)
            }
        }
    }

    /// Receives until the buffer is full or no more bytes are there now. `None` if there are none.
    pub(super) fn receive(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, Kind> {
        match &mut self.tls {
            None => received(&self.socket, buffer, RecvFlags::empty()),
            Some(tls) => decrypted(tls, &mut self.socket, buffer.len(), |tls, received| {
                tls.reader().read(&mut buffer[received..])
            }),
        }
    }

    /// Receives as many bytes as the buffer has, and drops them: in the kernel, or after they were decrypted.
    pub(super) fn discard(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, Kind> {
        match &mut self.tls {
            None => received(&self.socket, buffer, RecvFlags::TRUNC),
            Some(tls) => {
                let wanted = buffer.len();
                decrypted(tls, &mut self.socket, wanted, |tls, received| {
                    tls.reader().read(&mut buffer[..DECRYPTED.min(wanted - received)])
                })
            }
        }
    }
}

fn received(socket: &TcpStream, buffer: &mut [u8], flags: RecvFlags) -> Result<Option<usize>, Kind> {
    loop {
        return match recv(socket, &mut *buffer, flags) {
            Ok((_, 0)) => Err(Kind::Read),
            Ok((_, received)) => Ok(Some(received)),
            Err(Errno::AGAIN) => Ok(None),
            Err(Errno::INTR) => continue,
            Err(_) => Err(Kind::Read),
        };
    }
}

/// Calls `read` with the bytes received so far until there are `wanted` ones, or the socket has no more now.
fn decrypted(
    tls: &mut ClientConnection,
    socket: &mut TcpStream,
    wanted: usize,
    mut read: impl FnMut(&mut ClientConnection, usize) -> io::Result<usize>,
) -> Result<Option<usize>, Kind> {
    let mut received = 0;
    while received < wanted {
        match read(tls, received) {
            Ok(0) => return if received == 0 { Err(Kind::Read) } else { Ok(Some(received)) },
            Ok(more) => {
                received += more;
                continue;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => return Err(Kind::Read),
        }
        match tls.read_tls(socket) {
            Ok(0) => return if received == 0 { Err(Kind::Read) } else { Ok(Some(received)) },
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(_) => return Err(Kind::Read),
        }
        tls.process_new_packets().map_err(|_| Kind::Tls)?;
        written(tls, socket).map_err(|_| Kind::Write)?;
    }
    Ok((received > 0).then_some(received))
}

/// Writes what TLS has to send.
fn written(tls: &mut ClientConnection, socket: &mut TcpStream) -> io::Result<()> {
    while tls.wants_write() {
        tls.write_tls(socket)?;
    }
    Ok(())
}
