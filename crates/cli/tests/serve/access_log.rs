//! Each request has a line in the access log, which is whole, harmless and correct.

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};

use crate::common::client::{Reply, connect, send};
use crate::common::command::{eyewall, run};
use crate::common::origin::Origin;
use crate::common::server::{Server, Site};

/// A folder for logs, removed at the end.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn log(&self) -> PathBuf {
        self.0.path().join("access.log")
    }
}

fn logging(log: &Path, format: &str, origin: &Origin) -> Server {
    let log = log.to_str().unwrap();
    Server::start(["--access-log", log, "--access-log-format", format, "--origin", &origin.url()])
}

/// Ends the server gracefully, which writes all lines.
fn end(server: &mut Server) {
    kill_process(Pid::from_child(&server.child), Signal::TERM).unwrap();
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
}

fn lines_of(mut server: Server, log: &Path) -> Vec<String> {
    end(&mut server);
    std::fs::read_to_string(log).unwrap().lines().map(str::to_owned).collect()
}

fn objects_of(server: Server, log: &Path) -> Vec<serde_json::Value> {
    lines_of(server, log).iter().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_miss_and_a_hit_are_told_apart() {
    let folder = Folder::new();
    let origin = Origin::counting("Cache-Control: max-age=60");
    let server = logging(&folder.log(), "combined", &origin);
    for _ in 0..2 {
        server.ask("GET", "/page?a=b", &["User-Agent: test/1", "Referer: http://a.org/"]);
    }
    let lines = lines_of(server, &folder.log());
    assert_eq!(lines.len(), 2);
    for (line, word, asked_origin) in [(&lines[0], "miss", true), (&lines[1], "hit", false)] {
        assert!(line.starts_with("127.0.0.1 - - ["), "{line}");
        let request = "] \"GET /page?a=b HTTP/1.1\" 200 1 \"http://a.org/\" \"test/1\" \"test\" ";
        let (_, rest) = line.split_once(request).unwrap_or_else(|| panic!("{line}"));
        let words: Vec<&str> = rest.split(' ').collect();
        assert_eq!((words.len(), words[0]), (4, word), "{line}");
        let times: Vec<Option<u64>> = words[1..].iter().map(|word| word.parse().ok()).collect();
        assert!(times[0].is_some() && times[0] <= times[1] && times[2].is_some() == asked_origin, "{line}");
    }
}

#[test]
fn a_json_line_has_the_same_fields() {
    let folder = Folder::new();
    let origin = Origin::answering(|_| (200, "Cache-Control: no-store".to_owned(), b"four".to_vec()));
    let server = logging(&folder.log(), "json", &origin);
    server.ask("GET", "/page", &["User-Agent: a \"b\" \\"]);
    server.ask("POST", "/form", &[]);
    let objects = objects_of(server, &folder.log());
    assert_eq!(objects.len(), 2);
    let first = &objects[0];
    assert_eq!((&first["method"], &first["target"]), (&"GET".into(), &"/page".into()));
    assert_eq!((&first["status"], &first["bytes"], &first["host"]), (&200.into(), &4.into(), &"test".into()));
    assert_eq!((&first["user_agent"], &first["cache"]), (&"a \"b\" \\".into(), &"pass:no-store".into()));
    assert!(first["origin_us"].is_u64() && first["total_us"].is_u64(), "{first}");
    assert_eq!((&objects[1]["method"], &objects[1]["cache"]), (&"POST".into(), &"pass:method".into()));
}

#[test]
fn no_client_can_forge_a_line() {
    let folder = Folder::new();
    let origin = Origin::counting("");
    let server = logging(&folder.log(), "combined", &origin);
    let mut client = connect(server.address);
    let forged = b"GET /a HTTP/1.1\r\nHost: test\r\nConnection: close\r\nUser-Agent: x\" 200\t\xff\\\r\n\r\n";
    client.write_all(forged).unwrap();
    client.read_to_end(&mut Vec::new()).unwrap();
    let lines = lines_of(server, &folder.log());
    assert_eq!(lines.len(), 1);
    assert!(lines[0].contains(r#" "-" "x\x22 200\x09\xFF\x5C" "test" "#), "{}", lines[0]);
}

#[test]
fn unsent_bytes_are_not_counted() {
    let folder = Folder::new();
    let whole = 64 << 20;
    let site = Site::new();
    site.write("large", vec![b'x'; whole]);
    let log = folder.log();
    let words = ["--access-log", log.to_str().unwrap(), "--access-log-format", "json"];
    let server = Server::start([&words[..], &["--root", site.path().to_str().unwrap()]].concat());
    assert_eq!(server.ask("HEAD", "/large", &[]).status, 200);
    let mut client = connect(server.address);
    send(&mut client, "GET", "/large", &[]);
    client.read_exact(&mut [0; 1000]).unwrap();
    drop(client);
    let objects = objects_of(server, &log);
    assert_eq!((&objects[0]["method"], &objects[0]["bytes"]), (&"HEAD".into(), &0.into()));
    let sent = objects[1]["bytes"].as_u64().unwrap();
    assert!(0 < sent && sent < whole as u64, "{sent} of {whole}");
}

#[test]
fn a_client_that_does_not_wait_for_its_response_has_a_line_of_its_own() {
    let folder = Folder::new();
    let (arrived, wait_for_arrival) = std::sync::mpsc::channel();
    let origin = Origin::raw(move |_, stream| {
        arrived.send(()).unwrap();
        // Until the server has dropped the request.
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let server = logging(&folder.log(), "json", &origin);
    let mut client = connect(server.address);
    send(&mut client, "POST", "/form", &[]);
    wait_for_arrival.recv().unwrap();
    drop(client);
    let objects = objects_of(server, &folder.log());
    assert_eq!((&objects[0]["status"], &objects[0]["bytes"]), (&499.into(), &0.into()));
    assert!(objects[0].get("cache").is_none() && objects[0].get("first_byte_us").is_none(), "{}", objects[0]);
}

#[test]
fn a_malformed_request_has_a_line() {
    let folder = Folder::new();
    let origin = Origin::counting("");
    let server = logging(&folder.log(), "combined", &origin);
    let mut client = connect(server.address);
    client.write_all(b"\x16\x03\x01 no TLS here\r\n\r\n").unwrap();
    let mut reply = Vec::new();
    client.read_to_end(&mut reply).unwrap();
    assert!(reply.starts_with(b"HTTP/1.1 400 "), "{}", String::from_utf8_lossy(&reply));
    let lines = lines_of(server, &folder.log());
    assert_eq!(lines.len(), 1);
    assert!(lines[0].contains("] \"-\" 400 0 \"-\" \"-\" \"-\" - - "), "{}", lines[0]);
}

#[test]
fn all_lines_are_there_when_the_server_has_ended() {
    let folder = Folder::new();
    let origin = Origin::counting("Cache-Control: max-age=60");
    let server = logging(&folder.log(), "json", &origin);
    server.get_until("/", Reply::is_hit);
    let mut client = connect(server.address);
    for _ in 0..500 {
        client.write_all(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n").unwrap();
        let mut reply = Vec::new();
        while !reply.ends_with(b"\r\n\r\n1") {
            let mut byte = [0];
            client.read_exact(&mut byte).unwrap();
            reply.extend(byte);
        }
    }
    let objects = objects_of(server, &folder.log());
    assert!(objects.len() > 500, "{}", objects.len());
    let last = &objects[objects.len() - 500..];
    assert!(last.iter().all(|object| object["cache"] == "hit" && object["bytes"] == 1));
}

#[test]
fn sigusr1_reopens_the_file() {
    let folder = Folder::new();
    let origin = Origin::counting("Cache-Control: max-age=60");
    let server = logging(&folder.log(), "combined", &origin);
    server.get("/before");
    let aside = folder.0.path().join("access.log.1");
    std::fs::rename(folder.log(), &aside).unwrap();
    kill_process(Pid::from_child(&server.child), Signal::USR1).unwrap();
    while !folder.log().exists() {
        std::thread::yield_now();
    }
    server.get("/after");
    let after = lines_of(server, &folder.log());
    let before = std::fs::read_to_string(&aside).unwrap();
    assert!(before.lines().count() == 1 && before.contains("/before"), "{before}");
    assert!(after.len() == 1 && after[0].contains("/after"), "{after:?}");
}

#[test]
fn without_a_log_sigusr1_does_not_end_the_server() {
    let site = Site::new();
    site.write("index.html", "hello");
    let mut server = Server::over_folder(site.path());
    kill_process(Pid::from_child(&server.child), Signal::USR1).unwrap();
    assert_eq!(server.get("/").text(), "hello");
    end(&mut server);
}

#[test]
fn a_full_disk_is_logged_once_and_serving_goes_on() {
    let origin = Origin::counting("Cache-Control: max-age=60");
    let mut command = eyewall();
    command.args(["serve", "--listen", "127.0.0.1:0", "--access-log", "/dev/full", "--origin", &origin.url()]);
    let mut server = Server::spawn(command.stderr(Stdio::piped()));
    for _ in 0..3 {
        assert_eq!(server.get("/").status, 200);
    }
    end(&mut server);
    let mut told = String::new();
    server.child.stderr.take().unwrap().read_to_string(&mut told).unwrap();
    assert_eq!(told.matches("can't write the access log").count(), 1, "{told}");
    assert!(told.contains("the access log lacks lines missing=3"), "{told}");
}

#[test]
fn a_file_that_cannot_be_opened_is_reported_at_the_start() {
    let site = Site::new();
    let folder = site.path().to_str().unwrap();
    for (code, path, words) in
        [(2, "/no/such/folder/access.log", "doesn't exist"), (3, folder, "can't open the access log")]
    {
        let mut command = eyewall();
        command.args(["serve", "--listen", "127.0.0.1:0", "--access-log", path, "--root"]);
        let ended = run(command.arg(site.path()), b"");
        assert_eq!((ended.code, ended.text()), (code, ""));
        assert!(ended.stderr.contains(words) && ended.stderr.contains("standard output"), "{}", ended.stderr);
    }
}

#[test]
fn advise_reads_the_log_of_a_server() {
    for format in ["combined", "json"] {
        let folder = Folder::new();
        let origin = Origin::answering(|_| (200, "Cache-Control: max-age=60".to_owned(), vec![b'x'; 3000]));
        let server = logging(&folder.log(), format, &origin);
        for number in 0..30 {
            assert_eq!(server.get(&format!("/{}", number % 10)).body.len(), 3000);
        }
        server.ask("POST", "/0", &[]);
        assert_eq!(lines_of(server, &folder.log()).len(), 31);
        let ended = run(eyewall().args(["advise", "--json", "--size", "1M"]).arg(folder.log()), b"");
        assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
        let advice: serde_json::Value = serde_json::from_str(ended.text()).unwrap();
        assert_eq!((&advice["lines"], &advice["requests"], &advice["keys"]), (&31.into(), &30.into(), &10.into()));
        assert_eq!(advice["bytes"], 90_000, "{advice}");
    }
}

#[test]
fn the_log_keeps_a_cache_status_that_clients_do_not_get() {
    let folder = Folder::new();
    let origin = Origin::counting("Cache-Control: max-age=60");
    let server = Server::configured(&format!(
        "[server]\naccess_log = {{ path = \"{}\", format = \"json\" }}\n[[site]]\norigins = [\"{}\"]\n\
         [[site.rule]]\nremove_headers = [\"Cache-Status\"]\n",
        folder.log().display(),
        origin.url()
    ));
    // `TE` forces the full path.
    for fields in [&[][..], &[], &["TE: trailers"]] {
        assert_eq!(server.ask("GET", "/", fields).cache(), "");
    }
    let words: Vec<_> = objects_of(server, &folder.log()).iter().map(|line| line["cache"].clone()).collect();
    assert_eq!(words, ["miss", "hit", "hit"]);
}
