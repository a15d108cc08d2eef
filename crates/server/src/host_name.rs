//! Names of hosts, as requests and settings have them.

use std::net::Ipv6Addr;

/// The longest name of a host (RFC 1035, section 2.3.4).
const NAME_BYTES_MAX: usize = 253;

/// Whether a name in lower case can be a host: labels of letters, digits, `-` and `_`, or an IPv6 address in brackets.
pub(crate) fn is_host(name: &str) -> bool {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'_')
    };
    ipv6(name).is_some() || (name.len() <= NAME_BYTES_MAX && name.split('.').all(is_label))
}

/// The address in brackets that is the whole name.
pub(crate) fn ipv6(name: &str) -> Option<Ipv6Addr> {
    name.strip_prefix('[')?.strip_suffix(']')?.parse().ok()
}
