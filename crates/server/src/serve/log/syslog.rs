//! Lines as messages of syslog, one a datagram.
//!
//! A Unix socket gets the form that syslog(3) writes, and an address the one of RFC 5424. The programs that read `/dev/log`, such as
//! journald, know only the first one, and would take the head of the second for a part of the message.

use std::io::{self, Write as _};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use chrono::Local;

use crate::config::access_log::SyslogPlace;
use crate::serve::date;

/// Facility `local7`, severity `info`: those of nginx.
const PRIORITY: u8 = 23 * 8 + 6;
/// The name of the program.
const TAG: &str = "eyewall";
/// How long a datagram waits for room. The workers don't wait.
const TIMEOUT: Duration = Duration::from_millis(100);

/// A log of the system.
pub(super) struct Syslog {
    socket: Socket,
    /// A message on its way.
    message: Vec<u8>,
}

enum Socket {
    Unix(UnixDatagram, PathBuf),
    /// With the part of a message between its time and its text.
    Udp(UdpSocket, SocketAddr, String),
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
                Socket::Udp(socket, *address, header())
            }
        };
        Ok(Self { socket, message: Vec::new() })
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
        let Self { socket, message } = self;
        message.clear();
        write!(message, "<{PRIORITY}>")?;
        match socket {
            Socket::Unix(socket, path) => {
                date::push_syslog(message, &Local::now());
                write!(message, " {TAG}[{}]: ", std::process::id())?;
                message.extend_from_slice(line);
                socket.send_to(message, path)?
            }
            Socket::Udp(socket, address, header) => {
                message.extend_from_slice(b"1 ");
                date::push_rfc3339(message, SystemTime::now());
                message.extend_from_slice(header.as_bytes());
                message.extend_from_slice(line);
                socket.send_to(message, *address)?
            }
        };
        Ok(())
    }
}

/// Host, name, process and kind of message by RFC 5424.
fn header() -> String {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let is_name = !host.is_empty() && host.len() <= 255 && host.bytes().all(|byte| byte.is_ascii_graphic());
    let host = if is_name { host } else { "-".to_owned() };
    format!(" {host} {TAG} {} access - ", std::process::id())
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
            let message = str::from_utf8(&bytes[..count]).unwrap();
            // `<190>Nov 22 11:02:06 `
            let (time, rest) = message.split_at(21);
            assert!(time.starts_with("<190>") && time.ends_with(' '), "{message}");
            assert_eq!(rest, format!("eyewall[{}]: {expected}", std::process::id()));
        }
    }

    #[test]
    fn an_address_gets_messages_of_rfc_5424() {
        let listener = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut syslog = Syslog::open(&SyslogPlace::Address(listener.local_addr().unwrap())).unwrap();
        assert_eq!(syslog.send(b"one\n").0, 0);
        let mut bytes = [0; 1000];
        let count = listener.recv(&mut bytes).unwrap();
        let words: Vec<&str> = str::from_utf8(&bytes[..count]).unwrap().split(' ').collect();
        assert_eq!((words.len(), words[0], words[3], words[7]), (8, "<190>1", "eyewall", "one"));
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
