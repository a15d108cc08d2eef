//! The metrics agree with what the clients count, in mixed traffic, while the server is purged, reloaded and killed.
//!
//! Without `EYEWALL_SOAK` it makes a few rounds. With it, it lasts for `METRICS_SECONDS`, ten minutes if that isn't set.

use std::io::{self, BufReader};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};
use std::{fs, thread};

use crate::common::admin::Socket;
use crate::common::client::ask;
use crate::common::command::eyewall;
use crate::common::load;
use crate::common::metrics::{Counts, Scrape};
use crate::common::origin::{Asked, Origin, nobody};
use crate::common::server::Server;

const CLIENTS: u64 = 4;
/// A client sends so many requests in a round.
const REQUESTS: u64 = 150;
/// The server is killed in the last one of so many rounds.
const ROUNDS: u64 = 4;
const PATIENCE: Duration = Duration::from_mins(1);

/// Pages with all kinds of lifetimes.
fn answer(asked: &Asked) -> (u16, String, Vec<u8>) {
    let body = load::body(&asked.target);
    let (kind, _) = asked.target[1..].split_once('/').unwrap_or_default();
    let fields = match kind {
        "page" => "Cache-Control: max-age=3600\r\nETag: \"one\"",
        "stale" => "Cache-Control: max-age=0, stale-while-revalidate=1000",
        "checked" if asked.field("if-none-match") == "\"one\"" => {
            return (304, "Cache-Control: max-age=0\r\nETag: \"one\"".to_owned(), Vec::new());
        }
        "checked" => "Cache-Control: max-age=0\r\nETag: \"one\"",
        "absent" => return (404, "Cache-Control: max-age=1".to_owned(), body),
        "broken" => return (503, String::new(), body),
        _ => "Cache-Control: no-store",
    };
    (200, fields.to_owned(), body)
}

/// A server that starts again with its volume.
struct Site {
    folder: tempfile::TempDir,
    socket: Socket,
    origin: Origin,
}

impl Site {
    fn start(&self) -> Server {
        let file = self.folder.path().join("eyewall.toml");
        fs::write(&file, self.text(&self.folder.path().join("volume"), 1)).unwrap();
        Server::spawn(eyewall().args(["serve", "--config"]).arg(file))
    }

    fn text(&self, volume: &Path, workers: u64) -> String {
        let sites = ["one", "two"]
            .map(|host| format!("[[site]]\nhosts = [\"{host}\"]\norigins = [\"{}\"]\n", self.origin.url()));
        format!(
            "{}[server]\nlisten = [\"127.0.0.1:0\"]\nworkers = {workers}\npurge_from = [\"127.0.0.1\"]\n\
             [cache]\nsize = \"8M\"\npath = \"{}\"\n{}[[site]]\nhosts = [\"dead\"]\norigins = [\"http://{}\"]\n",
            self.socket.table(),
            volume.display(),
            sites.concat(),
            nobody(),
        )
    }

    fn reload(&self, workers: u64) {
        fs::write(self.folder.path().join("eyewall.toml"), self.text(&self.folder.path().join("volume"), workers))
            .unwrap();
        self.socket.reload();
    }
}

/// What all clients have done in a round. A request counts as begun before it is sent.
#[derive(Default)]
struct Progress {
    begun: AtomicU64,
    answered: AtomicU64,
}

/// A client on one connection: it counts the responses by what they say of themselves. Ends early if the server goes.
fn run(server: SocketAddr, mut random: u64, progress: &Progress) -> Counts {
    let mut counts = Counts::new();
    let mut kept: Option<BufReader<TcpStream>> = None;
    for _ in 0..REQUESTS {
        random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        let mut choice = |of: u64| {
            let chosen = (random >> 33) % of;
            random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            chosen as usize
        };
        let site = ["one", "one", "one", "two", "two", "dead"][choice(6)];
        let kind = ["page", "page", "page", "page", "stale", "checked", "fresh", "absent", "broken"][choice(9)];
        let method = ["GET", "GET", "GET", "GET", "HEAD"][choice(5)];
        let field = ["", "", "", "Range: bytes=10-29\r\n", "If-None-Match: \"one\"\r\n", "Cache-Control: no-cache\r\n"]
            [choice(6)];
        let request = format!("{method} http://{site}/{kind}/{}", choice(20));
        progress.begun.fetch_add(1, SeqCst);
        let Ok(mut connection) = kept.take().map_or_else(|| connect(server), Ok) else { break };
        let Ok((status, fields, body)) = load::ask(&mut connection, &request, field) else { break };
        progress.answered.fetch_add(1, SeqCst);
        if !fields.get("connection").is_some_and(|value| value.eq_ignore_ascii_case("close")) {
            kept = Some(connection);
        }
        let verdict = verdict(fields.get("cache-status").map_or("", String::as_str), status);
        let key = [site, verdict, &status.to_string()].map(str::to_owned);
        let (requests, bytes) = counts.entry(key).or_default();
        *requests += 1;
        *bytes += body.len() as u64;
    }
    counts
}

