//! The kernel sends a large file from the file itself: the same responses as through the volume, which has no room for any of it.

use std::fs::{self, File};
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::FileExt as _;
use std::os::unix::net::UnixStream;

use rustix::process::{Pid, Signal, kill_process};

use crate::common::client::{Reply, connect, parse, send};
use crate::common::server::{Server, Site};

const FROM_FILE: &str = "Eyewall; fwd=uri-miss; detail=sendfile";
/// Longer than all that the kernel keeps for a client that reads nothing.
const LONG: u64 = 64 << 20;
/// This file system does not tell what is in memory.
const OVERLAYFS: u32 = 0x794c_7630;

fn large() -> Vec<u8> {
    (0..=250).cycle().take(3_000_000).collect()
}

/// A folder whose files the kernel can send, if the folder for temporary files is of such a kind.
fn site() -> Option<Site> {
    let site = Site::new();
    let kind = rustix::fs::statfs(site.path()).unwrap().f_type as u32;
    if kind == OVERLAYFS {
        println!("skipped: the folder for temporary files is on OverlayFS");
    }
    (kind != OVERLAYFS).then_some(site)
}

/// Waits until the file counts as unchanged.
fn served(site: &Site, target: &str) -> Server {
    let server = Server::over_folder(site.path());
    settled(&server, target);
    server
}

fn settled(server: &Server, target: &str) {
    while server.ask("HEAD", target, &[]).field("etag").is_empty() {}
}

/// Asks for a long file, which is never stored, and reads only its head and some bytes.
fn begin(server: &Server, target: &str) -> (TcpStream, Vec<u8>) {
    let mut client = connect(server.address);
    send(&mut client, "GET", target, &[]);
    let mut bytes = vec![0; 100_000];
    client.read_exact(&mut bytes).unwrap();
    assert!(parse(&bytes, false).cache() == FROM_FILE);
    (client, bytes)
}

/// The number of bytes that came after all, and the last of them.
fn rest((mut client, mut bytes): (TcpStream, Vec<u8>)) -> (u64, Vec<u8>, Reply) {
    let head = parse(&bytes, false);
    let head_bytes = bytes.len() - head.body.len();
    let (mut count, mut piece) = (bytes.len() as u64, vec![0; 1 << 20]);
    loop {
        match client.read(&mut piece) {
            Ok(0) => break,
            Ok(read) => {
                count += read as u64;
                bytes = piece[..read].to_vec();
            }
            Err(error) if error.kind() == ErrorKind::ConnectionReset => break,
            Err(error) => panic!("{error}"),
        }
    }
    (count - head_bytes as u64, bytes, head)
}

#[test]
fn nothing_of_it_is_stored() {
    let Some(site) = site() else { return };
    site.write("large.bin", large());
    site.write("small.bin", &large()[..200_000]);
    let server = served(&site, "/large.bin");
    for _ in 0..3 {
        let whole = server.get("/large.bin");
        assert_eq!((whole.status, whole.cache(), whole.field("content-length")), (200, FROM_FILE, "3000000"));
        assert!(whole.body == large());
        let part = server.ask("GET", "/large.bin", &["Range: bytes=1048575-1048577"]);
        assert_eq!((part.status, part.cache()), (206, FROM_FILE));
        assert!(part.body == large()[1_048_575..1_048_578]);
    }
    assert!(server.get_until("/small.bin", Reply::is_hit).body == large()[..200_000], "as small files are");
    // Parts of several ranges are sent with lines between them.
    let parts = server.ask("GET", "/large.bin", &["Range: bytes=0-99,-2"]);
    assert!(parts.is_whole && parts.cache() != FROM_FILE, "{}", parts.cache());
}

