//! An address to listen on: of the network, or a Unix socket; and the permissions of such a socket.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use super::names::listen_address;
use super::value::written_as_text;

/// The most bytes of the path of a Unix socket (unix(7)).
const SOCKET_PATH_BYTES_MAX: usize = 107;

/// An address to listen on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListenAddress {
    /// A port of an address of this machine, or of all.
    Tcp(SocketAddr),
    /// The path of a Unix socket: `unix:/run/eyewall/http.sock`.
    Unix(PathBuf),
}

impl ListenAddress {
    /// Whether the system chooses a free port.
    pub(crate) fn is_any_port(&self) -> bool {
        matches!(self, Self::Tcp(address) if address.port() == 0)
    }
}

impl From<SocketAddr> for ListenAddress {
    fn from(address: SocketAddr) -> Self {
        Self::Tcp(address)
    }
}

impl FromStr for ListenAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some(path) = text.strip_prefix("unix:") else {
            return listen_address(text).map(Self::Tcp);
        };
        if !path.starts_with('/') || path.ends_with('/') {
            return Err(format!(
                "`{path}` is not the path of a socket; give an absolute one, unix:/run/eyewall/http.sock"
            ));
        }
        if path.len() > SOCKET_PATH_BYTES_MAX {
            return Err(format!(
                "the path of the socket has {} bytes; Linux allows {SOCKET_PATH_BYTES_MAX}",
                path.len()
            ));
        }
        Ok(Self::Unix(PathBuf::from(path)))
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => write!(formatter, "{address}"),
            Self::Unix(path) => write!(formatter, "unix:{}", path.display()),
        }
    }
}

/// The permissions of a socket, as chmod takes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SocketMode(pub u32);

impl FromStr for SocketMode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mode = u32::from_str_radix(text, 8).ok().filter(|mode| *mode <= 0o777 && !text.starts_with('+'));
        mode.map(Self).ok_or_else(|| format!("`{text}` is not a mode; give three octal digits, such as \"660\""))
    }
}

impl fmt::Display for SocketMode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:03o}", self.0)
    }
}

written_as_text! {
    ListenAddress: "an address such as \"127.0.0.1:8080\"",
    SocketMode: "a mode such as \"660\"",
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_port_or_is_the_path_of_a_socket() {
        for text in ["127.0.0.1:80", "[::]:443", "0.0.0.0:0", "unix:/run/eyewall/http.sock"] {
            assert_eq!(text.parse::<ListenAddress>().unwrap().to_string(), text);
        }
        for wrong in ["", "80", "localhost:80", "[::]", "unix:", "unix:http.sock", "unix:/run/", "/run/http.sock"] {
            assert!(wrong.parse::<ListenAddress>().is_err(), "{wrong}");
        }
        assert!(format!("unix:/{}", "a".repeat(107)).parse::<ListenAddress>().unwrap_err().contains("108 bytes"));
    }

    #[test]
    fn a_mode_is_octal() {
        assert_eq!(("660".parse(), "0600".parse()), (Ok(SocketMode(0o660)), Ok(SocketMode(0o600))));
        assert_eq!(SocketMode(0o7).to_string(), "007");
        for wrong in ["", "8", "1777", "rw", "-1", "+7"] {
            assert!(wrong.parse::<SocketMode>().is_err(), "{wrong}");
        }
    }
}
