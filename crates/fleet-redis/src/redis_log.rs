//! The purge log on a Redis server: a stream with ids of our own, and two hashes beside it.
//!
//! ```text
//! {NAME}:lines   stream   7-0: r the line's reign, b the reign before, w the process that wrote it, p the purge
//! {NAME}:state   hash     name of this list, number and reign of the last line
//! {NAME}:nodes   hash     process: until when it counts as live, and what it says of itself
//! ```
//! Scripts make each step one step. A connection loads them into the server when it begins, and then names them only. A server that has
//! lost them answers with an error, so the connection begins again. The braces keep all keys in one slot of a cluster.

use std::time::Duration;

use eyewall_fleet::{Line, Reign, State, Ticket};
use redis::{Cmd, RedisResult, Value};

use crate::Settings;
use crate::access::{Access, Connection, Found};

const APPEND: &str = concat!(include_str!("reign.lua"), include_str!("append.lua"));
const ASK: &str = concat!(include_str!("reign.lua"), include_str!("ask.lua"));
const NODES: &str = include_str!("nodes.lua");

/// How long the server waits for a line before it answers that there is none.
const READ_BLOCK: Duration = Duration::from_secs(2);
/// The timeout of the read of lines, beyond that.
const READ_TIMEOUT: Duration = Duration::from_secs(5);
/// The most lines of one read.
const LINES_MAX: usize = 256;

/// The log: how to reach it, and what to call it.
#[derive(Clone)]
pub(crate) struct Log {
    pub(crate) access: Access,
    keys: Keys,
    /// The name of a new list.
    new_name: String,
    lines_max: u64,
    min_replicas: u64,
    pub(crate) timeout: Duration,
}

#[derive(Debug, Clone)]
struct Keys {
    state: String,
    lines: String,
    nodes: String,
}

/// A connection for questions and purges. [`Reads`] is another one, since a read blocks its connection.
pub(crate) struct Writes {
    connection: Connection,
    log: Log,
    scripts: Scripts,
}

/// The names that the server gave to the scripts.
struct Scripts {
    append: String,
    ask: String,
    nodes: String,
}

/// A connection that waits for lines.
pub(crate) struct Reads {
    connection: Connection,
    log: Log,
}

/// What a node asks and says.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Question<'a> {
    pub(crate) asked_ms: u64,
    pub(crate) about: u64,
    pub(crate) process: &'a str,
    /// What others may know of this node, as JSON.
    pub(crate) said: &'a str,
    /// How long it counts as live.
    pub(crate) live_for: Duration,
}

/// The log's answer to purges and a question.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The lines that the purges became.
    pub(crate) written: Vec<(Ticket, Reign, u64)>,
    pub(crate) state: State,
}

/// A node as the log knows it.
#[derive(Debug)]
pub(crate) struct Known {
    /// For how long it still counts as live. Negative: for how long it hasn't.
    pub(crate) left_ms: i64,
    pub(crate) said: String,
}

impl Log {
    /// # Errors
    /// The system's, if it has no random numbers.
    pub(crate) fn new(settings: &Settings) -> std::io::Result<Self> {
        let key = |what| format!("{{{}}}:{what}", settings.name);
        Ok(Self {
            access: Access::of(settings, key("state")),
            keys: Keys { state: key("state"), lines: key("lines"), nodes: key("nodes") },
            new_name: crate::handle::random_word()?,
            lines_max: settings.lines,
            min_replicas: settings.min_replicas,
            timeout: settings.max_blind / 4,
        })
    }

    /// Connects to a server.
    ///
    /// # Errors
    /// Those of Redis.
    pub(crate) async fn connect(&self, found: &Found) -> RedisResult<(Writes, Reads)> {
        let mut writes = self.access.connect(found, self.timeout + Duration::from_secs(1)).await?;
        let scripts = Scripts::load(&mut writes).await?;
        let reads = self.access.connect(found, READ_BLOCK + READ_TIMEOUT).await?;
        Ok((Writes { connection: writes, log: self.clone(), scripts }, Reads { connection: reads, log: self.clone() }))
    }
}

impl Scripts {
    async fn load(connection: &mut Connection) -> RedisResult<Self> {
        let mut load = async |script: &str| connection.query(redis::cmd("SCRIPT").arg("LOAD").arg(script)).await;
        Ok(Self { append: load(APPEND).await?, ask: load(ASK).await?, nodes: load(NODES).await? })
    }
}