#[test]
fn responses_keep_the_order_of_their_requests() {
    let Some(site) = site() else { return };
    site.write("large.bin", large());
    site.write("small.txt", "small");
    let server = served(&site, "/large.bin");
    let etag = server.ask("HEAD", "/large.bin", &[]).field("etag").to_owned();
    let requests = [
        "GET /large.bin HTTP/1.1\r\nHost: test\r\n\r\n".to_owned(),
        "GET /small.txt HTTP/1.1\r\nHost: test\r\n\r\n".to_owned(),
        "HEAD /large.bin HTTP/1.1\r\nHost: test\r\n\r\n".to_owned(),
        format!("GET /large.bin HTTP/1.1\r\nHost: test\r\nIf-None-Match: {etag}\r\n\r\n"),
        "GET /large.bin HTTP/1.1\r\nHost: test\r\nRange: bytes=-300000\r\n\r\n".to_owned(),
        "GET /large.bin HTTP/1.0\r\nConnection: keep-alive\r\nHost: test\r\n\r\n".to_owned(),
        "GET /large.bin HTTP/1.0\r\nHost: test\r\n\r\n".to_owned(),
    ];
    let bodies = [&large()[..], b"small", b"", b"", &large()[2_700_000..], &large(), &large()];
    let mut client = connect(server.address);
    client.write_all(requests.concat().as_bytes()).unwrap();
    let mut bytes = Vec::new();
    client.read_to_end(&mut bytes).unwrap();
    let mut rest = &bytes[..];
    for (request, body) in requests.iter().zip(bodies) {
        let end = rest.windows(4).position(|window| window == b"\r\n\r\n").expect("a head") + 4;
        let reply = parse(&rest[..end], true);
        assert_eq!(
            reply.status,
            if request.contains("If-N") {
                304
            } else if request.contains("Range") {
                206
            } else {
                200
            }
        );
        rest = &rest[end..];
        assert!(rest.starts_with(body), "{request}");
        rest = &rest[body.len()..];
    }
    assert!(rest.is_empty());
}

#[test]
fn a_client_of_a_unix_socket_gets_it_too() {
    let Some(site) = site() else { return };
    site.write("large.bin", large());
    let socket = Site::new();
    let path = socket.path().join("http.sock");
    let address = format!("unix:{}", path.display());
    let server = Server::start(["--listen", &address, "--root", site.path().to_str().unwrap()]);
    settled(&server, "/large.bin");
    let mut client = UnixStream::connect(path).unwrap();
    client.write_all(b"GET /large.bin HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n").unwrap();
    let mut bytes = Vec::new();
    client.read_to_end(&mut bytes).unwrap();
    let reply = parse(&bytes, false);
    assert_eq!(reply.cache(), FROM_FILE);
    assert!(reply.body == large());
}

#[test]
fn a_client_of_a_unix_socket_never_gets_the_end_of_a_file_that_changes_meanwhile() {
    let Some(site) = site() else { return };
    // More than the socket takes, and the rest fits into it as soon as the client has read that.
    let room: usize = fs::read_to_string("/proc/sys/net/core/wmem_default").unwrap().trim().parse().unwrap();
    let length = room.max(200_000) + 100_000;
    site.write("file.bin", vec![1; length]);
    let socket = Site::new();
    let path = socket.path().join("http.sock");
    let address = format!("unix:{}", path.display());
    let server = Server::start(["--listen", &address, "--root", site.path().to_str().unwrap()]);
    settled(&server, "/file.bin");
    let mut client = UnixStream::connect(path).unwrap();
    client.write_all(b"GET /file.bin HTTP/1.1\r\nHost: test\r\n\r\n").unwrap();
    let mut bytes = vec![0; 1];
    client.read_exact(&mut bytes).unwrap();
    let file = File::options().write(true).open(site.path().join("file.bin")).unwrap();
    file.write_all_at(&[2; 10], length as u64 - 10).unwrap();
    client.read_to_end(&mut bytes).unwrap();
    let reply = parse(&bytes, true);
    let head_bytes = bytes.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
    assert_eq!((reply.cache(), reply.field("content-length")), (FROM_FILE, &*length.to_string()));
    assert!(bytes.len() - head_bytes < length, "a whole body of a changed file");
}

