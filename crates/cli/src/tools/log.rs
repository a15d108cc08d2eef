//! `eyewall log`: the requests of a running server, as they end.

use std::io::Write as _;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

use anstyle::Style;
use eyewall_server::units::{counted, size};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;

use super::{administration, signals};
use crate::args::Log;
use crate::output::{ERROR, GOOD, WARNING, key_text, tell, text_to_stdout, to_stdout};
use crate::{Error, Outcome};

/// The verdicts of requests for which an origin was asked.
const MISSES: [&str; 4] = ["miss", "pass", "revalidated", "error"];

/// What a line of the server says.
#[derive(Deserialize)]
#[serde(untagged)]
enum Told {
    Dropped { dropped: u64 },
    Request(Box<Request>),
}

#[derive(Deserialize)]
struct Request {
    time: String,
    client: String,
    method: String,
    scheme: String,
    host: String,
    target: String,
    status: u16,
    verdict: String,
    reason: Option<String>,
    bytes: u64,
    first_byte_us: Option<u64>,
}

/// What a follower has lost so far.
#[derive(Default)]
struct Lost(AtomicU64);

impl Lost {
    fn add(&self, dropped: u64) {
        self.0.fetch_add(dropped, Ordering::Relaxed);
        let words = format!("the server dropped {}, because they weren't read fast enough", lines(dropped));
        tell(WARNING, "eyewall", &words);
    }

    fn tell(&self) {
        let all = self.0.load(Ordering::Relaxed);
        if all > 0 {
            tell(WARNING, "eyewall", &format!("{} of this server are missing in all", lines(all)));
        }
    }
}

/// A thread of its own reads and writes, because a reader of the output may stop reading: Ctrl-C ends `log` even then.
pub(crate) fn run(log: &Log) -> Result<Outcome, Error> {
    let (sender, ended) = mpsc::channel();
    let (interrupted, lost) = (sender.clone(), Arc::<Lost>::default());
    signals::tell(move || {
        // Fails only if it has ended by itself.
        let _ = interrupted.send(Ok(()));
    })
    .map_err(Error::Watch)?;
    let (log, counted) = (log.clone(), Arc::clone(&lost));
    thread::Builder::new()
        .spawn(move || {
            let _ = sender.send(follow(&log, &counted));
        })
        .map_err(Error::Watch)?;
    // The thread for signals has a sender as long as this waits.
    let result = ended.recv().unwrap_or(Ok(()));
    lost.tell();
    result.map(|()| Outcome::Done)
}

fn follow(log: &Log, lost: &Lost) -> Result<(), Error> {
    let mut left = log.count.map(std::num::NonZeroU64::get);
    administration::follow(&log.server, log.token_file.as_deref(), &target(log), |line| {
        match serde_json::from_slice(line) {
            Ok(Told::Dropped { dropped }) => lost.add(dropped),
            Ok(Told::Request(request)) => {
                show(log, line, &request)?;
                left = left.map(|left| left - 1);
            }
            Err(source) => {
                let server = log.server.to_string();
                return Err(Error::NoServer { server, source: source.into() });
            }
        }
        Ok(if left == Some(0) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })
}

fn lines(count: u64) -> String {
    counted(count, "line", "lines")
}

fn show(log: &Log, line: &[u8], request: &Request) -> Result<(), Error> {
    if log.json {
        return to_stdout(|stdout| stdout.write_all(line).and_then(|()| stdout.write_all(b"\n")));
    }
    let text = in_words(request);
    text_to_stdout(|stdout| stdout.write_all(text.as_bytes()))
}

/// The address of the administration, with the filters.
fn target(log: &Log) -> String {
    let slower = log.slower.map(|slower| format!("{}ms", slower.as_millis()));
    let misses = MISSES.iter().filter(|_| log.miss).map(|word| (*word).to_owned());
    let verdicts: Vec<String> = log.verdict.iter().cloned().chain(misses).collect();
    let conditions = [
        ("site", &log.site),
        ("verdict", &verdicts),
        ("slower", &slower.into_iter().collect()),
        ("status", &log.status),
        ("path", &log.path),
        ("method", &log.method),
    ];
    let pairs = conditions.iter().flat_map(|(name, values)| {
        values.iter().map(move |value| format!("{name}={}", utf8_percent_encode(value, NON_ALPHANUMERIC)))
    });
    format!("/requests?{}", pairs.collect::<Vec<_>>().join("&"))
}

/// A line for people. Nothing that a client sent may steer the terminal.
fn in_words(request: &Request) -> String {
    let of_verdict = match request.verdict.as_str() {
        "hit" => GOOD,
        "error" => ERROR,
        "none" => Style::new(),
        _ => WARNING,
    };
    let of_status = if request.status >= 500 { ERROR } else { Style::new() };
    let reason = request.reason.as_ref().map(|reason| format!(":{}", key_text(reason.as_bytes())));
    let verdict = format!("{}{}", request.verdict, reason.unwrap_or_default());
    // The time of day, with milliseconds.
    let time = request.time.get(11..23).unwrap_or(&request.time);
    let address = format!("{}://{}{}", request.scheme, request.host, request.target);
    format!(
        "{} {:<7} {of_status}{}{of_status:#} {of_verdict}{verdict:<16}{of_verdict:#} {:>9} {:>9}  {}  {}\n",
        key_text(time.as_bytes()),
        key_text(request.method.as_bytes()),
        request.status,
        request.first_byte_us.map_or_else(|| "-".to_owned(), span),
        size(request.bytes),
        key_text(address.as_bytes()),
        key_text(request.client.as_bytes()),
    )
}

/// `140 us`, `1.9 ms`, `12.0 s`.
fn span(micros: u64) -> String {
    match micros {
        0..1000 => format!("{micros} us"),
        1000..1_000_000 => format!("{:.1} ms", micros as f64 / 1e3),
        _ => format!("{:.1} s", micros as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_readable_and_harmless() {
        let line = r#"{"time":"2026-11-22T10:02:06.123456Z","site":"a","client":"192.0.2.7","method":"GET","scheme":"http",
            "host":"a.example","target":"/a\u001b[2J","status":502,"verdict":"pass","reason":"set-cookie","bytes":2048,
            "first_byte_us":12345,"total_us":12400}"#;
        let Ok(Told::Request(request)) = serde_json::from_str(line) else { panic!("it is a request") };
        let text = anstream::adapter::strip_str(&in_words(&request)).to_string();
        assert_eq!(
            text,
            "10:02:06.123 GET     502 pass:set-cookie    12.3 ms     2 KiB  http://a.example/a\\x1b[2J  192.0.2.7\n"
        );
        assert_eq!([span(1), span(1500), span(2_500_000)], ["1 us", "1.5 ms", "2.5 s"]);
    }
}
