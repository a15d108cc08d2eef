//! Eyewall refuses HTTP/2 requests that RFC 9113 calls malformed and hyper lets through.

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::Empty;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;

use crate::common::origin::Origin;
use crate::common::server::Server;

/// The status of a request for `http://a.example/` with these fields.
async fn status(server: &Server, fields: &[(&str, &str)]) -> StatusCode {
    let stream = TcpStream::connect(server.address).await.unwrap();
    let (mut sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    let driving = tokio::spawn(connection);
    let request = Request::builder().uri("http://a.example/");
    let request = fields.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    let response = sender.send_request(request.body(Empty::<Bytes>::new()).unwrap()).await.unwrap();
    driving.abort();
    response.status()
}

#[tokio::test]
async fn two_hosts_and_blanks_around_a_value() {
    let origin = Origin::counting("Cache-Control: max-age=60");
    let server = Server::over_origin(&origin.url());
    for fields in [
        &[("host", "b.example")][..],
        &[("host", "a.example"), ("host", "a.example")],
        &[("x-own", " before")],
        &[("x-own", "behind\t")],
    ] {
        assert_eq!(status(&server, fields).await, StatusCode::BAD_REQUEST, "{fields:?}");
    }
    assert!(origin.asked().is_empty());
    assert_eq!(status(&server, &[("host", "a.example"), ("x-own", "in between")]).await, StatusCode::OK);
}
