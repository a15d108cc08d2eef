//! Shared by the servers: one thread, a loopback port, and hyper on each connection.

use std::convert::Infallible;
use std::error::Error as StdError;
use std::io::{self, Write};
use std::net::SocketAddr;

use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpSocket};

use crate::error::{Error, Result};

/// As many as the other servers get.
const BACKLOG: u32 = 4096;

/// Serves on a free loopback port until standard input ends; the first line has `name` and the address.
pub(crate) fn run<B, F>(name: &str, answer: impl Fn(Request<Incoming>) -> F + Clone + Send + 'static) -> Result<()>
where
    B: Body<Data: Send, Error: Into<Box<dyn StdError + Send + Sync>>> + Send + 'static,
    F: Future<Output = Response<B>> + Send,
{
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Error::io("a runtime"))?;
    runtime.block_on(async {
        let listener = bind().map_err(Error::io("listening on the loopback"))?;
        let address = listener.local_addr().map_err(Error::io("the port"))?;
        tell(name, address).map_err(Error::io("standard output"))?;
        end_with_standard_input();
        loop {
            let (stream, _) = listener.accept().await.map_err(Error::io("accepting a connection"))?;
            stream.set_nodelay(true).map_err(Error::io("TCP_NODELAY"))?;
            let answer = answer.clone();
            let service = service_fn(move |request| {
                let response = answer(request);
                async { Ok::<_, Infallible>(response.await) }
            });
            // A client that disconnects ends only its own connection.
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    })
}

fn bind() -> io::Result<TcpListener> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(SocketAddr::from(([127, 0, 0, 1], 0)))?;
    socket.listen(BACKLOG)
}

fn tell(name: &str, address: SocketAddr) -> io::Result<()> {
    let mut out = io::stdout();
    writeln!(out, "{name} on http://{address}")?;
    out.flush()
}

/// The starting program may die silently; then its end of the pipe closes.
fn end_with_standard_input() {
    std::thread::spawn(|| {
        // An unreadable input counts as ended.
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        std::process::exit(0);
    });
}
