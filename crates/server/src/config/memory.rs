//! The worst-case memory of connections and requests, and what a budget (`memory` of `[server.limits]`) leaves for them.
//!
//! ```text
//! memory = the program + stream_bytes + tables of rates + a half for connections + a half for requests
//! ```
//! A half for each, so that connections that do nothing can't keep requests out, nor requests connections. The sizes are bounds
//! for one connection or request; docs/security.md has them, and a test compares the page with the code. The tests of
//! `crates/cli/tests/serve/hostile` measure them.

use toml::Spanned;

use super::problem::Fault;
use super::settings::{Limits, Server};
use super::site::Site;
use super::value::Size;

/// The program with its threads, the queue of the access log, and compression in the background.
pub(crate) const PROGRAM: u64 = 32 << 20;
/// The buckets of one `requests_per_second`.
pub(crate) const RATE_TABLE: u64 = 2 << 20;
/// The state of a connection, with that of HTTP/2. It is counted before the protocol is known.
const CONNECTION: u64 = 56 << 10;
/// The state of TLS, in addition.
pub(crate) const TLS_CONNECTION: u64 = 24 << 10;
/// The buffers of a response that an origin sends.
const RESPONSE: u64 = 256 << 10;
/// The bytes that TLS has encrypted and the client doesn't take, in addition, with the copy before that.
pub(crate) const TLS_RESPONSE: u64 = 128 << 10;
/// A request over HTTP/2 without its fields: its task, and the buffers of its connection to the origin. Its response counts for
/// `stream_bytes`.
const HTTP2_REQUEST: u64 = 64 << 10;
/// The copies of fields: as the client sent them, of the request to the origin, and as it is written.
const COPIES: u64 = 4;
/// The window of a body over HTTP/2.
const HTTP2_BODY: u64 = 128 << 10;
/// A budget holds at least this many connections, and this many requests.
const LEAST: u64 = 100;

/// The bytes that connections may have together, and requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MemoryShares {
    pub(crate) connections: u64,
    pub(crate) requests: u64,
}

/// A connection without TLS and without requests: its state, and an unfinished head.
pub(crate) fn connection(header_bytes: u64) -> u64 {
    CONNECTION + header_bytes
}

/// A request over HTTP/1.1 that the fast path doesn't answer, without TLS.
pub(crate) fn http1_request(header_bytes: u64) -> u64 {
    2 * header_bytes + RESPONSE
}

/// A request over HTTP/2 with so many bytes of fields.
pub(crate) fn http2_request(field_bytes: u64, has_body: bool) -> u64 {
    HTTP2_REQUEST + COPIES * field_bytes + if has_body { HTTP2_BODY } else { 0 }
}

impl MemoryShares {
    /// None without a budget.
    pub(crate) fn of(limits: &Limits, tables: u64) -> Option<Self> {
        let rest = limits.memory.as_ref()?.get_ref().0.saturating_sub(beside(limits, tables));
        Some(Self { connections: rest / 2, requests: rest / 2 })
    }
}

/// How many tables of rates there are.
pub(crate) fn tables<'a>(server: &Server, sites: impl Iterator<Item = &'a Site>) -> u64 {
    let of_sites = sites.filter(|site| site.limits.requests_per_second.is_some()).count() as u64;
    of_sites + u64::from(server.limits.requests_per_second.is_some())
}

/// The bytes that neither connections nor requests get.
fn beside(limits: &Limits, tables: u64) -> u64 {
    PROGRAM + limits.stream_bytes.0 + tables * RATE_TABLE
}

/// The smallest budget.
fn least(limits: &Limits, tables: u64) -> u64 {
    let (connection, request) = most(limits.header_bytes.0);
    let half = LEAST * connection.max(request);
    // The next whole number of mebibytes.
    (beside(limits, tables) + 2 * half).next_multiple_of(1 << 20)
}

/// The largest connection without requests, and the largest request.
fn most(header_bytes: u64) -> (u64, u64) {
    let request = (http1_request(header_bytes) + TLS_RESPONSE).max(http2_request(header_bytes, true));
    (connection(header_bytes) + TLS_CONNECTION, request)
}

