//! An origin that speaks HTTP/2: many requests share a connection, and the end of one request or connection harms no other.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use bytes::Bytes;
use h2::Reason;
use http::{HeaderMap, HeaderValue, Version};
use tokio::sync::{Barrier, Semaphore, mpsc};

use crate::common::authority::Authority;
use crate::common::client::{Reply, connect, parse, send};
use crate::common::http2::{PREFACE, frame};
use crate::common::http2_origin::{Http2Origin, Order, Stream};
use crate::common::origin::{Origin, read, respond};
use crate::common::server::Server;

const CHUNKED: &str = "Host: test\r\nConnection: close\r\nTransfer-Encoding: chunked";

/// A server with one worker, so with one pool, for an origin that is known to speak HTTP/2. `rest` has further settings of `[site.origin]`.
fn over(url: &str, rest: &str) -> Server {
    over_limited(url, rest, "")
}

fn over_limited(url: &str, rest: &str, server: &str) -> Server {
    Server::configured(&format!(
        "[server]\nworkers = 1\n{server}\n[[site]]\norigins = [\"{url}\"]\n[site.origin]\nhttp2 = \"always\"\n{rest}"
    ))
}

/// Sends the settings, and reads up to the first request.
fn begin(stream: &mut TcpStream) -> Option<()> {
    let mut preface = [0; PREFACE.len()];
    stream.read_exact(&mut preface).ok()?;
    stream.write_all(&frame(4, 0, 0, b"")).ok()?;
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).ok()?;
        let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
        stream.read_exact(&mut payload).ok()?;
        if head[3] == 1 {
            return Some(());
        }
    }
}

/// Asks for these targets at the same time.
fn get_all(server: &Server, targets: impl Iterator<Item = String>) -> Vec<Reply> {
    thread::scope(|scope| {
        let asking: Vec<_> = targets.map(|target| scope.spawn(move || server.get(&target))).collect();
        asking.into_iter().map(|asking| asking.join().unwrap()).collect()
    })
}

fn exchange(server: &Server, request: &str) -> Reply {
    let mut client = connect(server.address);
    client.write_all(request.as_bytes()).unwrap();
    let mut bytes = Vec::new();
    let _ = client.read_to_end(&mut bytes);
    parse(&bytes, false)
}

#[test]
fn requests_have_the_right_authority_and_no_fields_of_a_connection() {
    let origin = Http2Origin::start(async |stream: Stream| {
        stream.answer(&[("cache-control", "max-age=60")], Bytes::from_static(b"page"), None).await;
    });
    let server = over(&format!("{}/app", origin.url()), "");
    assert_eq!(server.ask("GET", "/a?b", &["X-Hop: 1", "Connection: x-hop, close", "TE: gzip"]).text(), "page");
    server.get_until("/a?b", Reply::is_hit);
    server.ask("POST", "/b", &["Content-Length: 0"]);
    let asked = origin.asked();
    assert_eq!(asked.len(), 2);
    for ((connection, parts), (method, path)) in asked.iter().zip([("GET", "/app/a?b"), ("POST", "/app/b")]) {
        assert_eq!((*connection, parts.version, parts.method.as_str()), (1, Version::HTTP_2, method));
        assert_eq!(parts.uri.to_string(), format!("http://test{path}"));
        let field = |name: &str| parts.headers.get(name).map_or("", |value| value.to_str().unwrap());
        for name in ["host", "connection", "x-hop", "transfer-encoding", "keep-alive", "upgrade"] {
            assert_eq!(field(name), "", "{name}");
        }
        assert_eq!((field("te"), field("x-forwarded-for")), ("trailers", "127.0.0.1"));
        assert_eq!((field("x-forwarded-host"), field("via")), ("test", "1.1 eyewall"));
    }
}

#[test]
fn concurrent_misses_share_a_connection() {
    const MISSES: usize = 30;
    let together = Arc::new(Barrier::new(MISSES));
    let origin = Http2Origin::start(move |stream| {
        let together = Arc::clone(&together);
        async move {
            together.wait().await;
            let path = stream.path().to_owned();
            stream.answer_text(&path).await;
        }
    });
    let server = over(&origin.url(), "");
    let replies = get_all(&server, (0..MISSES).map(|number| format!("/{number}")));
    for (number, reply) in replies.iter().enumerate() {
        assert_eq!(reply.text(), format!("/{number}"));
    }
    assert_eq!(origin.connections(), 1);
}

