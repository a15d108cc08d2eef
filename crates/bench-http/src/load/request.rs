//! The requests: one repeated request, or one with a number that grows and begins again.

use std::net::{SocketAddr, ToSocketAddrs};

use hyper::Uri;
use hyper::http::uri::Scheme;

use crate::error::{Error, Result};

/// The placeholder of the number.
pub(crate) const NUMBER: &str = "{}";

/// The server of an address.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) peer: SocketAddr,
    /// Its host, for which it must have a certificate if it `is_tls`.
    pub(crate) name: String,
    pub(crate) is_tls: bool,
}

/// A GET of an address.
#[derive(Debug)]
pub(crate) struct Request {
    /// The bytes to send, up to the number if there is one.
    before: Vec<u8>,
    /// The bytes after the number.
    after: Option<Vec<u8>>,
    number: u64,
    /// The number of numbers, after which they begin again.
    names: u64,
    numbered: Vec<u8>,
}

impl Request {
    /// The request and its server; `names` is the number of numbers. A request that `closes` uses HTTP/1.0,
    /// so that the end of its connection may end the response.
    pub(crate) fn to(address: &str, names: u64, closes: bool) -> Result<(Self, Server)> {
        let wrong = |what: &str| Error::Address { given: address.to_owned(), what: what.to_owned() };
        // A URI can't contain braces.
        let uri: Uri = address.replacen(NUMBER, "0", 1).parse().map_err(|_| wrong("it is no URI"))?;
        let (is_tls, scheme) = match uri.scheme() {
            Some(scheme) if *scheme == Scheme::HTTP => (false, "http://"),
            Some(scheme) if *scheme == Scheme::HTTPS => (true, "https://"),
            _ => return Err(wrong("it is neither of http nor of https")),
        };
        let host = uri.authority().ok_or_else(|| wrong("it has no host"))?.as_str();
        // A name like localhost may have addresses of both kinds, and the servers listen at IPv4.
        let Some(peer) = host.to_socket_addrs().ok().and_then(|addresses| addresses.min_by_key(SocketAddr::is_ipv6))
        else {
            return Err(wrong("its host and port lead nowhere"));
        };
        let path = address.strip_prefix(scheme).and_then(|rest| rest.strip_prefix(host)).unwrap_or("");
        if !path.starts_with('/') {
            return Err(wrong("it has no path"));
        }
        let version = if closes { "1.0" } else { "1.1" };
        let text = format!("GET {path} HTTP/{version}\r\nHost: {host}\r\n\r\n");
        let (before, after) = match text.split_once(NUMBER) {
            Some((before, after)) => (before.into(), Some(after.into())),
            None => (text.into_bytes(), None),
        };
        let name = uri.host().unwrap_or_default().to_owned();
        Ok((Self { before, after, number: 0, names, numbered: Vec::new() }, Server { peer, name, is_tls }))
    }

    /// The number of the next request; 0 if its path has none.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// The bytes of the next request.
    pub(crate) fn next(&mut self) -> &[u8] {
        let Some(after) = &self.after else { return &self.before };
        self.numbered.clear();
        self.numbered.extend_from_slice(&self.before);
        self.numbered.extend_from_slice(self.number.to_string().as_bytes());
        self.numbered.extend_from_slice(after);
        self.number = (self.number + 1) % self.names;
        &self.numbered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_request_is_sent_over_and_over() -> Result<()> {
        let (mut request, server) = Request::to("http://127.0.0.1:81/a?b=c", 1, false)?;
        assert_eq!(server.peer, SocketAddr::from(([127, 0, 0, 1], 81)));
        assert!(!server.is_tls);
        for _ in 0..2 {
            assert_eq!(request.next(), b"GET /a?b=c HTTP/1.1\r\nHost: 127.0.0.1:81\r\n\r\n");
        }
        Ok(())
    }

    #[test]
    fn or_one_with_a_number_that_grows_and_begins_again() -> Result<()> {
        let (mut request, _) = Request::to("http://127.0.0.1:81/a-{}/b", 2, true)?;
        for number in [0, 1, 0] {
            assert_eq!(request.number(), number);
            let wanted = format!("GET /a-{number}/b HTTP/1.0\r\nHost: 127.0.0.1:81\r\n\r\n");
            assert_eq!(request.next(), wanted.as_bytes());
        }
        Ok(())
    }

    #[test]
    fn an_address_of_https_names_its_server() -> Result<()> {
        let (mut request, server) = Request::to("https://localhost:81/a", 1, false)?;
        assert_eq!((server.name.as_str(), server.is_tls), ("localhost", true));
        assert_eq!(request.next(), b"GET /a HTTP/1.1\r\nHost: localhost:81\r\n\r\n");
        Ok(())
    }

    #[test]
    fn an_address_that_cannot_be_asked_is_refused() {
        let wrong = [
            ("ftp://127.0.0.1:81/", "neither of http"),
            ("127.0.0.1:81/", "no URI"),
            ("/a", "neither of http"),
            ("http://127.0.0.1/", "lead nowhere"),
            ("http://127.0.0.1:81", "no path"),
            ("http://127.0.0.1:81/a b", "no URI"),
        ];
        for (address, why) in wrong {
            let failure = Request::to(address, 1, false).expect_err(address).to_string();
            assert!(failure.contains(why) && failure.contains("http://HOST:PORT"), "{failure}");
        }
    }
}
