//! The client: a closed loop on one thread, with persistent connections or with one per request, at minimal cost per request.
//!
//! It sends a request by one call, notices responses by edge-triggered epoll, reads the head, and lets the kernel drop the rest of
//! the body without a copy. So on a persistent connection it checks the bytes of a body once, before the clock starts. With a
//! connection per request, nothing happens before the clock starts, and it checks only lengths.

mod connection;
mod head;
mod references;
mod report;
mod request;
mod stream;
mod tls;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::time::{ClockId, Timespec, clock_gettime};

use self::connection::{Buffers, Connection, Progress};
use self::references::References;
use self::report::{Kind, Tally};
use self::request::{Request, Server};
use self::tls::Tls;
use crate::error::{Error, Result};

/// The minimum time without a response that counts as a failure, even in a short window; less is slow.
const PATIENCE: Duration = Duration::from_secs(1);
/// The events to report for a connection.
const WANTED: EventFlags = EventFlags::IN.union(EventFlags::OUT).union(EventFlags::RDHUP).union(EventFlags::ET);
/// The events of a connection that the server has closed.
const ENDED: EventFlags = EventFlags::RDHUP.union(EventFlags::HUP).union(EventFlags::ERR);

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The address to request, as http://HOST:PORT/PATH or https://...; {} in the path stands for a number that grows with
    /// each request
    address: String,
    /// How many numbers there are, before they begin again
    #[arg(long, value_name = "N", default_value_t = u64::MAX, value_parser = clap::value_parser!(u64).range(1..))]
    names: u64,
    /// A file with the body of every response; {} in its name stands for the number in the path, if bodies
    /// differ
    #[arg(long, value_name = "FILE")]
    reference: String,
    /// The number of connections, each with one request at a time
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    connections: u16,
    /// The duration
    #[arg(long, default_value = "5", value_parser = seconds)]
    seconds: Duration,
    /// After the duration, send no more requests, and wait so many seconds for outstanding responses, which
    /// count
    #[arg(long, value_name = "SECONDS", default_value = "0", value_parser = seconds_or_none)]
    finish: Duration,
    /// Open a connection per request, within its time, and send nothing before
    #[arg(long)]
    anew: bool,
    /// The root certificate of a server that speaks TLS, in PEM
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Resume the TLS sessions of earlier connections
    #[arg(long, requires = "anew")]
    resume: bool,
    /// Send only so many requests, including failed ones, and end after the last one
    #[arg(long, value_name = "N", default_value_t = u64::MAX)]
    at_most: u64,
}

fn seconds(text: &str) -> std::result::Result<Duration, String> {
    let seconds = seconds_or_none(text).ok();
    seconds.filter(|time| !time.is_zero()).ok_or_else(|| "a number above 0 is wanted, as 5 or 0.5".to_owned())
}

fn seconds_or_none(text: &str) -> std::result::Result<Duration, String> {
    let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.ok_or_else(|| "a number is wanted, as 5 or 0.5".to_owned())
}

/// Measures, and prints the line.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let references = References::read(&arguments.reference, arguments.names)?;
    let (request, server) = Request::to(&arguments.address, arguments.names, arguments.anew)?;
    let mut load = Load::new(&server, request, arguments, references)?;
    if !arguments.anew {
        load.open()?;
    }
    let tally = load.measure(arguments.seconds, arguments.finish)?;
    println!("{}", tally.as_line());
    Ok(())
}

/// Connections to one server.
struct Load {
    peer: SocketAddr,
    /// `None` for clear text.
    tls: Option<Tls>,
    request: Request,
    /// The expected bodies.
    references: References,
    epoll: OwnedFd,
    /// `None` for one that could not be opened, or has no more to send.
    connections: Vec<Option<Connection>>,
    /// Whether each request has its own connection.
    anew: bool,
    /// How many requests may still be sent.
    unsent: u64,
    buffers: Buffers,
}

impl Load {
    fn new(server: &Server, request: Request, arguments: &Arguments, references: References) -> Result<Self> {
        let tls = match (&arguments.ca, server.is_tls) {
            (Some(ca), true) => Some(Tls::new(ca, &server.name, arguments.resume)?),
            (None, false) => None,
            _ => return Err(Error::Root),
        };
        let peer = server.peer;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(Error::io("epoll"))?;
        let connections = (0..arguments.connections).map(|_| None).collect();
        let (anew, unsent) = (arguments.anew, arguments.at_most);
        Ok(Self { peer, tls, request, references, epoll, connections, anew, unsent, buffers: Buffers::new() })
    }

    /// Opens all connections, and sends one request on each.
    fn open(&mut self) -> Result<()> {
        for number in 0..self.connections.len() {
            let connecting = Error::io(format!("connecting to {}", self.peer));
            let mut connection = Connection::open(self.peer, self.tls.as_ref()).map_err(connecting)?;
            let reference = self.references.body(self.request.number())?;
            connection.first_answer(self.request.next(), reference).map_err(|failure| failure.of(number + 1))?;
            connection.no_longer_blocks().map_err(Error::io("a socket"))?;
            watch(&self.epoll, &connection, number).map_err(Error::io("epoll"))?;
            self.connections[number] = Some(connection);
        }
        Ok(())
    }

