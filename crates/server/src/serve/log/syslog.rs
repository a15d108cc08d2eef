//! Lines as messages of syslog (RFC 5424), one a datagram.

use std::io::{self, Write as _};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use crate::config::access_log::SyslogPlace;
use crate::serve::date;

/// Facility `local7`, severity `info`: those of nginx.
const PRIORITY: u8 = 23 * 8 + 6;
/// How long a datagram waits for room. The workers don't wait.
const TIMEOUT: Duration = Duration::from_millis(100);

/// A log of the system.
pub(super) struct Syslog {
    socket: Socket,
    /// The part of a message between its time and its text.
    header: String,
    /// A message on its way.
    message: Vec<u8>,
}

enum Socket {
    Unix(UnixDatagram, PathBuf),
    Udp(UdpSocket, SocketAddr),
}

impl Syslog {
    /// Nobody has to listen there yet.
    ///
    /// # Errors
    /// The system's, if it gives no socket.
    pub(super) fn open(place: &SyslogPlace) -> io::Result<Self> {
        let socket = match place {
            SyslogPlace::Socket(path) => {
                let socket = UnixDatagram::unbound()?;
                socket.set_write_timeout(Some(TIMEOUT))?;
                Socket::Unix(socket, path.clone())
            }
            SyslogPlace::Address(address) => {
                let any = if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
                let socket = UdpSocket::bind(SocketAddr::new(any, 0))?;
                socket.set_write_timeout(Some(TIMEOUT))?;
                Socket::Udp(socket, *address)
            }
        };
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let is_name = !host.is_empty() && host.len() <= 255 && host.bytes().all(|byte| byte.is_ascii_graphic());
        let host = if is_name { host } else { "-".to_owned() };
        let header = format!(" {host} eyewall {} access - ", std::process::id());
        Ok(Self { socket, header, message: Vec::new() })
    }

    /// Sends whole lines. Returns the number of lines that were not sent, and the error of the last of them.
    pub(super) fn send(&mut self, lines: &[u8]) -> (u64, io::Result<()>) {
        let (mut lost, mut result) = (0, Ok(()));
        let mut is_stuck = false;
        for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            // If the reader hangs, the others would wait as long, each of them.
            if is_stuck {
                lost += 1;
                continue;
            }
            if let Err(error) = self.send_one(line) {
                is_stuck = error.kind() == io::ErrorKind::WouldBlock;
                (lost, result) = (lost + 1, Err(error));
            }
        }
        (lost, result)
    }

    fn send_one(&mut self, line: &[u8]) -> io::Result<()> {
        self.message.clear();
        write!(self.message, "<{PRIORITY}>1 ")?;
        date::push_rfc3339(&mut self.message, SystemTime::now());
        self.message.extend_from_slice(self.header.as_bytes());
        self.message.extend_from_slice(line);
        match &self.socket {
            Socket::Unix(socket, path) => socket.send_to(&self.message, path)?,
            Socket::Udp(socket, address) => socket.send_to(&self.message, address)?,
        };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_a_datagram() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut syslog = Syslog::open(&SyslogPlace::Socket(path.clone())).unwrap();
        let (lost, result) = syslog.send(b"one\ntwo\n");
        assert!(lost == 2 && result.is_err(), "nobody listens there");
        let listener = UnixDatagram::bind(&path).unwrap();
        let (lost, result) = syslog.send(b"three\nfour\n");
        assert!(lost == 0 && result.is_ok(), "somebody listens now: {result:?}");
        for expected in ["three", "four"] {
            let mut bytes = [0; 1000];
            let count = listener.recv(&mut bytes).unwrap();
            let words: Vec<&str> = str::from_utf8(&bytes[..count]).unwrap().split(' ').collect();
            assert_eq!((words.len(), words[0], words[3], words[7]), (8, "<190>1", "eyewall", expected));
        }
    }

    #[test]
    fn a_reader_that_does_not_read_costs_lines_and_no_wait_without_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let _listener = UnixDatagram::bind(&path).unwrap();
        let mut syslog = Syslog::open(&SyslogPlace::Socket(path)).unwrap();
        // Its queue holds some hundreds of datagrams at most.
        let line = [vec![b'x'; 60_000], vec![b'\n']].concat();
        let lost = (0..50).map(|_| syslog.send(&line).0).take_while(|lost| *lost == 0).count();
        assert!(lost < 50, "all were taken");
        // Only the first one waits.
        assert_eq!(syslog.send(&line.repeat(1000)).0, 1000);
    }
}
