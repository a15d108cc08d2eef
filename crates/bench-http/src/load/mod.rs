//! The client: a closed loop over kept connections, on one thread, at as little cost a request as can be.
//!
//! It sends by one call, learns of answers by edge-triggered epoll, reads the head, and has the kernel drop the rest of the
//! body without copying it. So the bytes of a body are looked at only once on each connection, before the clock starts.

mod connection;
mod head;
mod report;
mod request;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::time::{ClockId, Timespec, clock_gettime};

use self::connection::{Buffers, Connection, Progress};
use self::report::{Kind, Tally};
use self::request::Request;
use crate::error::{Error, Result};

/// What an event says of a connection that the server has ended.
const ENDED: EventFlags = EventFlags::RDHUP.union(EventFlags::HUP).union(EventFlags::ERR);

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// What to ask for, as http://HOST:PORT/PATH; {} in the path stands for a number that is another in each request
    address: String,
    /// A file with the body that every answer must have
    #[arg(long, value_name = "FILE")]
    reference: PathBuf,
    /// How many connections are kept open, each with one request at a time
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    connections: u16,
    /// For how long
    #[arg(long, default_value = "5", value_parser = seconds)]
    seconds: Duration,
    /// End earlier, after so many requests, failed ones included
    #[arg(long, value_name = "N", default_value_t = u64::MAX)]
    at_most: u64,
}

fn seconds(text: &str) -> std::result::Result<Duration, String> {
    let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.filter(|time| !time.is_zero()).ok_or_else(|| "a number above 0 is wanted, as 5 or 0.5".to_owned())
}

/// Measures, and prints the line.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let reading = Error::io(format!("reading {}", arguments.reference.display()));
    let reference = std::fs::read(&arguments.reference).map_err(reading)?;
    let (request, peer) = Request::to(&arguments.address)?;
    let mut load = Load::open(peer, request, &reference, usize::from(arguments.connections))?;
    let tally = load.measure(arguments.seconds, arguments.at_most)?;
    println!("{}", tally.as_line());
    Ok(())
}

/// Connections to one server, each of which has answered once.
struct Load {
    peer: SocketAddr,
    request: Request,
    /// Of each body.
    length: u64,
    epoll: OwnedFd,
    /// One that was lost and could not be opened again is none.
    connections: Vec<Option<Connection>>,
    buffers: Buffers,
}

impl Load {
    fn open(peer: SocketAddr, mut request: Request, reference: &[u8], count: usize) -> Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(Error::io("epoll"))?;
        let mut connections = Vec::with_capacity(count);
        for number in 0..count {
            let connecting = Error::io(format!("connecting to {peer}"));
            let mut connection = Connection::open(peer).map_err(connecting)?;
            connection.first_answer(request.next(), reference).map_err(|failure| failure.of(number + 1))?;
            connection.no_longer_blocks().map_err(Error::io("a socket"))?;
            watch(&epoll, &connection, number).map_err(Error::io("epoll"))?;
            connections.push(Some(connection));
        }
        Ok(Self { peer, request, length: reference.len() as u64, epoll, connections, buffers: Buffers::new() })
    }

    /// A window of so long, or of `at_most` requests. A connection whose request is unanswered for the latter half of the
    /// whole window counts as an error.
    fn measure(&mut self, window: Duration, at_most: u64) -> Result<Tally> {
        let cpu = cpu_time();
        let began = Instant::now();
        let mut tally = Tally::new();
        for number in 0..self.connections.len() {
            self.send(number, began, &mut tally);
        }
        let mut events = Vec::with_capacity(self.connections.len());
        let mut now = began;
        let end = began + window;
        while now < end && tally.finished() < at_most && self.connections.iter().any(Option::is_some) {
            events.clear();
            let rest = end.duration_since(now);
            let timeout = Timespec { tv_sec: rest.as_secs() as i64, tv_nsec: i64::from(rest.subsec_nanos()) };
            match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), Some(&timeout)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(failure) => return Err(Error::io("epoll")(failure)),
            }
            for event in &events {
                let (flags, data) = (event.flags, event.data);
                self.read(data.u64() as usize, flags.intersects(ENDED), &mut tally);
            }
            now = Instant::now();
        }
        if now >= end {
            let open = self.connections.iter().flatten();
            tally.add(Kind::Timeout, open.filter(|open| open.asked_at() <= began + window / 2).count() as u64);
        }
        tally.end(now - began, cpu_time().saturating_sub(cpu));
        Ok(tally)
    }

    /// Takes what has come on a connection, and asks again where that was all of an answer.
    fn read(&mut self, number: usize, ended: bool, tally: &mut Tally) {
        let Some(connection) = &mut self.connections[number] else { return };
        match connection.read(&mut self.buffers, self.length, ended) {
            Progress::Waits => {}
            Progress::Failed(kind) => {
                tally.add(kind, 1);
                self.open_again(number, tally);
            }
            Progress::Answered { bytes, closes } => {
                let now = Instant::now();
                tally.answered(bytes, now - connection.asked_at());
                if closes {
                    self.open_again(number, tally);
                } else {
                    self.send(number, now, tally);
                }
            }
        }
    }

    fn send(&mut self, number: usize, now: Instant, tally: &mut Tally) {
        let Some(connection) = &mut self.connections[number] else { return };
        if connection.send(self.request.next(), now).is_err() {
            tally.add(Kind::Write, 1);
            self.open_again(number, tally);
        }
    }

    /// A new connection for one that is lost, its first request sent; none, for the rest of the window, if that fails.
    fn open_again(&mut self, number: usize, tally: &mut Tally) {
        let opened = Connection::open(self.peer).and_then(|mut connection| {
            connection.no_longer_blocks()?;
            connection.send(self.request.next(), Instant::now())?;
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
    let events = EventFlags::IN | EventFlags::RDHUP | EventFlags::ET;
    Ok(epoll::add(epoll, connection, EventData::new_u64(number as u64), events)?)
}

/// What this process has used of a processor.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
