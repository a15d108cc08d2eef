//! What counts as one client: an IPv4 address, or a /64 network of IPv6 addresses.
//!
//! Providers give each customer at least a /64, whose addresses the customer may use as it likes.

use std::net::IpAddr;

use crate::serve::unix_client::is_unix;

/// A client, for limits on each client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Client {
    V4(u32),
    V6(u64),
    /// All clients of Unix sockets.
    Unix,
}

impl From<IpAddr> for Client {
    /// An IPv4-mapped IPv6 address counts as the IPv4 address.
    fn from(address: IpAddr) -> Self {
        match address.to_canonical() {
            _ if is_unix(address) => Self::Unix,
            IpAddr::V4(address) => Self::V4(address.to_bits()),
            IpAddr::V6(address) => Self::V6((address.to_bits() >> 64) as u64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_of_ipv6_is_one_client() {
        let client = |text: &str| Client::from(text.parse::<IpAddr>().unwrap());
        assert_eq!(client("2001:db8::1"), client("2001:db8:0:0:ffff::2"));
        assert_ne!(client("2001:db8::1"), client("2001:db8:0:1::1"));
        assert_eq!(client("::ffff:192.0.2.7"), client("192.0.2.7"));
        assert_ne!(client("::1"), Client::from(crate::serve::unix_client::UNIX_CLIENT));
        assert_ne!(client("192.0.2.8"), client("192.0.2.7"));
    }
}
