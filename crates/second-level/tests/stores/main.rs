//! The second level with a real Redis, and with a bucket.

#![allow(clippy::expect_used, reason = "a test ends by a panic")]

mod bucket;
mod on_redis;
mod on_s3;
#[allow(dead_code, reason = "the tests of the program use more of it")]
#[path = "../../../cli/tests/common/redis.rs"]
mod redis;

use std::time::{Duration, Instant};

use bytes::Bytes;
use eyewall_second_level::{Backend, SecondLevel, SecondLevelThread, Settings, Status};

/// The timeout of all waits.
const PATIENCE: Duration = Duration::from_mins(1);
/// Objects of a test are usable for long.
const TTL: Duration = Duration::from_mins(10);

fn settings(backend: Backend) -> Settings {
    Settings { backend, timeout: Duration::from_secs(10), object_bytes_max: 1 << 20, secret: None }
}

fn start(settings: &Settings) -> (SecondLevel, SecondLevelThread) {
    SecondLevelThread::start(settings).expect("the settings make sense")
}

/// Offers a value, and waits until the store has dealt with it.
fn put(second_level: &SecondLevel, key: &[u8], value: &[u8]) {
    let done = |status: &Status| status.stored + status.refused + status.offers_failed;
    let before = done(&second_level.status());
    let offered = second_level.offer(key, Bytes::copy_from_slice(value), TTL);
    assert_eq!(offered, eyewall_second_level::Offered::Queued);
    await_status(second_level, |status| done(status) > before);
}

fn await_status(second_level: &SecondLevel, is_so: impl Fn(&Status) -> bool) -> Status {
    let start = Instant::now();
    loop {
        let status = second_level.status();
        if is_so(&status) {
            return status;
        }
        assert!(start.elapsed() < PATIENCE, "still {status:?}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
