//! The client of a Unix socket, which has no address.
//!
//! The unspecified address stands for it: no connection of the network comes from there (RFC 4291, section 2.5.2), and neither a
//! PROXY header nor `X-Forwarded-For` may claim it. The permissions of the socket say which processes can be such a client, so it
//! counts as a trusted proxy.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

/// The client of a Unix socket.
pub(crate) const UNIX_CLIENT: IpAddr = IpAddr::V6(Ipv6Addr::UNSPECIFIED);

pub(crate) fn is_unix(client: IpAddr) -> bool {
    client == UNIX_CLIENT
}

/// An address for logs; `unix:`, as in nginx, for the client of a Unix socket.
pub(crate) fn shown(client: IpAddr) -> impl fmt::Display {
    struct Shown(IpAddr);

    impl fmt::Display for Shown {
        fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            if is_unix(self.0) { formatter.write_str("unix:") } else { self.0.fmt(formatter) }
        }
    }

    Shown(client)
}
