//! gRPC by tonic: calls bypass the cache, and answers of methods that only read are stored on request.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use eyewall::Purge;
use eyewall_tower::{CacheLayer, Purger};
use http::uri::PathAndQuery;
use http_body_util::BodyExt as _;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tonic::body::Body;
use tonic::codegen::{BoxFuture, Service, StdError};
use tonic::server::{NamedService, ServerStreamingService, UnaryService};
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Channel, Server};
use tonic::{Code, Request, Response, Status};
use tonic_prost::ProstCodec;

use crate::support::{Clock, Site, request, respond, volume};

const GREET: &str = "/test.Greeter/Greet";
const COUNT: &str = "/test.Greeter/Count";
const OTHER: &str = "/test.Greeter/Other";

#[derive(Clone, PartialEq, prost::Message)]
struct Name {
    #[prost(string, tag = "1")]
    name: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Greeting {
    #[prost(string, tag = "1")]
    text: String,
}

/// Counts its calls.
#[derive(Clone, Default)]
struct Greeter(Arc<AtomicUsize>);

impl Greeter {
    fn greet(&self, name: &str) -> Result<Greeting, Status> {
        let number = self.0.fetch_add(1, Ordering::SeqCst) + 1;
        if name == "nobody" {
            Err(Status::not_found("nobody"))
        } else {
            Ok(Greeting { text: format!("{name} {number}") })
        }
    }
}

impl UnaryService<Name> for Greeter {
    type Response = Greeting;
    type Future = BoxFuture<Response<Greeting>, Status>;

    fn call(&mut self, request: Request<Name>) -> Self::Future {
        let greeting = self.greet(&request.into_inner().name);
        Box::pin(async move {
            let mut response = Response::new(greeting?);
            response.metadata_mut().insert("x-own", "1".parse().unwrap());
            Ok(response)
        })
    }
}

/// Two greetings. The second may fail.
struct Greetings(std::vec::IntoIter<Result<Greeting, Status>>);

impl tonic::codegen::tokio_stream::Stream for Greetings {
    type Item = Result<Greeting, Status>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.0.next())
    }
}

impl ServerStreamingService<Name> for Greeter {
    type Response = Greeting;
    type ResponseStream = Greetings;
    type Future = BoxFuture<Response<Greetings>, Status>;

    fn call(&mut self, request: Request<Name>) -> Self::Future {
        let first = self.greet("first");
        let second = self.greet(&request.into_inner().name);
        Box::pin(async move { Ok(Response::new(Greetings(vec![first, second].into_iter()))) })
    }
}

impl<B> Service<http::Request<B>> for Greeter
where
    B: http_body::Body + Send + 'static,
    B::Error: Into<StdError> + Send + 'static,
{
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<http::Response<Body>, Infallible>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let greeter = self.clone();
        Box::pin(async move {
            let mut grpc = tonic::server::Grpc::new(ProstCodec::<Greeting, Name>::default());
            Ok(if request.uri().path() == COUNT {
                grpc.server_streaming(greeter, request).await
            } else {
                grpc.unary(greeter, request).await
            })
        })
    }
}

impl NamedService for Greeter {
    const NAME: &'static str = "test.Greeter";
}

/// A server with a layer that stores the answers of some methods for a minute.
struct Running {
    greeter: Greeter,
    clock: Clock,
    purger: Purger,
    client: tonic::client::Grpc<Channel>,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<()>,
}

impl Running {
    async fn new() -> Self {
        let (greeter, clock) = (Greeter::default(), Clock::default());
        let time = clock.clone();
        let layer = CacheLayer::new(volume())
            .cache_grpc([GREET, COUNT], Duration::from_mins(1))
            .default_ttl(Duration::from_mins(1))
            .clock(move || time.now());
        let purger = layer.purger();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let (stop, stopped) = oneshot::channel();
        let server = Server::builder().layer(layer).add_service(greeter.clone());
        let serving = tokio::spawn(async move {
            let stopped = async { drop(stopped.await) };
            server.serve_with_incoming_shutdown(TcpIncoming::from(listener), stopped).await.unwrap();
        });
        let channel = Channel::from_shared(address).unwrap().connect().await.unwrap();
        Self { greeter, clock, purger, client: tonic::client::Grpc::new(channel), stop, serving }
    }

    async fn call(&mut self, method: &'static str, request: Request<Name>) -> Result<String, Code> {
        self.client.ready().await.unwrap();
        let codec = ProstCodec::<Name, Greeting>::default();
        let answer = self.client.unary(request, PathAndQuery::from_static(method), codec).await;
        let answer = answer.map_err(|status| status.code())?;
        assert_eq!(answer.metadata().get("x-own").unwrap(), "1");
        Ok(answer.into_inner().text)
    }

    async fn greet(&mut self, name: &str) -> Result<String, Code> {
        self.call(GREET, Request::new(Name { name: name.to_owned() })).await
    }

