//! The machine, in the form of a record.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::clock::now_ns;
use crate::error::Result;
use crate::machine::{self, Machine};
use crate::random::Random;
use crate::scratch::{Scratch, Storage};
use crate::spread::Spread;

/// The loops of the noise probe, and the steps of each, which take about 20 ms. A build without optimisation measures
/// nothing, so it has fewer.
const PROBES: usize = 21;
const STEPS: u32 = if cfg!(debug_assertions) { 20_000 } else { 20_000_000 };

/// Examines this machine, and how steady it is.
pub fn look(scratch: &Scratch) -> Result<Value> {
    let (disk, shm) = (scratch.directory(Storage::Disk), scratch.directory(Storage::Shm));
    let machine = Machine::look(disk, shm)?;
    Ok(json!({
        "name": machine.kind(),
        "cpu": machine.cpu,
        "cores": machine.cores,
        "memory_mib": machine.memory_mib,
        "kernel": machine.kernel,
        "storage": [
            {"name": "disk", "file_system": machine.disk_file_system, "device": device(disk)},
            {"name": "shm", "file_system": machine.shm_file_system, "device": null},
        ],
        "governor": governor(),
        "load_at_start": machine::load(),
        "noise": noise(),
    }))
}

/// Whether the device below a path is a rotating disk, according to the kernel.
fn device(path: &Path) -> Option<&'static str> {
    match machine::queue_of(path, "rotational")?.as_str() {
        "0" => Some("does not turn"),
        _ => Some("turns, or the machine is a virtual one that doesn't say"),
    }
}

fn governor() -> Option<String> {
    let text = fs::read_to_string("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").ok()?;
    Some(text.trim().to_owned())
}

/// The time of a loop that always does the same work, in milliseconds.
fn noise() -> Value {
    let probe = |number: usize| {
        let begin_ns = now_ns();
        let mut random = Random::new(number as u64);
        let sum = (0..STEPS).fold(0_u64, |sum, _| sum.wrapping_add(random.next_u64()));
        std::hint::black_box(sum);
        (now_ns() - begin_ns) as f64 / 1e6
    };
    let Spread { median, min, max } = Spread::of(&(0..PROBES).map(probe).collect::<Vec<_>>());
    json!({
        "what": "a loop of arithmetic that always does the same", "unit": "ms",
        "median": median, "min": min, "max": max,
    })
}