#[test]
fn more_requests_than_a_connection_may_have_open_others() {
    const MISSES: usize = 7;
    let together = Arc::new(Barrier::new(MISSES));
    let origin = Http2Origin::limited(Some(2), None, move |stream| {
        let together = Arc::clone(&together);
        async move {
            together.wait().await;
            stream.answer_text("well").await;
        }
    });
    let server = over(&origin.url(), "");
    // The first connection brings the limit.
    let replies = get_all(&server, (0..MISSES).map(|number| format!("/{number}")));
    assert!(replies.iter().all(|reply| reply.text() == "well"), "{replies:?}");
    assert_eq!(origin.connections(), MISSES.div_ceil(2));
}

#[test]
fn a_request_that_the_origin_has_not_processed_is_repeated_whatever_its_method() {
    for reason in [Reason::REFUSED_STREAM, Reason::HTTP_1_1_REQUIRED] {
        let origin = Http2Origin::start(move |stream| async move {
            if stream.number % 2 == 1 {
                stream.reset(reason);
            } else {
                stream.answer_text("well").await;
            }
        });
        let server = over(&origin.url(), "retries = 0\n");
        assert_eq!(server.get("/a").text(), "well");
        assert_eq!(server.ask("POST", "/a", &["Content-Length: 0"]).text(), "well");
        assert_eq!(origin.asked().len(), 4);
    }
}

#[test]
fn a_request_that_was_processed_in_part_is_repeated_only_if_it_may_be() {
    let origin = Http2Origin::start(async |stream: Stream| {
        if stream.number % 2 == 1 {
            stream.order(Order::Drop);
            std::future::pending::<()>().await;
        } else {
            stream.answer_text("well").await;
        }
    });
    let server = over(&origin.url(), "");
    assert_eq!(server.get("/a").text(), "well");
    let posted = server.ask("POST", "/a", &["Content-Length: 0"]);
    assert_eq!((posted.status, posted.cache()), (502, "Eyewall; fwd=method; detail=origin-broken"));
    assert_eq!(origin.asked().len(), 3);
}

#[test]
fn an_origin_that_always_refuses_is_not_asked_forever() {
    let origin = Http2Origin::start(async |stream: Stream| stream.reset(Reason::REFUSED_STREAM));
    let server = over(&origin.url(), "");
    assert_eq!(server.get("/a").status, 502);
    let count = origin.asked().len();
    assert!((2..10).contains(&count), "{count}");
}

#[test]
fn after_goaway_requests_use_another_connection_and_those_in_flight_end() {
    let (may_end, going) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let (end, gone) = (Arc::clone(&may_end), Arc::clone(&going));
    let origin = Http2Origin::start(move |stream| {
        let (end, gone) = (Arc::clone(&end), Arc::clone(&gone));
        async move {
            if stream.path() == "/long" {
                stream.order(Order::GoAway);
                gone.add_permits(1);
                end.acquire().await.unwrap().forget();
            }
            let text = format!("{} on {}", stream.path(), stream.connection);
            stream.answer_text(&text).await;
        }
    });
    let server = over(&origin.url(), "");
    thread::scope(|scope| {
        let long = scope.spawn(|| server.get("/long"));
        while going.try_acquire().is_err() {
            thread::yield_now();
        }
        // Until the frame has arrived, requests may still use the first connection, which then says that it has not processed them.
        let other = server.get_until("/short", |reply| reply.text() == "/short on 2");
        assert_eq!(other.status, 200);
        // A body that can't be repeated.
        let posted = exchange(&server, &format!("POST /post HTTP/1.1\r\n{CHUNKED}\r\n\r\n2\r\nhi\r\n0\r\n\r\n"));
        assert_eq!(posted.text(), "/post on 2");
        may_end.add_permits(1);
        assert_eq!(long.join().unwrap().text(), "/long on 1");
    });
}

