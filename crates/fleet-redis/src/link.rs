//! The connections to the log's server. When one breaks, both begin again, at the next server of the configuration.
//!
//! ```text
//! node ──> Task: write these purges, ask, list the nodes ──> link ──> Event: answered, lines, lost ──> node
//! ```

use std::time::{Duration, Instant};

use eyewall_fleet::{Line, Ticket};
use eyewall_region::clock;
use redis::{RedisError, RedisResult};
use tokio::sync::{mpsc, watch};

use crate::redis_log::{Answer, Known, Log, Question, Reads, Writes};
use crate::redis_url::RedisUrl;

/// Lines that come faster one after the other are read together, since each read and each confirmation has its costs.
const READ_SPACING: Duration = Duration::from_millis(2);
/// The pause after all servers have failed.
const PAUSE: Duration = Duration::from_millis(200);

/// What the link has to do.
#[derive(Debug)]
pub(crate) enum Task {
    /// Write these purges, and ask about the last line that the node has applied.
    Ask { purges: Vec<(Ticket, Vec<u8>)>, about: u64, said: String },
    /// List the nodes.
    Nodes,
    /// Read some lines up to this one, the latest first.
    Earlier(u64),
    /// Begin again.
    Reconnect,
}

/// What happened on the link.
#[derive(Debug)]
pub(crate) enum Event {
    /// A server is there.
    Connected(String),
    Answered(Answer),
    Nodes(Vec<Known>),
    Lines(Vec<Line>),
    Earlier(Vec<Line>),
    /// The server is gone, or none is there.
    Lost(String),
}

/// The link's end.
pub(crate) struct Link {
    pub(crate) log: Log,
    pub(crate) servers: Vec<RedisUrl>,
    /// Names this node's process.
    pub(crate) process: String,
    pub(crate) live_for: Duration,
    pub(crate) tasks: mpsc::Receiver<Task>,
    pub(crate) events: mpsc::Sender<Event>,
    /// The line after which to read. `None`: it isn't known yet.
    pub(crate) after: watch::Receiver<Option<u64>>,
}

impl Link {
    /// Connects, again and again. It ends with the node.
    pub(crate) async fn run(mut self) {
        loop {
            for server in self.servers.clone() {
                let lost = match self.connect(&server).await {
                    Ok((shown, writes, reads)) => {
                        // Tasks of an earlier connection are void: the node begins again with the event.
                        while self.tasks.try_recv().is_ok() {}
                        if self.events.send(Event::Connected(shown.clone())).await.is_err() {
                            return;
                        }
                        let (log, timeout) = (self.log.clone(), self.log.timeout);
                        tokio::select! {
                            lost = self.serve(writes, reads) => lost,
                            lost = replaced(&log, &server, &shown, timeout) => Some(lost),
                        }
                    }
                    Err(error) => Some(words(&error)),
                };
                let Some(lost) = lost else { continue };
                if self.events.send(Event::Lost(format!("{server}: {lost}"))).await.is_err() {
                    return;
                }
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn connect(&self, server: &RedisUrl) -> RedisResult<(String, Writes, Reads)> {
        let found = self.log.access.find(server).await?;
        let (writes, reads) = self.log.connect(&found).await?;
        Ok((found.shown(server), writes, reads))
    }

    /// Works until the connection is lost. Returns the reason; `None` if the node wanted it.
    async fn serve(&mut self, mut writes: Writes, mut reads: Reads) -> Option<String> {
        let (process, live_for, events) = (self.process.clone(), self.live_for, self.events.clone());
        let writing = async {
            while let Some(task) = self.tasks.recv().await {
                let event = match task {
                    Task::Reconnect => return None,
                    Task::Nodes => writes.nodes().await.map(Event::Nodes),
                    Task::Earlier(number) => writes.lines_up_to(number).await.map(Event::Earlier),
                    Task::Ask { purges, about, said } => {
                        let asked_ms = clock::since_boot_ms();
                        let question = Question { asked_ms, about, process: &process, said: &said, live_for };
                        writes.write(&purges, question).await.map(Event::Answered)
                    }
                };
                match event {
                    Ok(event) => events.send(event).await.ok()?,
                    Err(error) => return Some(words(&error)),
                }
            }
            None
        };
        let mut after = self.after.clone();
        let reading = async {
            let mut last = Instant::now();
            loop {
                let Some(number) = *after.borrow_and_update() else {
                    if after.changed().await.is_err() {
                        return None;
                    }
                    continue;
                };
                match reads.lines_after(number).await {
                    Ok(lines) if lines.is_empty() => {}
                    Ok(lines) => {
                        let is_dense = last.elapsed() < READ_SPACING;
                        last = Instant::now();
                        // The node tells when it has applied them, also if its place stays the same.
                        if events.send(Event::Lines(lines)).await.is_err() || after.changed().await.is_err() {
                            return None;
                        }
                        if is_dense {
                            tokio::time::sleep(READ_SPACING).await;
                        }
                    }
                    Err(error) => return Some(words(&error)),
                }
            }
        };
        tokio::select! {
            lost = writing => lost,
            lost = reading => lost,
        }
    }
}

/// Waits until a Sentinel names another server than this one. It returns the reason to leave this server.
async fn replaced(log: &Log, server: &RedisUrl, shown: &str, every: Duration) -> String {
    while server.is_sentinel() {
        tokio::time::sleep(every).await;
        // A Sentinel that can't be reached says nothing about the server.
        if let Ok(found) = log.access.find(server).await
            && found.shown(server) != shown
        {
            return format!("it names {} in the place of {shown}", found.shown(server));
        }
    }
    std::future::pending().await
}

/// An error of Redis as an operator knows it.
fn words(error: &RedisError) -> String {
    match error.code() {
        Some("READONLY") => "it is a replica, which can't be written to".to_owned(),
        _ => error.to_string(),
    }
}
