//! `eyewall ls`: the entries, as they come. Nothing is collected, so that a volume of any size can be listed.

use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use eyewall::Hit;
use serde::Serialize;

use crate::args::List;
use crate::output::{key_text, to_stdout};
use crate::{Error, Outcome, units, volume};

pub(crate) fn run(path: &Path, list: &List) -> Result<Outcome, Error> {
    let cache = volume::open_to_read(path)?;
    let prefix = list.prefix.as_ref().map_or(&b""[..], |prefix| prefix.as_bytes());
    to_stdout(|output| {
        if !list.json {
            writeln!(output, "{:>9}  {:>9}  {:>9}  KEY", "SIZE", "AGE", "TTL LEFT")?;
        }
        for hit in cache.iter().filter(|hit| hit.key().starts_with(prefix)) {
            if list.json { write_json(output, &hit)? } else { write_row(output, &hit)? }
        }
        Ok(())
    })?;
    Ok(Outcome::Done)
}

fn write_row(output: &mut impl Write, hit: &Hit<'_>) -> io::Result<()> {
    writeln!(
        output,
        "{:>9}  {:>9}  {:>9}  {}",
        units::size(hit.value().len() as u64),
        units::duration(hit.age()),
        hit.ttl_left().map_or_else(|| "-".to_owned(), units::duration),
        key_text(hit.key()),
    )
}

/// One entry for programs. A key that is UTF-8 is given as it is, another one in hexadecimal digits.
#[derive(Serialize)]
struct Line<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key_hex: Option<String>,
    value_bytes: usize,
    metadata_bytes: usize,
    age_seconds: f64,
    ttl_left_seconds: Option<f64>,
    serial: u64,
}

fn write_json(output: &mut impl Write, hit: &Hit<'_>) -> io::Result<()> {
    let key = std::str::from_utf8(hit.key()).ok();
    let line = Line {
        key,
        key_hex: key.is_none().then(|| hexadecimal(hit.key())),
        value_bytes: hit.value().len(),
        metadata_bytes: hit.metadata().len(),
        age_seconds: hit.age().as_secs_f64(),
        ttl_left_seconds: hit.ttl_left().map(|left| left.as_secs_f64()),
        serial: hit.serial(),
    };
    serde_json::to_writer(&mut *output, &line)?;
    writeln!(output)
}

fn hexadecimal(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from_digit(value.into(), 16).unwrap_or_default();
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}