#[test]
fn a_connection_that_dies_fails_its_own_streams_only() {
    let all = Arc::new(Barrier::new(4));
    let origin = Http2Origin::limited(Some(2), None, move |stream| {
        let all = Arc::clone(&all);
        async move {
            if stream.path() == "/first" {
                return stream.answer_text("first").await;
            }
            all.wait().await;
            if stream.connection == 1 {
                stream.order(Order::Drop);
                std::future::pending::<()>().await;
            }
            stream.answer_text("well").await;
        }
    });
    let server = over(&origin.url(), "");
    // Brings the limit of two streams.
    server.get("/first");
    let post = |number| format!("POST /{number} HTTP/1.1\r\n{CHUNKED}\r\n\r\n0\r\n\r\n");
    let statuses = thread::scope(|scope| {
        let asking: Vec<_> = (0..4)
            .map(|number| {
                scope.spawn({
                    let server = &server;
                    move || exchange(server, &post(number)).status
                })
            })
            .collect();
        let mut statuses: Vec<u16> = asking.into_iter().map(|asking| asking.join().unwrap()).collect();
        statuses.sort_unstable();
        statuses
    });
    assert_eq!(statuses, [200, 200, 502, 502]);
}

#[test]
fn a_client_that_leaves_resets_its_stream_only() {
    let (told, mut tell) = mpsc::unbounded_channel();
    let (left, may_end) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let (has_left, end) = (Arc::clone(&left), Arc::clone(&may_end));
    let origin = Http2Origin::start(move |mut stream| {
        let (told, has_left, end) = (told.clone(), Arc::clone(&has_left), Arc::clone(&end));
        async move {
            told.send(stream.path().to_owned()).unwrap();
            if stream.path() == "/left" {
                assert_eq!(stream.was_reset().await, Reason::CANCEL);
                has_left.add_permits(1);
            } else {
                end.acquire().await.unwrap().forget();
                let text = format!("stayed on {}", stream.connection);
                stream.answer_text(&text).await;
            }
        }
    });
    let server = over(&origin.url(), "");
    thread::scope(|scope| {
        let stayed = scope.spawn(|| server.ask("POST", "/stayed", &["Content-Length: 0"]));
        let mut leaving = connect(server.address);
        send(&mut leaving, "POST", "/left", &["Content-Length: 0"]);
        let mut seen = [tell.blocking_recv().unwrap(), tell.blocking_recv().unwrap()];
        seen.sort();
        assert_eq!(seen, ["/left", "/stayed"]);
        drop(leaving);
        while left.try_acquire().is_err() {
            thread::yield_now();
        }
        may_end.add_permits(1);
        assert_eq!(stayed.join().unwrap().text(), "stayed on 1");
    });
}

#[test]
fn announced_trailers_pass_in_both_directions() {
    let origin = Http2Origin::start(async |mut stream: Stream| {
        let text = stream.text().await;
        let trailers = stream.body.trailers().await.unwrap().unwrap_or_default();
        let seen = format!("{text} {} {}", trailers.len(), trailers["x-sum"].to_str().unwrap());
        let trailers = HeaderMap::from_iter([("x-back".parse().unwrap(), HeaderValue::from_static("2"))]);
        stream.answer(&[("trailer", "x-back")], Bytes::from(seen), Some(trailers)).await;
    });
    let server = over(&origin.url(), "");
    let mut client = connect(server.address);
    let head = format!("POST / HTTP/1.1\r\n{CHUNKED}\r\nTE: trailers\r\nTrailer: X-Sum\r\n\r\n");
    client.write_all(format!("{head}2\r\nhi\r\n0\r\nX-Sum: 1\r\nX-Other: 3\r\n\r\n").as_bytes()).unwrap();
    let mut reply = String::new();
    client.read_to_string(&mut reply).unwrap();
    assert!(reply.contains("hi 1 1"), "{reply}");
    assert!(!origin.asked()[0].1.headers.contains_key("transfer-encoding"));
}

