//! Over HTTP/2, Eyewall sends bodies in pieces of one frame, however large a stored value is. All bytes arrive, with the announced length.

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Empty};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;

use crate::common::origin::Origin;
use crate::common::server::Server;

#[tokio::test]
async fn whole_bodies_of_all_lengths() {
    const FRAME: usize = 16 << 10;
    let lengths = [0, 1, FRAME - 1, FRAME, FRAME + 1, 10 * FRAME + 7];
    let origin = Origin::answering(|asked| {
        let length: usize = asked.target.trim_start_matches('/').parse().unwrap();
        (200, "Cache-Control: max-age=60".to_owned(), (0..=250).cycle().take(length).collect())
    });
    let server = Server::over_origin(&origin.url());
    let stream = TcpStream::connect(server.address).await.unwrap();
    let (mut sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    for length in lengths {
        let expected: Vec<u8> = (0..=250).cycle().take(length).collect();
        // A miss, and a hit.
        for _ in 0..2 {
            let request = Request::get(format!("http://a.example/{length}")).body(Empty::<Bytes>::new()).unwrap();
            let response = sender.send_request(request).await.unwrap();
            assert_eq!(response.headers()["content-length"], length.to_string());
            assert!(response.into_body().collect().await.unwrap().to_bytes() == expected, "{length}");
        }
    }
    assert_eq!(origin.asked().len(), lengths.len());
}
