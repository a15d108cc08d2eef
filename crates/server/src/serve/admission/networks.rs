//! `allow` and `deny`: ranges of addresses, in order, so that a look-up among thousands is a binary search.

use std::net::IpAddr;

use ipnet::IpNet;

use crate::config::names::Network;
use crate::serve::unix_client::is_unix;

/// The networks whose clients are admitted.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Networks {
    /// Empty: all.
    allow: Ranges,
    deny: Ranges,
}

/// The first and the last address of each range. The ranges don't overlap.
#[derive(Debug, PartialEq, Eq)]
struct Ranges(Vec<(u128, u128)>);

impl Networks {
    pub(super) fn new(allow: &[Network], deny: &[Network]) -> Self {
        Self { allow: Ranges::new(allow), deny: Ranges::new(deny) }
    }

    pub(super) fn admit_all(&self) -> bool {
        self.allow.0.is_empty() && self.deny.0.is_empty()
    }

    /// `deny` takes precedence. The permissions of a Unix socket say who may connect there.
    pub(super) fn admit(&self, address: IpAddr) -> bool {
        let number = number(address);
        is_unix(address) || !self.deny.has(number) && (self.allow.0.is_empty() || self.allow.has(number))
    }
}

impl Ranges {
    fn new(networks: &[Network]) -> Self {
        let mut ranges: Vec<_> = networks.iter().map(|network| range(network.0)).collect();
        ranges.sort_unstable();
        ranges.dedup_by(|next, before| {
            let overlaps = next.0 <= before.1;
            if overlaps {
                before.1 = before.1.max(next.1);
            }
            overlaps
        });
        Self(ranges)
    }

    fn has(&self, number: u128) -> bool {
        let behind = self.0.partition_point(|(first, _)| *first <= number);
        behind.checked_sub(1).is_some_and(|place| number <= self.0[place].1)
    }
}

fn range(network: IpNet) -> (u128, u128) {
    (number(network.network()), number(network.broadcast()))
}

/// IPv4 addresses are numbered as the IPv6 addresses to which they are mapped.
fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn networks(texts: &[&str]) -> Vec<Network> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn deny_takes_precedence_over_allow() {
        let allow = networks(&["10.0.0.0/8", "10.1.0.0/16", "2001:db8::/32"]);
        let deny = networks(&["10.1.2.0/24", "10.1.2.3", "2001:db8:1::/48"]);
        let both = Networks::new(&allow, &deny);
        for (address, is_admitted) in [
            ("10.0.0.0", true),
            ("10.255.255.255", true),
            ("::ffff:10.1.1.1", true),
            ("10.1.2.0", false),
            ("10.1.2.255", false),
            ("10.1.3.0", true),
            ("11.0.0.0", false),
            ("9.255.255.255", false),
            ("2001:db8::1", true),
            ("2001:db8:1::1", false),
            ("2001:db9::", false),
        ] {
            assert_eq!(both.admit(address.parse().unwrap()), is_admitted, "{address}");
        }
        let denying = Networks::new(&[], &networks(&["::/0"]));
        assert!(!denying.admit("2001:db8::1".parse().unwrap()) && !denying.admit_all());
        assert!(Networks::new(&[], &[]).admit("192.0.2.1".parse().unwrap()));
    }
}
