//! `eyewall fleet agent`: makes a volume a node of a fleet, for programs that use it without a server.

use std::io::{self, Write as _};
use std::path::Path;
use std::time::Duration;

use eyewall::{Cache, Options};
use eyewall_fleet_agent::{Agent, Options as AgentOptions};
use eyewall_server::config::log::LogForm;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::args::Agent as Words;
use crate::{Error, Outcome, log, serve, volume};

/// How often the agent looks whether the volume is there, and whether it is still the same.
const LOOK_EVERY: Duration = Duration::from_secs(1);

pub(crate) fn run(cache: Option<&Path>, words: &Words) -> Result<Outcome, Error> {
    log::start(&serve::usual_levels(words.verbose), LogForm::Text);
    let path = volume::named(cache)?;
    let settings = options(words).settings().map_err(Error::Agent)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Error::AgentSystem)?;
    runtime.block_on(async {
        let mut signals = Signals::new().map_err(Error::AgentSystem)?;
        let mut waits = false;
        loop {
            let opened = match open(path) {
                Ok(cache) => cache,
                Err(eyewall::Error::NotFound { .. }) => {
                    if !std::mem::replace(&mut waits, true) {
                        say(&format!("waiting for the volume {}", path.display()));
                    }
                    if signals.came_in(LOOK_EVERY).await {
                        return Ok(Outcome::Done);
                    }
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            let agent = Agent::start(&opened, settings.clone()).map_err(Error::AgentSystem)?;
            say(&format!("the volume {} belongs to the fleet {}", path.display(), settings.node.name));
            while opened.is_at_its_path() && opened.check_header().is_ok() {
                if signals.came_in(LOOK_EVERY).await {
                    return Ok(Outcome::Done);
                }
            }
            // Another file has taken its place, as after damage.
            drop(agent);
        }
    })
}

fn open(path: &Path) -> eyewall::Result<Cache> {
    // A volume that loses bytes must not end the agent.
    Options::new().create(false).survive_sigbus(true).open(path)
}

fn options(words: &Words) -> AgentOptions {
    AgentOptions {
        redis: words.redis.clone(),
        name: words.name.clone(),
        node: words.node.clone(),
        password_file: words.password_file.clone(),
        sentinel_password_file: words.sentinel_password_file.clone(),
        ca_file: words.ca_file.clone(),
        min_replicas: words.min_replicas,
        durable: words.durable,
        max_blind: words.max_blind,
        lines: words.lines,
        second_level_size: words.second_level_size,
    }
}

fn say(line: &str) {
    // The parent process need not read it.
    let _ = writeln!(io::stdout(), "{line}").and_then(|()| io::stdout().flush());
}

/// The signals that end the agent.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    /// Whether one came within this time.
    async fn came_in(&mut self, time: Duration) -> bool {
        tokio::select! {
            _ = self.interrupt.recv() => true,
            _ = self.terminate.recv() => true,
            () = tokio::time::sleep(time) => false,
        }
    }
}
