//! Long tests of a fleet, which `make soak PARTS=fleet` runs. `FLEET_SECONDS` is the length of each.

mod many_nodes;
mod many_purges;
mod redis_gone;
mod restartable;
mod storm;

use std::time::Duration;

use crate::common::origin::{Asked, Origin, read, respond};

/// The length of a long test. `None`: it is skipped.
fn length() -> Option<Duration> {
    if std::env::var_os("EYEWALL_SOAK").is_none() {
        eprintln!("skipped: make soak PARTS=fleet runs it");
        return None;
    }
    let seconds = std::env::var("FLEET_SECONDS").ok().filter(|text| !text.is_empty());
    Some(Duration::from_secs(seconds.map_or(60, |text| text.parse().expect("FLEET_SECONDS is a number"))))
}

/// An origin that answers by fields and a body, and notes no requests.
fn origin(answer: impl Fn(&Asked) -> (String, Vec<u8>) + Send + Sync + 'static) -> Origin {
    Origin::silent(move |stream| {
        let Some(asked) = read(stream) else { return };
        let (fields, body) = answer(&asked);
        respond(stream, 200, &fields, body.len(), &body);
    })
}

/// Numbers that look random.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}