impl Writes {
    /// Writes purges, then asks. One round trip, however many there are.
    ///
    /// # Errors
    /// Those of Redis. Then it is unknown which purges were written.
    pub(crate) async fn write(&mut self, purges: &[(Ticket, Vec<u8>)], question: Question<'_>) -> RedisResult<Answer> {
        let Log { keys, new_name, lines_max, min_replicas, timeout, .. } = &self.log;
        let mut commands = Vec::with_capacity(3);
        if !purges.is_empty() {
            let mut append = evaluate(&self.scripts.append, &[&keys.state, &keys.lines]);
            append.arg(new_name).arg(lines_max).arg(question.process);
            for (_, purge) in purges {
                append.arg(purge);
            }
            commands.push(append);
        }
        let mut ask = evaluate(&self.scripts.ask, &[&keys.state, &keys.lines, &keys.nodes]);
        ask.arg(new_name).arg(question.about).arg(question.process).arg(question.said);
        ask.arg(question.live_for.as_millis() as u64);
        commands.push(ask);
        if *min_replicas > 0 {
            let mut wait = redis::cmd("WAIT");
            wait.arg(min_replicas).arg(timeout.as_millis() as u64);
            commands.push(wait);
        }
        let mut answers: Vec<Value> = self.connection.query_all(&commands).await?;
        let replicas: u64 = match *min_replicas {
            0 => 0,
            _ => redis::from_redis_value(answers.pop().unwrap_or_default())?,
        };
        let state = redis::from_redis_value(answers.pop().unwrap_or_default())?;
        let mut written = Vec::with_capacity(purges.len());
        if let Some(answer) = answers.pop() {
            let (reign, last): (String, u64) = redis::from_redis_value(answer)?;
            let (reign, count) = (Reign::new(&reign), purges.len() as u64);
            let numbers = last.saturating_sub(count) + 1..;
            written.extend(purges.iter().zip(numbers).map(|((ticket, _), number)| (*ticket, reign.clone(), number)));
        }
        Ok(Answer { written, state: state_of(question, state, replicas >= *min_replicas) })
    }

    /// Some lines up to this one, the latest first.
    ///
    /// # Errors
    /// Those of Redis.
    pub(crate) async fn lines_up_to(&mut self, number: u64) -> RedisResult<Vec<Line>> {
        let mut read = redis::cmd("XREVRANGE");
        read.arg(&self.log.keys.lines).arg(format!("{number}-0")).arg("-").arg("COUNT").arg(LINES_MAX);
        let entries: Vec<(String, Vec<Vec<u8>>)> = self.connection.query(&read).await?;
        Ok(entries.into_iter().map_while(|(id, fields)| line_of(&id, fields)).collect())
    }

    /// The nodes of the fleet.
    ///
    /// # Errors
    /// Those of Redis.
    pub(crate) async fn nodes(&mut self) -> RedisResult<Vec<Known>> {
        let list = evaluate(&self.scripts.nodes, &[&self.log.keys.nodes]);
        let found: Vec<(i64, String)> = self.connection.query(&list).await?;
        Ok(found.into_iter().map(|(left_ms, said)| Known { left_ms, said }).collect())
    }
}

/// Runs a script that the server has.
fn evaluate(name: &str, keys: &[&str]) -> Cmd {
    let mut command = redis::cmd("EVALSHA");
    command.arg(name).arg(keys.len());
    for key in keys {
        command.arg(key);
    }
    command
}

fn state_of(
    question: Question<'_>,
    (reign, head, written_in, about, next): (String, u64, String, String, String),
    is_replicated: bool,
) -> State {
    State {
        asked_ms: question.asked_ms,
        about: question.about,
        reign: Reign::new(&reign),
        head,
        head_written_in: Reign::new(&written_in),
        about_written_in: (!about.is_empty()).then(|| Reign::new(&about)),
        next: number_of(&next),
        is_replicated,
    }
}

/// The number in the id of a line.
fn number_of(id: &str) -> Option<u64> {
    id.strip_suffix("-0")?.parse().ok()
}

impl Reads {
    /// Waits for lines after this one, and returns some of them. It returns none after a time without any.
    ///
    /// # Errors
    /// Those of Redis.
    pub(crate) async fn lines_after(&mut self, number: u64) -> RedisResult<Vec<Line>> {
        let mut read = redis::cmd("XREAD");
        read.arg("COUNT").arg(LINES_MAX).arg("BLOCK").arg(READ_BLOCK.as_millis() as u64);
        read.arg("STREAMS").arg(&self.log.keys.lines).arg(format!("{number}-0"));
        let streams: Option<Vec<Stream>> = self.connection.query(&read).await?;
        let entries = streams.into_iter().flatten().flat_map(|(_, entries)| entries);
        Ok(entries.filter_map(|(id, fields)| line_of(&id, fields)).collect())
    }
}

/// The key, and the entries with their fields.
type Stream = (String, Vec<(String, Vec<Vec<u8>>)>);

/// The line of an entry; `None` for an entry that somebody else has added. The follower then finds that a number is missing.
fn line_of(id: &str, fields: Vec<Vec<u8>>) -> Option<Line> {
    let names: Vec<&[u8]> = fields.iter().step_by(2).map(Vec::as_slice).collect();
    if names != [b"r", b"b", b"w", b"p"] {
        return None;
    }
    let mut values = fields.into_iter().skip(1).step_by(2);
    let mut text = || String::from_utf8(values.next()?).ok();
    let (reign, before, purger) = (Reign::new(&text()?), Reign::new(&text()?), text()?);
    Some(Line { number: number_of(id)?, reign, before, purger, purge: values.next()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_others_are_no_lines() {
        let fields = |names: &[&str]| names.iter().map(|name| name.as_bytes().to_vec()).collect::<Vec<_>>();
        let line = line_of("7-0", fields(&["r", "new", "b", "old", "w", "me", "p", "{}"])).unwrap();
        assert_eq!((line.number, line.reign.as_str(), line.before.as_str()), (7, "new", "old"));
        assert_eq!((line.purger.as_str(), &line.purge[..]), ("me", &b"{}"[..]));
        assert_eq!(line_of("7-1", fields(&["r", "new", "b", "old", "w", "me", "p", "{}"])), None);
        assert_eq!(line_of("7-0", fields(&["r", "new"])), None);
        assert_eq!(line_of("7-0", fields(&["field", "value"])), None);
    }
}