#[test]
fn the_sandbox_lets_the_kernel_send_files() {
    let Some(site) = site() else { return };
    site.write("large.bin", large());
    let server = Server::configured(&format!("[server]\nsandbox = \"on\"\n[[site]]\nroot = {:?}\n", site.path()));
    settled(&server, "/large.bin");
    let reply = server.get("/large.bin");
    assert_eq!(reply.cache(), FROM_FILE);
    assert!(reply.body == large());
}

/// A file of this length with a mark at its end. It takes hardly any room on the disk.
fn write_long(site: &Site, name: &str, mark: u8) -> File {
    site.write(name, "");
    let file = File::options().write(true).open(site.path().join(name)).unwrap();
    file.set_len(LONG).unwrap();
    file.write_all_at(&[mark], LONG - 1).unwrap();
    file
}

#[test]
fn a_client_that_has_begun_gets_the_whole_file_although_another_replaced_it() {
    let Some(site) = site() else { return };
    write_long(&site, "long.bin", 1);
    let server = served(&site, "/long.bin");
    let begun = begin(&server, "/long.bin");
    write_long(&site, "new.bin", 2);
    fs::rename(site.path().join("new.bin"), site.path().join("long.bin")).unwrap();
    let last = server.ask("GET", "/long.bin", &["Range: bytes=-1"]);
    assert_eq!((last.status, &last.body[..]), (206, &[2][..]));
    let (count, last, _) = rest(begun);
    assert_eq!((count, last.last()), (LONG, Some(&1)));
}

#[test]
fn a_file_that_changes_meanwhile_ends_the_connection() {
    let Some(site) = site() else { return };
    let changes: [fn(&File); 3] = [
        |file| file.set_len(1 << 20).unwrap(),
        |file| file.write_all_at(&[2], LONG - 2).unwrap(),
        |file| file.set_len(LONG + 1).unwrap(),
    ];
    for change in changes {
        let file = write_long(&site, "long.bin", 1);
        let server = served(&site, "/long.bin");
        let begun = begin(&server, "/long.bin");
        change(&file);
        let (count, _, head) = rest(begun);
        assert!(count < LONG && head.field("content-length") == LONG.to_string(), "{count} bytes");
        // Others are answered by the changed file.
        let changed = server.ask("HEAD", "/long.bin", &[]);
        assert_eq!(changed.field("content-length"), file.metadata().unwrap().len().to_string());
    }
}

#[test]
fn a_server_that_stops_sends_it_to_the_end() {
    let Some(site) = site() else { return };
    write_long(&site, "long.bin", 1);
    let mut server = served(&site, "/long.bin");
    let begun = begin(&server, "/long.bin");
    kill_process(Pid::from_child(&server.child), Signal::TERM).unwrap();
    // The server refuses new connections as soon as it has seen the signal.
    while TcpStream::connect(server.address).is_ok() {}
    let (count, last, _) = rest(begun);
    assert_eq!((count, last.last()), (LONG, Some(&1)));
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_removed_file_is_closed_soon_and_slow_clients_share_one_descriptor() {
    let Some(site) = site() else { return };
    site.write("large.bin", large());
    write_long(&site, "long.bin", 1);
    let server = served(&site, "/large.bin");
    // Then the server remembers what the path names.
    while server.ask("HEAD", "/long.bin", &[]).field("last-modified").is_empty() {}
    let _first = begin(&server, "/long.bin");
    assert!(server.get("/large.bin").body == large());
    fs::remove_file(site.path().join("large.bin")).unwrap();
    assert_eq!(server.get("/large.bin").status, 404);
    let open = |file| {
        let descriptors = fs::read_dir(format!("/proc/{}/fd", server.child.id())).unwrap();
        let names = descriptors.filter_map(|descriptor| fs::read_link(descriptor.ok()?.path()).ok());
        names.filter(|name| name.to_string_lossy().contains(file)).count()
    };
    while open("large.bin") > 0 {
        std::thread::yield_now();
    }
    // By now the other file is kept open only by its response.
    let _second = begin(&server, "/long.bin");
    assert_eq!(open("long.bin"), 1);
}
