//! Origins that speak HTTP/2, in clear text or over TLS.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread;

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream};
use http::request::Parts;
use http::{HeaderMap, Response};
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio_rustls::TlsAcceptor;

/// What an origin does to a connection.
pub(crate) enum Order {
    /// Says that it takes no more requests, and answers those that it has.
    GoAway,
    /// Closes it without a word.
    Drop,
}

/// A request at an origin.
pub(crate) struct Stream {
    pub(crate) parts: Parts,
    pub(crate) body: RecvStream,
    /// The number of its connection.
    pub(crate) connection: usize,
    /// The number of the request, from 1.
    pub(crate) number: usize,
    respond: SendResponse<Bytes>,
    orders: UnboundedSender<Order>,
}

/// An origin that lives as long as the process of the tests.
pub(crate) struct Http2Origin {
    pub(crate) address: SocketAddr,
    asked: Arc<Mutex<Vec<(usize, Parts)>>>,
}

impl Stream {
    pub(crate) fn path(&self) -> &str {
        self.parts.uri.path()
    }

    pub(crate) async fn text(&mut self) -> String {
        let mut text = Vec::new();
        while let Some(piece) = self.body.data().await {
            let piece = piece.expect("a body");
            self.body.flow_control().release_capacity(piece.len()).expect("it has come");
            text.extend_from_slice(&piece);
        }
        String::from_utf8(text).expect("the body is text")
    }

    /// Answers with these fields, a body, and trailers if they are given.
    pub(crate) async fn answer(mut self, fields: &[(&'static str, &str)], body: Bytes, trailers: Option<HeaderMap>) {
        let mut response = Response::builder();
        for (name, value) in fields {
            response = response.header(*name, *value);
        }
        // The server may have reset it, which the test checks.
        let Ok(mut stream) = self.respond.send_response(response.body(()).expect("a response"), false) else { return };
        let mut left = body;
        while !left.is_empty() {
            stream.reserve_capacity(left.len());
            let Some(Ok(capacity)) = poll_fn(|context| stream.poll_capacity(context)).await else { return };
            if stream.send_data(left.split_to(capacity.min(left.len())), false).is_err() {
                return;
            }
        }
        let _ = match trailers {
            Some(trailers) => stream.send_trailers(trailers),
            None => stream.send_data(Bytes::new(), true),
        };
    }

    pub(crate) async fn answer_text(self, text: &str) {
        self.answer(&[("cache-control", "no-store")], Bytes::copy_from_slice(text.as_bytes()), None).await;
    }

    /// Sends a part of a body of unknown length, and ends the stream without an error once this `may_end`.
    pub(crate) async fn cut_off(mut self, part: &'static [u8], may_end: &Semaphore) {
        let head = Response::builder().header("cache-control", "max-age=60").body(()).expect("a response");
        let mut stream = self.respond.send_response(head, false).expect("the connection stands");
        stream.send_data(Bytes::from_static(part), false).expect("the window is larger");
        may_end.acquire().await.expect("it is open").forget();
        stream.send_reset(Reason::NO_ERROR);
    }

    pub(crate) fn reset(mut self, reason: Reason) {
        self.respond.send_reset(reason);
    }

    /// Waits until the server resets it.
    pub(crate) async fn was_reset(&mut self) -> Reason {
        poll_fn(|context| self.respond.poll_reset(context)).await.expect("the connection stands")
    }

    pub(crate) fn order(&self, order: Order) {
        let _ = self.orders.send(order);
    }
}

impl Http2Origin {
    /// Answers each request by the function, in a task of its own.
    pub(crate) fn start<F: Future<Output = ()> + Send + 'static>(
        answer: impl Fn(Stream) -> F + Send + Sync + 'static,
    ) -> Self {
        Self::limited(None, None, answer)
    }

    /// With at most this many requests at the same time on a connection, and TLS.
    pub(crate) fn limited<F: Future<Output = ()> + Send + 'static>(
        streams_max: Option<u32>,
        tls: Option<Arc<ServerConfig>>,
        answer: impl Fn(Stream) -> F + Send + Sync + 'static,
    ) -> Self {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (record, answer) = (Arc::clone(&asked), Arc::new(answer));
        let (sender, receiver) = channel();
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
                sender.send(listener.local_addr().expect("it has an address")).expect("the test waits");
                let (mut connection, requests) = (0, Arc::new(AtomicUsize::new(0)));
                while let Ok((stream, _)) = listener.accept().await {
                    connection += 1;
                    let (record, answer) = (Arc::clone(&record), Arc::clone(&answer));
                    let place = (connection, streams_max, Arc::clone(&requests));
                    match &tls {
                        None => drop(tokio::spawn(serve(stream, place, record, answer))),
                        Some(tls) => {
                            let handshake = TlsAcceptor::from(Arc::clone(tls)).accept(stream);
                            tokio::spawn(async move {
                                if let Ok(stream) = handshake.await {
                                    serve(stream, place, record, answer).await;
                                }
                            });
                        }
                    }
                }
            });
        });
        Self { address: receiver.recv().expect("it starts"), asked }
    }

    /// The requests that it got, each with the number of its connection.
    pub(crate) fn asked(&self) -> Vec<(usize, Parts)> {
        self.asked.lock().expect("no test has failed").clone()
    }

    pub(crate) fn connections(&self) -> usize {
        self.asked().iter().map(|(connection, _)| *connection).collect::<BTreeSet<_>>().len()
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

async fn serve<F: Future<Output = ()> + Send + 'static>(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    (connection, streams_max, requests): (usize, Option<u32>, Arc<AtomicUsize>),
    record: Arc<Mutex<Vec<(usize, Parts)>>>,
    answer: Arc<impl Fn(Stream) -> F>,
) {
    let mut builder = h2::server::Builder::new();
    if let Some(streams_max) = streams_max {
        builder.max_concurrent_streams(streams_max);
    }
    let Ok(mut http2) = builder.handshake(stream).await else { return };
    let (orders, mut ordered) = unbounded_channel();
    loop {
        let request = tokio::select! {
            request = http2.accept() => request,
            order = ordered.recv() => match order {
                Some(Order::GoAway) => {
                    http2.graceful_shutdown();
                    continue;
                }
                Some(Order::Drop) | None => return,
            },
        };
        let Some(Ok((request, respond))) = request else { return };
        let (parts, body) = request.into_parts();
        record.lock().expect("no test has failed").push((connection, parts.clone()));
        let number = requests.fetch_add(1, Ordering::Relaxed) + 1;
        tokio::spawn(answer(Stream { parts, body, connection, number, respond, orders: orders.clone() }));
    }
}
