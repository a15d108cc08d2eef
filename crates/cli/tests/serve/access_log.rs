//! Each request has a line in the access log, which is whole, harmless and correct.

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::common::admin::Socket;
use crate::common::client::{Reply, connect, send};
use crate::common::command::{eyewall, run};
use crate::common::metrics::Scrape;
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

/// Sends these bytes, and waits for the end.
fn ask_raw(server: &Server, request: &str) {
    let mut stream = connect(server.address);
    stream.write_all(request.as_bytes()).unwrap();
    stream.read_to_end(&mut Vec::new()).unwrap();
}

/// The line of a message of RFC 5424.
fn message_of(datagram: &[u8]) -> String {
    let message = std::str::from_utf8(datagram).unwrap();
    let words: Vec<&str> = message.splitn(8, ' ').collect();
    assert_eq!((words[0], words[3], words[5], words[6]), ("<190>1", "eyewall", "access", "-"), "{message}");
    words[7].to_owned()
}

/// Time and line of a message in the form of syslog(3), of this process.
fn classic_message_of(datagram: &[u8], process: u32) -> (String, String) {
    let message = std::str::from_utf8(datagram).unwrap();
    let (time, rest) = message.strip_prefix("<190>").unwrap_or_else(|| panic!("{message}")).split_at(15);
    let line = rest.strip_prefix(&format!(" eyewall[{process}]: "));
    (time.to_owned(), line.unwrap_or_else(|| panic!("{message}")).to_owned())
}

/// The time of day that a clock five and a half hours before UTC shows.
fn time_of_day_in_the_east() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    (since.as_secs() + 5 * 3600 + 1800) % 86_400
}

#[test]
fn sites_have_logs_and_forms_of_their_own_or_none() {
    let folder = Folder::new();
    let origin = Origin::counting("Cache-Control: max-age=60\r\nX-Shop: 7");
    let (shared, own) = (folder.log(), folder.0.path().join("own.log"));
    let site =
        |host: &str, log: &str| format!("[[site]]\nhosts = [\"{host}\"]\norigins = [\"{}\"]\n{log}\n", origin.url());
    let server = Server::configured(&format!(
        "[server]\n[server.access_log]\npath = \"{}\"\nformat = \"$host $request_uri $status\"\n{}{}{}{}",
        shared.display(),
        site("a", ""),
        site("b", "[site.access_log]\noff = true"),
        site(
            "c",
            &format!(
                "[site.access_log]\npath = \"{}\"\nformat = '''{{\"cache\":\"$upstream_cache_status\",\"shop\":\"$sent_http_x_shop\",\"agent\":\"$http_user_agent\",\"site\":\"$server_name\",\"origin\":$origin_us}}'''",
                own.display()
            )
        ),
        site("d", "[site.access_log]\nformat = \"$site: $request_method $uri\"\n"),
    ));
    for host in ["a", "b", "c", "d", "unknown"] {
        for path in ["/?x", "/?x"] {
            ask_raw(
                &server,
                &format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: \"\\{{\r\nConnection: close\r\n\r\n"),
            );
        }
    }
    // `TE` forces the full path.
    ask_raw(&server, "GET /?x HTTP/1.1\r\nHost: c\r\nTE: trailers\r\nConnection: close, te\r\n\r\n");
    let lines = lines_of(server, &shared);
    let expected = ["a /?x 200", "a /?x 200", "d: GET /", "d: GET /", "unknown /?x 421", "unknown /?x 421"];
    assert_eq!(lines, expected);
    let text = std::fs::read_to_string(&own).unwrap();
    let objects: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let caches: Vec<_> = objects.iter().map(|object| object["cache"].as_str().unwrap()).collect();
    assert_eq!(caches, ["MISS", "HIT", "HIT"]);
    assert!(objects[0]["origin"].is_u64() && objects[1]["origin"].is_null(), "{text}");
    assert!(objects.iter().all(|object| object["shop"] == "7" && object["site"] == "c"), "{text}");
    assert!(objects[..2].iter().all(|object| object["agent"] == "\"\\{"), "{text}");
}