#[test]
fn large_bodies_pass_in_both_directions() {
    const BYTES: usize = 9 << 20;
    let origin = Http2Origin::start(async |mut stream: Stream| {
        let text = stream.text().await;
        stream.answer(&[("cache-control", "max-age=60")], Bytes::from(text), None).await;
    });
    let server = over(&origin.url(), "");
    let body: String = ('a'..='z').cycle().take(BYTES).collect();
    let head = format!("PUT / HTTP/1.1\r\nHost: test\r\nConnection: close\r\nContent-Length: {BYTES}\r\n\r\n");
    let reply = exchange(&server, &(head + &body));
    assert!(reply.text() == body, "{} bytes of {BYTES}", reply.body.len());
}

#[test]
fn a_client_that_reads_nothing_holds_up_no_other() {
    const STALLED: usize = 20;
    let origin = Http2Origin::start(async |stream: Stream| {
        if stream.path().starts_with("/large") {
            stream.answer(&[("cache-control", "no-store")], Bytes::from(vec![0; 32 << 20]), None).await;
        } else {
            stream.answer_text("small").await;
        }
    });
    let server = over(&origin.url(), "");
    let stalled: Vec<TcpStream> = (0..STALLED)
        .map(|number| {
            let mut client = connect(server.address);
            send(&mut client, "GET", &format!("/large/{number}"), &[]);
            let mut first = [0];
            client.read_exact(&mut first).unwrap();
            client
        })
        .collect();
    assert_eq!(server.get("/small").text(), "small");
    assert_eq!(origin.connections(), 1);
    drop(stalled);
}

#[test]
fn limits_and_timeouts_apply() {
    let origin = Http2Origin::start(async |mut stream: Stream| {
        if stream.path() == "/silent" {
            std::future::pending::<()>().await;
        }
        stream.text().await;
    });
    let server =
        over_limited(&origin.url(), "timeout = \"200ms\"\nretries = 0\n", "[server.limits]\nbody_bytes_max = \"10\"\n");
    let late = server.get("/silent");
    assert_eq!((late.status, late.cache()), (504, "Eyewall; fwd=uri-miss; detail=origin-late"));
    let large = exchange(&server, &format!("POST / HTTP/1.1\r\n{CHUNKED}\r\n\r\n10\r\n0123456789abcdef\r\n0\r\n\r\n"));
    assert_eq!((large.status, large.cache()), (413, "Eyewall; fwd=method; detail=body-too-large"));
    let mut slow = connect(server.address);
    slow.write_all(format!("POST / HTTP/1.1\r\n{CHUNKED}\r\n\r\n2\r\nhi\r\n").as_bytes()).unwrap();
    let mut bytes = Vec::new();
    slow.read_to_end(&mut bytes).unwrap();
    assert_eq!(parse(&bytes, false).status, 408);
}

#[test]
fn tls_chooses_the_version() {
    let authority = Authority::new();
    let answer = async |stream: Stream| stream.answer_text("by HTTP/2").await;
    let http2 = Http2Origin::limited(None, Some(authority.vouch_for("127.0.0.1", &["h2", "http/1.1"])), answer);
    let http2_only = Http2Origin::limited(None, Some(authority.vouch_for("127.0.0.1", &["h2"])), answer);
    let tls = authority.vouch_for("127.0.0.1", &["http/1.1"]);
    let count = Arc::new(AtomicUsize::new(0));
    let handshakes = Arc::clone(&count);
    let http1 = Origin::silent(move |stream| {
        let mut connection = rustls::ServerConnection::new(Arc::clone(&tls)).unwrap();
        let mut secure = rustls::Stream::new(&mut connection, stream);
        handshakes.fetch_add(1, Ordering::SeqCst);
        if read(&mut secure).is_some() {
            respond(&mut secure, 200, "Cache-Control: no-store", 9, b"by HTTP/1");
        }
    });
    let server = |port: u16, http2: &str| {
        Server::over_site(
            &format!("https://127.0.0.1:{port}"),
            &format!("[site.origin]\n{http2}\n[site.origin.tls]\nca_file = \"{}\"\n", authority.file().display()),
        )
    };
    assert_eq!(server(http2.address.port(), "").get("/").text(), "by HTTP/2");
    let (_, parts) = http2.asked().remove(0);
    assert_eq!(parts.uri.to_string(), "https://test/");
    assert_eq!(server(http2_only.address.port(), "http2 = \"always\"").get("/").text(), "by HTTP/2");
    let automatic = server(http1.address.port(), "");
    for _ in 0..3 {
        assert_eq!(automatic.get("/").text(), "by HTTP/1");
    }
    assert_eq!(count.load(Ordering::SeqCst), 3, "the connection on which it chose HTTP/1.1 is used");
    let demanded = server(http1.address.port(), "http2 = \"always\"").get("/");
    assert_eq!(demanded.status, 502);
    assert_ne!(
        server(http2.address.port(), "http2 = \"never\"").get("/").status,
        200,
        "this origin knows HTTP/2 alone"
    );
}