fn connect(server: SocketAddr) -> io::Result<BufReader<TcpStream>> {
    let stream = TcpStream::connect(server)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    Ok(BufReader::new(stream))
}

/// What the documentation says that a response with this `Cache-Status` was.
fn verdict(cache_status: &str, status: u16) -> &'static str {
    let parts: Vec<&str> = cache_status.split("; ").skip(1).collect();
    let value = |name: &str| parts.iter().find_map(|part| part.strip_prefix(name)?.strip_prefix('='));
    let is_fresh = value("ttl").is_none_or(|ttl| ttl.parse::<i64>().unwrap() > 0);
    match (parts.first(), value("fwd-status")) {
        (Some(&"hit"), _) => {
            if is_fresh {
                "hit"
            } else {
                "stale"
            }
        }
        (Some(_), Some("304")) if value("ttl").is_some() => "revalidated",
        (Some(_), _) if parts.contains(&"stored") => "miss",
        (Some(_), None) if status >= 400 => "error",
        (Some(_), _) => "pass",
        (None, _) => "none",
    }
}

/// Adds one client's counts to those of others.
fn add(all: &mut Counts, counts: Counts) {
    for (key, (requests, bytes)) in counts {
        let (all_requests, all_bytes) = all.entry(key).or_default();
        *all_requests += requests;
        *all_bytes += bytes;
    }
}

/// The server's count of the requests for sites is never outside of what has begun and what was answered.
fn look(site: &Site, progress: &Progress, before: u64) {
    let answered = progress.answered.load(SeqCst);
    let scrape = Scrape::of(&site.socket);
    let begun = progress.begun.load(SeqCst);
    let counted: u64 =
        ["one", "two", "dead"].map(|name| scrape.sum("eyewall_requests_total", &[("site", name)])).iter().sum();
    assert!((before + answered..=before + begun + 1).contains(&counted), "{before} + {answered} to {begun}: {counted}");
}

#[test]
fn counts_agree_through_purges_reloads_and_kills() {
    let site = Site { folder: tempfile::tempdir().unwrap(), socket: Socket::new(), origin: Origin::answering(answer) };
    let soak = std::env::var_os("EYEWALL_SOAK").is_some();
    let seconds = std::env::var("METRICS_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(600);
    let end = Instant::now() + Duration::from_secs(if soak { seconds } else { 0 });
    let (mut server, mut counted) = (site.start(), Counts::new());
    let (mut rounds, mut requests, mut kills) = (0, 0, 0);
    while rounds <= ROUNDS || Instant::now() < end {
        let is_killed = rounds % ROUNDS == ROUNDS - 1;
        let before = counted.values().map(|(requests, _)| requests).sum::<u64>() - purges(&counted);
        let (progress, address) = (Progress::default(), server.address);
        let all = thread::scope(|scope| {
            let progress = &progress;
            let seed = |client| rounds * CLIENTS + client + 1;
            let clients: Vec<_> =
                (0..CLIENTS).map(|client| scope.spawn(move || run(address, seed(client), progress))).collect();
            let mut all = Counts::new();
            for step in 1..=4 {
                while progress.answered.load(SeqCst) < step * CLIENTS * REQUESTS / 6 {
                    thread::yield_now();
                }
                look(&site, progress, before);
                let reply = ask(address, "PURGE", &format!("/page/{}", step + rounds % 20), &["Host: one"]);
                let (count, bytes) =
                    all.entry(["-", "none", &reply.status.to_string()].map(str::to_owned)).or_default();
                *count += 1;
                *bytes += reply.body.len() as u64;
                site.reload(1 + (step + rounds) % 2);
            }
            if is_killed {
                server.child.kill().unwrap();
                server.child.wait().unwrap();
            }
            for client in clients {
                add(&mut all, client.join().unwrap());
            }
            all
        });
        rounds += 1;
        requests += all.values().map(|(requests, _)| requests).sum::<u64>();
        if is_killed {
            // The counts begin with zero, the volume goes on.
            kills += 1;
            server = site.start();
            counted = Counts::new();
            assert_eq!(Scrape::of(&site.socket).counts(), counted);
        } else {
            add(&mut counted, all);
            // The server counts the last bytes when the system has taken them, and the client may be faster.
            Scrape::until(&site.socket, |scrape| scrape.counts() == counted);
        }
    }
    println!("{rounds} rounds, {requests} requests, {kills} kills: all counts agreed");
}

fn purges(counts: &Counts) -> u64 {
    counts.iter().filter(|([site, ..], _)| site == "-").map(|(_, (requests, _))| requests).sum()
}