/// Reports a budget that is too small, or is none.
pub(super) fn check(server: &Server, sites: &[Spanned<Site>], faults: &mut Vec<Fault>) {
    let limits = &server.limits;
    let Some(memory) = &limits.memory else { return };
    if limits.stream_bytes.0 == 0 {
        let message = "`memory` has no effect if `stream_bytes` is 0: responses over HTTP/2 have no limit then";
        faults.push(Fault::new(memory.span(), message, "give `stream_bytes`, or leave it out for 128M"));
        return;
    }
    let tables = tables(server, sites.iter().map(Spanned::get_ref));
    let (least, size) = (least(limits, tables), *memory.get_ref());
    if memory.get_ref().0 < least {
        let message = format!(
            "`memory` is {size}, and {LEAST} connections with {LEAST} requests, `stream_bytes` and the server itself may need {}",
            Size(least)
        );
        let hint = format!("give at least {}, or lower `stream_bytes` or `header_bytes`", Size(least));
        faults.push(Fault::new(memory.span(), message, hint));
        return;
    }
    let Some((shares, connections)) = MemoryShares::of(limits, tables).zip(limits.connections) else { return };
    let held = shares.connections / connection(limits.header_bytes.0);
    if connections.0 > held {
        let message = format!(
            "`memory` is {size}, which is enough for {held} connections, and `connections` is {}",
            connections.0
        );
        faults.push(Fault::new(memory.span(), message, "give more `memory`, or fewer `connections`"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tests::{is_refused, problems};

    const PAGE: &str = include_str!("../../../../docs/security.md");

    fn with(limits: &str) -> Vec<String> {
        problems(&format!("[server.limits]\n{limits}\n[[site]]\norigins = [\"http://a\"]\n"))
    }

    #[test]
    fn a_budget_holds_a_hundred_connections_and_requests() {
        assert_eq!(with("memory = \"512M\""), [""; 0]);
        assert_eq!(
            with("memory = \"64M\"\nstream_bytes = \"4M\"\nheader_bytes = \"8K\""),
            [
                "2:10 `memory` is 64M, and 100 connections with 100 requests, `stream_bytes` and the server itself may need 115M"
            ]
        );
        assert_eq!(with("memory = \"115M\"\nstream_bytes = \"4M\"\nheader_bytes = \"8K\""), [""; 0]);
        is_refused(
            &with("memory = \"115M\"\nstream_bytes = \"4M\"\nheader_bytes = \"8K\"\nrequests_per_second = 5"),
            &["117M"],
        );
        is_refused(&with("memory = \"512M\"\nstream_bytes = 0"), &["`memory` has no effect"]);
    }

    #[test]
    fn connections_above_the_budget_are_a_mistake() {
        assert_eq!(with("memory = \"512M\"\nconnections = 1501"), [""; 0]);
        is_refused(&with("memory = \"512M\"\nconnections = 1502"), &["enough for 1501 connections"]);
    }

    #[test]
    fn the_page_has_these_figures() {
        let header_bytes = Limits::default().header_bytes.0;
        let kib = |bytes: u64| format!("{} KiB", bytes >> 10);
        let rows = [
            ("connection", kib(connection(header_bytes))),
            ("TLS, in addition", kib(TLS_CONNECTION)),
            ("request over HTTP/1.1", kib(http1_request(header_bytes))),
            ("its response over TLS, in addition", kib(TLS_RESPONSE)),
            ("request over HTTP/2", format!("{}, and {COPIES} times its fields", kib(HTTP2_REQUEST))),
            ("its body, in addition", kib(HTTP2_BODY)),
        ];
        for (what, figure) in rows {
            let row = format!("| {what} | {figure} |");
            assert!(PAGE.contains(&row), "docs/security.md has no row {row}");
        }
        let least = Size(least(&Limits::default(), 0));
        assert!(PAGE.contains(&format!("at least `\"{least}\"`")), "docs/security.md doesn't have {least}");
    }
}
