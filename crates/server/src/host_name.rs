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

/// What a client names as the host, without a user and a password before it. Such a request is refused, but lines about it mustn't show the password.
pub(crate) fn without_user(host: &[u8]) -> &[u8] {
    host.iter().rposition(|byte| *byte == b'@').map_or(host, |at| &host[at + 1..])
}

/// The address in brackets that is the whole name.
pub(crate) fn ipv6(name: &str) -> Option<Ipv6Addr> {
    name.strip_prefix('[')?.strip_suffix(']')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::without_user;

    #[test]
    fn a_user_and_a_password_are_no_host() {
        for (host, expected) in [("user:word@a:80", "a:80"), ("a", "a"), ("x@y@a", "a"), ("user@", ""), ("", "")] {
            assert_eq!(without_user(host.as_bytes()), expected.as_bytes());
        }
    }
}
