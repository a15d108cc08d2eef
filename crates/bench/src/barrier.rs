//! A barrier at which processes wait for each other, so that they begin together. It is a volume of its own, in shared
//! memory.

use std::path::Path;
use std::thread;
use std::time::Duration;

use eyewall::{Cache, Counter, Options, PutOptions};

use crate::clock::now_ns;
use crate::error::{Error, Result};

/// Room for the slots of some hundred processes.
const SIZE_BYTES: u64 = 64 << 20;

/// Time between the announcement of a start and the start. By the start, all processes have seen the announcement, and
/// sleep.
const AHEAD_NS: u64 = 50_000_000;

const LOOK_EVERY: Duration = Duration::from_millis(5);

/// How long the watching process waits for the others to arrive.
const ARRIVE_WITHIN_NS: u64 = 60_000_000_000;

/// Processes wait for each other in rounds. The count of arrivals and the announced start of a round are entries.
#[derive(Debug)]
pub struct Barrier {
    cache: Cache,
}

impl Barrier {
    /// Opens the barrier at `path`; the first process to do so creates it.
    pub fn open(path: &Path) -> Result<Self> {
        Ok(Self { cache: Options::new().size(SIZE_BYTES).open(path)? })
    }

    /// For processes that begin together: arrives, and returns at the start of `round`.
    pub fn arrive(&self, round: u64) -> Result<()> {
        self.cache.increment(format!("arrived {round}"), 1, &Counter::new())?;
        let start_ns = poll(
            || Ok(self.cache.peek(format!("start {round}"))?.and_then(|hit| word(&hit))),
            || format!("nobody started round {round}"),
        )?;
        thread::sleep(Duration::from_nanos(start_ns.saturating_sub(now_ns())));
        Ok(())
    }

    /// For the process that watches: waits until so many have arrived, and announces the start.
    pub fn start(&self, round: u64, processes: u64) -> Result<()> {
        let key = format!("arrived {round}");
        let arrived = || -> Result<u64> { Ok(self.cache.peek(&key)?.and_then(|hit| word(&hit)).unwrap_or(0)) };
        poll(
            || Ok(Some(arrived()?).filter(|arrived| *arrived >= processes)),
            || format!("not all of {processes} processes arrived for round {round}; is the machine too busy for them?"),
        )?;
        let start_ns = now_ns() + AHEAD_NS;
        self.cache.put_with(format!("start {round}"), start_ns.to_le_bytes(), &PutOptions::new())?;
        Ok(())
    }
}

fn word(bytes: &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}

/// Polls until there is a value.
fn poll<T>(mut look: impl FnMut() -> Result<Option<T>>, missing: impl Fn() -> String) -> Result<T> {
    let deadline_ns = now_ns() + ARRIVE_WITHIN_NS;
    while now_ns() < deadline_ns {
        if let Some(found) = look()? {
            return Ok(found);
        }
        thread::sleep(LOOK_EVERY);
    }
    Err(Error::Invalid(missing()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_begins_before_all_have_arrived() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("barrier");
        let barrier = Barrier::open(&path).unwrap();
        for round in 0..2 {
            let begun: Vec<u64> = thread::scope(|scope| {
                let arrive = || {
                    Barrier::open(&path).unwrap().arrive(round).unwrap();
                    now_ns()
                };
                let waiting = [scope.spawn(arrive), scope.spawn(arrive)];
                barrier.start(round, 2).unwrap();
                waiting.map(|one| one.join().unwrap()).to_vec()
            });
            let start = barrier.cache.peek(format!("start {round}")).unwrap().and_then(|hit| word(&hit)).unwrap();
            assert!(begun.iter().all(|begun| *begun >= start));
        }
    }
}