    /// The greetings of a stream.
    async fn count(&mut self, name: &str) -> Vec<Result<String, Code>> {
        self.client.ready().await.unwrap();
        let codec = ProstCodec::<Name, Greeting>::default();
        let request = Request::new(Name { name: name.to_owned() });
        let stream = self.client.server_streaming(request, PathAndQuery::from_static(COUNT), codec).await;
        let mut stream = stream.unwrap().into_inner();
        let mut found = Vec::new();
        loop {
            match stream.message().await {
                Ok(Some(greeting)) => found.push(Ok(greeting.text)),
                Ok(None) => return found,
                Err(status) => {
                    found.push(Err(status.code()));
                    return found;
                }
            }
        }
    }

    fn calls(&self) -> usize {
        self.greeter.0.load(Ordering::SeqCst)
    }

    async fn end(self) {
        drop(self.client);
        self.stop.send(()).unwrap();
        self.serving.await.unwrap();
    }
}

#[tokio::test]
async fn the_answer_to_the_same_message_is_stored_with_its_trailers() {
    let mut server = Running::new().await;
    for _ in 0..2 {
        assert_eq!(server.greet("ann").await.unwrap(), "ann 1");
    }
    assert_eq!(server.greet("bob").await.unwrap(), "bob 2");
    server.clock.advance(60);
    assert_eq!(server.greet("ann").await.unwrap(), "ann 3");
    assert_eq!(server.calls(), 3);
    server.end().await;
}

#[tokio::test]
async fn errors_are_not_stored() {
    let mut server = Running::new().await;
    for _ in 0..2 {
        assert_eq!(server.greet("nobody").await, Err(Code::NotFound));
    }
    assert_eq!(server.calls(), 2);
    for _ in 0..2 {
        let found = server.count("nobody").await;
        assert!(found[0].is_ok() && found[1] == Err(Code::NotFound), "{found:?}");
    }
    assert_eq!(server.calls(), 6, "one that failed behind its beginning isn't, either");
    server.end().await;
}

#[tokio::test]
async fn other_methods_and_named_users_pass() {
    let mut server = Running::new().await;
    for number in 1..3 {
        let request = Request::new(Name { name: "ann".to_owned() });
        assert_eq!(server.call(OTHER, request).await.unwrap(), format!("ann {number}"));
    }
    for number in 3..5 {
        let mut request = Request::new(Name { name: "ann".to_owned() });
        request.metadata_mut().insert("authorization", "Bearer x".parse().unwrap());
        assert_eq!(server.call(GREET, request).await.unwrap(), format!("ann {number}"));
    }
    let long = "x".repeat(70_000);
    for number in 5..7 {
        assert_eq!(server.greet(&long).await.unwrap(), format!("{long} {number}"));
    }
    server.end().await;
}

#[tokio::test]
async fn a_method_is_purged_by_its_name() {
    let mut server = Running::new().await;
    server.greet("ann").await.unwrap();
    server.purger.tag(GREET, Purge::Hard).await.unwrap();
    assert_eq!(server.greet("ann").await.unwrap(), "ann 2");
    server.end().await;
}

#[tokio::test]
async fn content_that_is_no_single_message_passes_unchanged() {
    let site = crate::support::Site::new(
        |layer| layer.cache_grpc([GREET], Duration::from_mins(1)),
        |_, content| crate::support::respond(&[("content-type", "application/grpc")], content),
    );
    for content in ["", "\0\0\0\0\u{5}four", "\0\0\0\0\u{1}a\0\0\0\0\u{1}b"] {
        let fields = [("content-type", "application/grpc")];
        let request = crate::support::request(http::Method::POST, GREET, &fields, content.into());
        let answer = site.start(request).await.unwrap();
        assert!(!answer.headers().contains_key("cache-status"));
        assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), content);
    }
    assert_eq!(site.count(), 3);
}

#[tokio::test]
async fn all_codings_that_a_client_accepts_are_part_of_the_key() {
    let message = [&[0, 0, 0, 0, 2][..], b"hi"].concat();
    let site = Site::new(
        |layer| layer.cache_grpc([GREET], Duration::from_mins(1)),
        |parts, _| {
            let lines = parts.headers.get_all("grpc-accept-encoding").iter().count();
            let trailers = http::HeaderMap::from_iter([(
                http::HeaderName::from_static("grpc-status"),
                http::HeaderValue::from_static("0"),
            )]);
            let body = http_body_util::Full::new(bytes::Bytes::from(format!("for {lines}")));
            respond(&[], axum::body::Body::new(body.with_trailers(std::future::ready(Some(Ok(trailers))))))
        },
    );
    let call = async |codings: &[&str]| {
        let mut fields = vec![("content-type", "application/grpc")];
        fields.extend(codings.iter().map(|coding| ("grpc-accept-encoding", *coding)));
        let body = axum::body::Body::from(message.clone());
        site.send(request(http::Method::POST, GREET, &fields, body)).await.text().to_owned()
    };
    assert_eq!(call(&["identity", "gzip"]).await, "for 2");
    assert_eq!(call(&["identity"]).await, "for 1", "it takes no gzip");
    assert_eq!((call(&["identity", "gzip"]).await.as_str(), site.count()), ("for 2", 2), "both are stored");
}