#[test]
fn a_socket_of_syslog_gets_the_form_of_its_readers_in_local_time() {
    let folder = Folder::new();
    let socket = folder.0.path().join("log");
    let unix = std::os::unix::net::UnixDatagram::bind(&socket).unwrap();
    unix.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
    let origin = Origin::counting("Cache-Control: max-age=60");
    let place = format!("syslog:{}", socket.display());
    let mut command = eyewall();
    command.env("TZ", "EAST-5:30").args(["serve", "--listen", "127.0.0.1:0", "--access-log", &place]);
    let server = Server::spawn(command.args(["--access-log-format", "$request_uri", "--origin", &origin.url()]));
    let before = time_of_day_in_the_east();
    server.get("/one");
    let mut bytes = [0; 4096];
    let count = unix.recv(&mut bytes).unwrap();
    let after = time_of_day_in_the_east();
    let (time, line) = classic_message_of(&bytes[..count], server.child.id());
    assert_eq!(line, "/one");
    let parts: Vec<u64> = time[7..].split(':').map(|part| part.parse().unwrap()).collect();
    let told = parts[0] * 3600 + parts[1] * 60 + parts[2];
    let is_between = if before <= after { (before..=after).contains(&told) } else { told >= before || told <= after };
    assert!(is_between, "{time} is not between {before} and {after}");
}

#[test]
fn an_address_of_syslog_gets_messages_of_rfc_5424() {
    let udp = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    udp.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
    let origin = Origin::counting("Cache-Control: max-age=60");
    let server = Server::configured(&format!(
        "[[site]]\norigins = [\"{}\"]\n[site.access_log]\npath = \"syslog:{}\"\nformat = \"json\"\n",
        origin.url(),
        udp.local_addr().unwrap(),
    ));
    server.get("/two");
    let mut bytes = [0; 4096];
    let count = udp.recv(&mut bytes).unwrap();
    let object: serde_json::Value = serde_json::from_str(&message_of(&bytes[..count])).unwrap();
    assert_eq!((&object["target"], &object["status"]), (&"/two".into(), &200.into()));
}

#[test]
fn lines_that_nobody_takes_are_a_metric() {
    let folder = Folder::new();
    let origin = Origin::counting("Cache-Control: max-age=60");
    let socket = Socket::new();
    let place = folder.0.path().join("nobody");
    let server = Server::configured(&format!(
        "[server]\naccess_log = {{ path = \"syslog:{}\" }}\n{}[[site]]\norigins = [\"{}\"]\n",
        place.display(),
        socket.table(),
        origin.url()
    ));
    assert_eq!(server.get("/").status, 200);
    let log = format!("syslog:{}", place.display());
    Scrape::until(&socket, |scrape| scrape.sum("eyewall_access_log_lost_lines_total", &[("log", &log)]) == 1);
}

#[test]
fn a_reload_takes_another_log() {
    let folder = Folder::new();
    let origin = Origin::counting("Cache-Control: max-age=60");
    let (first, second) = (folder.log(), folder.0.path().join("second.log"));
    let server = Server::configured(&format!(
        "[server]\naccess_log = {{ path = \"{}\", format = \"$uri\" }}\n[[site]]\norigins = [\"{}\"]\n",
        first.display(),
        origin.url()
    ));
    server.get("/before");
    server.change(|text| text.replace("access.log", "second.log").replace("$uri", "$uri $status"));
    kill_process(Pid::from_child(&server.child), Signal::HUP).unwrap();
    while !second.exists() {
        std::thread::yield_now();
    }
    // The workers have it when one of them has; each may take a moment.
    let start = std::time::Instant::now();
    let mut asked = 0;
    loop {
        server.get("/after");
        asked += 1;
        if std::fs::read_to_string(&second).unwrap().contains("/after 200") {
            break;
        }
        assert!(start.elapsed() < Duration::from_mins(1), "no line came");
    }
    let after = lines_of(server, &second);
    let before = std::fs::read_to_string(&first).unwrap();
    assert!(before.lines().next() == Some("/before") && before.lines().count() + after.len() == asked + 1, "{before}");
}

#[test]
fn a_sample_logs_errors_always() {
    let folder = Folder::new();
    let origin = Origin::answering(|request| {
        let status = if request.target == "/bad" { 500 } else { 200 };
        (status, "Cache-Control: no-store".to_owned(), b"x".to_vec())
    });
    let server = Server::configured(&format!(
        "[server]\naccess_log = {{ path = \"{}\", format = \"$uri $status\", sample = 0 }}\n[[site]]\norigins = [\"{}\"]\n",
        folder.log().display(),
        origin.url()
    ));
    for path in ["/good", "/bad", "/good"] {
        server.get(path);
    }
    assert_eq!(lines_of(server, &folder.log()), ["/bad 500"]);
}