#[test]
fn an_upgrade_goes_by_http1() {
    let origin = Origin::raw(|_, stream| {
        let head = "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\nhello";
        let _ = stream.write_all(head.as_bytes());
    });
    let server = over(&origin.url(), "");
    let reply = server.ask("GET", "/chat", &["Connection: upgrade", "Upgrade: websocket"]);
    assert_eq!((reply.status, reply.text()), (101, "hello"));
}

#[test]
fn malformed_responses_are_refused() {
    // Literal fields without indexing (RFC 7541, section 6.2.2); 0x88 is `:status: 200`.
    let field = |name: &str, value: &str| {
        [&[0, name.len() as u8], name.as_bytes(), &[value.len() as u8], value.as_bytes()].concat()
    };
    let blocks = [
        [vec![0x88], field("connection", "x-a"), field("x-a", "1")].concat(),
        [vec![0x88], field("transfer-encoding", "chunked")].concat(),
        [vec![0x88], field("X-Large", "1")].concat(),
        [vec![0x88], field("x-a", "1\r\nx-b: 2")].concat(),
        [field("x-a", "1"), vec![0x88]].concat(),
        field("x-without-status", "1"),
    ];
    for block in blocks {
        let sent = block.clone();
        let origin = Origin::silent(move |stream| {
            if begin(stream).is_none() {
                return;
            }
            // END_STREAM and END_HEADERS.
            let _ = stream.write_all(&frame(1, 5, 1, &sent));
            let mut rest = Vec::new();
            let _ = stream.read_to_end(&mut rest);
        });
        let reply = over(&origin.url(), "retries = 0\n").get("/");
        assert_eq!(reply.status, 502, "{}", String::from_utf8_lossy(&block));
    }
}

#[test]
fn an_origin_that_does_not_speak_http2_is_broken() {
    let by_http1 = Origin::silent(|stream| {
        let _ = read(stream);
        respond(stream, 400, "", 0, b"");
    });
    let closing = Origin::silent(|stream| drop(stream.write_all(&frame(4, 0, 0, b""))));
    for origin in [by_http1, closing] {
        let reply = over(&origin.url(), "retries = 0\n").get("/");
        assert_eq!((reply.status, reply.cache()), (502, "Eyewall; fwd=uri-miss; detail=origin-broken"));
    }
}

#[test]
fn a_body_that_the_origin_cuts_off_without_an_error_is_not_whole() {
    const PART: &[u8] = b"a part of a page";
    let may_end = Arc::new(Semaphore::new(0));
    let origin = {
        let may_end = Arc::clone(&may_end);
        Http2Origin::start(move |stream: Stream| {
            let may_end = Arc::clone(&may_end);
            async move { stream.cut_off(PART, &may_end).await }
        })
    };
    let server = over(&format!("http://{}", origin.address), "");
    for asked in 1..=2 {
        let mut client = connect(server.address);
        client.write_all(b"GET / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n").unwrap();
        let mut received = Vec::new();
        while !received.windows(PART.len()).any(|bytes| bytes == PART) {
            let mut byte = [0];
            client.read_exact(&mut byte).unwrap();
            received.push(byte[0]);
        }
        may_end.add_permits(1);
        let _ = client.read_to_end(&mut received);
        assert!(!received.ends_with(b"0\r\n\r\n"), "the end of a whole body");
        assert_eq!(origin.asked().len(), asked, "it was not stored");
    }
}
