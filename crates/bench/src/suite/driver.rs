//! Drivers: programs in other languages that do a procedure's work on their own stores (bench/drivers/README.md).

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};

use super::interrupt::Interrupt;
use super::recorder::StoreFacts;
use super::value::Case;
use crate::error::{Error, Result};
use crate::peer::Kind;

/// How often to check for a Ctrl-C while a driver writes nothing.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// How long a driver may write nothing.
const SILENT_MAX: Duration = Duration::from_mins(10);

/// A program and its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Driver {
    command: Vec<String>,
    silent_max: Duration,
}

/// A request to a driver.
#[derive(Debug, Serialize)]
#[serde(tag = "do", rename_all = "lowercase")]
pub enum Request<'a> {
    /// A request for the list of its stores.
    List,
    /// A request to measure some of them.
    Measure(Box<Measure<'a>>),
}

/// The work to measure.
#[derive(Debug, Serialize)]
pub struct Measure<'a> {
    /// The workload's name.
    pub workload: &'a str,
    /// The procedure.
    pub procedure: &'a str,
    /// The cell's case.
    pub case: &'a Case,
    /// The settings of the procedure, with the values for this run.
    pub settings: &'a toml::Table,
    /// The workload's parameters, for a driver that goes through them itself.
    pub parameters: BTreeMap<&'a str, &'a [super::value::Value]>,
    /// The stores to measure.
    pub stores: Vec<&'a str>,
    /// Which repetitions, counted from 1.
    pub repetitions: Vec<usize>,
    /// The seed of keys, sizes and orders.
    pub seed: u64,
    /// Whether this is a first look.
    pub quick: bool,
    /// Directories for this call alone. They are removed after it.
    pub scratch: Places,
}

/// The directories that a driver may write.
#[derive(Debug, Serialize)]
pub struct Places {
    /// On the disk.
    pub disk: PathBuf,
    /// In shared memory.
    pub shm: PathBuf,
}

/// A line of a driver's answer.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Answer {
    /// A figure.
    Sample {
        /// The store.
        store: String,
        /// The measure.
        measure: String,
        /// Counted from 1.
        repetition: usize,
        /// The figure.
        value: f64,
        /// Parameters to add to the request's case.
        #[serde(default)]
        case: Case,
        /// The position on the measure's axis.
        #[serde(default)]
        at: Option<f64>,
    },
    /// A distribution.
    Histogram {
        /// The store.
        store: String,
        /// The measure.
        measure: String,
        /// Counted from 1.
        repetition: usize,
        /// Upper bounds in nanoseconds, each with a count.
        buckets: Vec<(u64, u64)>,
        /// Parameters to add to the request's case.
        #[serde(default)]
        case: Case,
    },
    /// A note for readers of the figures.
    Note(String),
    /// The work under way.
    Progress(String),
    /// A store, available or not.
    #[serde(untagged)]
    Store {
        /// Its name.
        store: String,
        /// What it is in a comparison; by default, a store that a user could choose instead.
        #[serde(default)]
        kind: Option<Kind>,
        /// The version in its own words.
        #[serde(default)]
        version: Option<String>,
        /// Why it isn't available.
        #[serde(default)]
        absent: Option<String>,
    },
}

impl Driver {
    /// A driver with this command line, which is not empty.
    pub fn new(command: &[String]) -> Result<Self> {
        if command.is_empty() {
            return Err(Error::Invalid("a driver without a command".to_owned()));
        }
        Ok(Self { command: command.to_vec(), silent_max: SILENT_MAX })
    }

    /// Sets how long the driver may write nothing, instead of ten minutes.
    pub fn with_patience(self, silent_max: Duration) -> Self {
        Self { silent_max, ..self }
    }

    /// Its command line.
    pub fn command(&self) -> &[String] {
        &self.command
    }

    /// Its name for people.
    pub fn name(&self) -> String {
        self.command.join(" ")
    }

    /// All stores of the driver, including those that aren't available.
    pub fn list(&self, interrupt: &Interrupt) -> Result<BTreeMap<String, StoreFacts>> {
        let mut stores = BTreeMap::new();
        self.ask(&Request::List, interrupt, |answer| {
            if let Answer::Store { store, kind, version, absent } = answer {
                let kind = kind.unwrap_or(Kind::Other);
                stores.insert(store, StoreFacts { kind, version, absent });
            }
            Ok(())
        })?;
        Ok(stores)
    }

    /// Sends a request, and passes each line of the answer on.
    pub fn ask(
        &self,
        request: &Request<'_>,
        interrupt: &Interrupt,
        mut take: impl FnMut(Answer) -> Result<()>,
    ) -> Result<()> {
        let text = serde_json::to_vec(request)
            .map_err(|failure| Error::Invalid(format!("a driver's request can't be written: {failure}")))?;
        let mut child = Command::new(&self.command[0])
            .args(&self.command[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(Error::io(format!("start {}", self.name())))?;
        if let Some(mut input) = child.stdin.take() {
            // If the driver doesn't read its request, the way it ends tells why.
            let _ = input.write_all(&text);
        }
        let lines = child.stdout.take().map(read_aside);
        let mut asked = Asked { child, driver: self };
        let Some(lines) = lines else {
            return Err(Error::Invalid(format!("{} has no output", self.name())));
        };
        let mut heard = Instant::now();
        loop {
            match lines.recv_timeout(LOOK_EVERY) {
                Ok(line) => {
                    take(self.parse(&line?)?)?;
                    heard = Instant::now();
                }
                Err(RecvTimeoutError::Timeout) if heard.elapsed() >= self.silent_max => {
                    let what = format!("it has said nothing for {} s, and was told to end", self.silent_max.as_secs());
                    return Err(Error::Driver { driver: self.name(), what });
                }
                Err(RecvTimeoutError::Timeout) => interrupt.check()?,
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        let status = asked.child.wait().map_err(Error::io("wait for a driver"))?;
        interrupt.check()?;
        if status.success() { Ok(()) } else { Err(Error::Driver { driver: self.name(), what: status.to_string() }) }
    }

    fn parse(&self, line: &str) -> Result<Answer> {
        serde_json::from_str(line)
            .map_err(|failure| Error::Driver { driver: self.name(), what: format!("{failure} in its line {line}") })
    }
}

/// A driver at work. Dropping it tells the driver to end, if it hasn't ended yet.
struct Asked<'a> {
    child: Child,
    driver: &'a Driver,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            // SIGTERM lets the driver stop the programs that it started; SIGKILL would not.
            let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
            if let Err(failure) = self.child.wait() {
                eprintln!("eyewall-bench: {} is left: {failure}", self.driver.name());
            }
        }
    }
}

/// Reads a child's lines in a thread of its own, so that the thread that waits for a line can do other work meanwhile.
fn read_aside(output: ChildStdout) -> Receiver<Result<String>> {
    let (tell, lines) = channel();
    thread::spawn(move || {
        for line in BufReader::new(output).lines() {
            if tell.send(line.map_err(Error::io("listen to a driver"))).is_err() {
                break;
            }
        }
    });
    lines
}
