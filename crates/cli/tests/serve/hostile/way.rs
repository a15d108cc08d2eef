//! The ways to a server: in clear text and over TLS. Each attack runs over both.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};

use crate::common::authority::Authority;
use crate::common::client::{self, Reply, connect};
use crate::common::http2;
use crate::common::https::{Client, Https, connect_by};
use crate::common::server::Server;

/// The host of all requests, and of the certificate.
pub(super) const HOST: &str = "test";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Clear,
    Tls,
}

/// A connection of a client.
pub(super) trait Wire: Read + Write + Send {
    fn socket(&self) -> &TcpStream;

    /// Ends the direction to the server.
    fn end(&mut self) {
        let _ = self.socket().shutdown(Shutdown::Write);
    }
}

/// A server that speaks HTTP and HTTPS for the same site, and the clients of one of both.
pub(super) struct Reached {
    pub(super) server: Server,
    pub(super) way: Way,
    authority: Authority,
    https: std::net::SocketAddr,
    http1: Arc<ClientConfig>,
    http2: Arc<ClientConfig>,
}

impl Way {
    pub(super) const BOTH: [Self; 2] = [Self::Clear, Self::Tls];

    /// The number of `:scheme` in the table of HPACK (RFC 7541, appendix A).
    pub(super) fn scheme(self) -> u8 {
        match self {
            Self::Clear => 0x86,
            Self::Tls => 0x87,
        }
    }

    /// The memory that an idle connection needs in addition: the state of rustls.
    pub(super) fn bytes(self) -> u64 {
        match self {
            Self::Clear => 0,
            Self::Tls => 24 << 10,
        }
    }

    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Clear => "clear text",
            Self::Tls => "TLS",
        }
    }
}

impl Wire for TcpStream {
    fn socket(&self) -> &TcpStream {
        self
    }
}

impl Wire for Client {
    fn socket(&self) -> &TcpStream {
        &self.sock
    }

    fn end(&mut self) {
        self.conn.send_close_notify();
        let _ = self.conn.complete_io(&mut self.sock);
        let _ = self.sock.shutdown(Shutdown::Write);
    }
}

impl Reached {
    /// `server` are lines of `[server]`, which may have tables. `site` are lines of the only site.
    pub(super) fn new(way: Way, server: &str, site: &str) -> Self {
        let authority = Authority::new();
        let certificate = authority.issue("test.pem", &[HOST]);
        let site = format!("[[site]]\ntls = {{ certificate = '{}' }}\n{site}", certificate.display());
        let Https { server, address } = authority.serve(&site, server);
        let [http1, http2] = ["http/1.1", "h2"].map(|protocol| Arc::new(authority.config(&[protocol])));
        Self { server, way, authority, https: address, http1, http2 }
    }

    pub(super) fn connect(&self) -> Box<dyn Wire> {
        self.try_connect(false).expect("the server accepts it, and shakes hands")
    }

    /// A connection that has begun to speak HTTP/2.
    pub(super) fn connect_http2(&self) -> Box<dyn Wire> {
        let mut stream = self.try_connect(true).expect("the server accepts it, and shakes hands");
        stream.write_all(http2::PREFACE).unwrap();
        stream.write_all(&http2::frame(super::SETTINGS, 0, 0, &[])).unwrap();
        stream
    }

    /// A connection that is about to speak one of both protocols.
    pub(super) fn try_connect(&self, is_http2: bool) -> io::Result<Box<dyn Wire>> {
        let config = if is_http2 { &self.http2 } else { &self.http1 };
        Ok(match self.way {
            Way::Clear => Box::new(connect(self.server.address)),
            Way::Tls => Box::new(connect_by(Arc::clone(config), self.https, HOST)?),
        })
    }

    /// A connection whose client doesn't wait for the server: over TLS, it has only sent its hello.
    pub(super) fn knock(&self) -> TcpStream {
        self.knock_with(&self.hello()).expect("the server listens")
    }

    /// The same with a hello that was made before.
    pub(super) fn knock_with(&self, hello: &[u8]) -> io::Result<TcpStream> {
        match self.way {
            Way::Clear => TcpStream::connect(self.server.address),
            Way::Tls => {
                let mut stream = TcpStream::connect(self.https)?;
                stream.write_all(hello)?;
                Ok(stream)
            }
        }
    }

    /// The first record of a client of TLS.
    pub(super) fn hello(&self) -> Vec<u8> {
        let host = ServerName::try_from(HOST).expect("a name");
        let mut client = ClientConnection::new(Arc::clone(&self.http1), host).expect("a client");
        let mut hello = Vec::new();
        client.write_tls(&mut hello).expect("a vector takes all");
        hello
    }

    /// The request of another client.
    pub(super) fn get(&self, target: &str) -> Reply {
        match self.way {
            Way::Clear => client::get(self.server.address, target),
            Way::Tls => self.authority.get(self.https, HOST, target),
        }
    }

    pub(super) fn get_until_hit(&self, target: &str) {
        while !self.get(target).is_hit() {}
    }
}

/// Writes pieces until the server closes, takes nothing for a while, or all are written. Returns the number of pieces that it took.
pub(super) fn write_all(stream: &mut dyn Wire, pieces: impl Iterator<Item = Vec<u8>>) -> usize {
    stream.socket().set_write_timeout(Some(Duration::from_secs(1))).unwrap();
    let mut count = 0;
    for piece in pieces {
        if stream.write_all(&piece).is_err() {
            break;
        }
        count += 1;
    }
    count
}

/// Whether the server closes a connection to which nothing more is sent. What it has sent before is read.
pub(super) fn is_closed(mut stream: Box<dyn Wire>) -> bool {
    stream.end();
    let mut piece = vec![0; 64 << 10];
    loop {
        match stream.read(&mut piece) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) => return error.kind() != io::ErrorKind::WouldBlock,
        }
    }
}