    /// Measures for a window of time, or until the last permitted request ends; then waits for outstanding
    /// responses. A connection whose request was unanswered at the end for half of the window, and at least a
    /// second, counts as an error.
    fn measure(&mut self, window: Duration, finish: Duration) -> Result<Tally> {
        let cpu = cpu_time();
        let began = Instant::now();
        let mut tally = Tally::new();
        for number in 0..self.connections.len() {
            self.ask(number, Instant::now(), &mut tally);
        }
        let mut events = Vec::with_capacity(self.connections.len());
        let mut now = began;
        let last_ask = began + window;
        let end = last_ask + finish;
        while now < end && self.connections.iter().any(Option::is_some) {
            events.clear();
            let rest = end.duration_since(now);
            let timeout = Timespec { tv_sec: rest.as_secs() as i64, tv_nsec: i64::from(rest.subsec_nanos()) };
            match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), Some(&timeout)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(failure) => return Err(Error::io("epoll")(failure)),
            }
            if !finish.is_zero() && Instant::now() >= last_ask {
                self.unsent = 0;
            }
            for event in &events {
                let (flags, data) = (event.flags, event.data);
                self.take(data.u64() as usize, flags, &mut tally);
            }
            now = Instant::now();
        }
        if now >= end {
            let unanswered = |open: &&Connection| open.asked_at() + PATIENCE.max(window / 2) <= end;
            tally.add(Kind::Timeout, self.connections.iter().flatten().filter(unanswered).count() as u64);
        }
        tally.end(now - began, cpu_time().saturating_sub(cpu));
        Ok(tally)
    }

    /// Handles an event of a connection.
    fn take(&mut self, number: usize, flags: EventFlags, tally: &mut Tally) {
        let Some(connection) = &mut self.connections[number] else { return };
        if !connection.opens() {
            self.read(number, flags.intersects(ENDED), tally);
        } else if flags.intersects(ENDED) {
            tally.add(Kind::Connect, 1);
            if self.anew {
                self.open_again(number, Instant::now(), tally);
            } else {
                self.connections[number] = None;
            }
        } else if flags.contains(EventFlags::OUT) {
            let length = self.references.length(self.request.number());
            if connection.send_first(self.request.next(), length).is_err() {
                tally.add(Kind::Write, 1);
                self.open_again(number, Instant::now(), tally);
            }
        }
    }

    /// Reads from a connection, and sends the next request after a complete response.
    fn read(&mut self, number: usize, ended: bool, tally: &mut Tally) {
        let Some(connection) = &mut self.connections[number] else { return };
        match connection.read(&mut self.buffers, ended) {
            Progress::Waits => {}
            Progress::Failed(kind) => {
                tally.add(kind, 1);
                self.open_again(number, Instant::now(), tally);
            }
            Progress::Answered { bytes, closes } => {
                let now = Instant::now();
                tally.answered(bytes, now - connection.asked_at());
                tally.resumed(self.anew && connection.is_resumed());
                if closes {
                    self.open_again(number, now, tally);
                } else {
                    self.ask(number, now, tally);
                }
            }
        }
    }

    /// Sends a request on the connection, or on a new one if each request has its own.
    fn ask(&mut self, number: usize, now: Instant, tally: &mut Tally) {
        let Some(connection) = self.connections[number].as_mut().filter(|_| !self.anew) else {
            return self.open_again(number, now, tally);
        };
        if self.unsent == 0 {
            self.connections[number] = None;
            return;
        }
        self.unsent -= 1;
        let length = self.references.length(self.request.number());
        if connection.send(self.request.next(), length, now).is_err() {
            tally.add(Kind::Write, 1);
            self.open_again(number, now, tally);
        }
    }

    /// Replaces a finished connection by a new one with a request; by none, for the rest of the window, if
    /// the system refuses it or no more requests are permitted.
    fn open_again(&mut self, number: usize, now: Instant, tally: &mut Tally) {
        self.connections[number] = None;
        if self.unsent == 0 {
            return;
        }
        self.unsent -= 1;
        let opened = Connection::begin(self.peer, self.tls.as_ref(), now).and_then(|connection| {
            watch(&self.epoll, &connection, number)?;
            Ok(connection)
        });
        if opened.is_err() {
            tally.add(Kind::Connect, 1);
        }
        self.connections[number] = opened.ok();
    }
}

fn watch(epoll: &OwnedFd, connection: &Connection, number: usize) -> std::io::Result<()> {
    Ok(epoll::add(epoll, connection, EventData::new_u64(number as u64), WANTED)?)
}

/// The processor time of this process.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
