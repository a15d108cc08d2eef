//! `eyewall put`: stores a value from a file or from standard input.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use eyewall::{Cache, PutOptions};

use crate::args::Put;
use crate::{Error, Outcome, volume};

pub(crate) fn run(path: &Path, put: &Put) -> Result<Outcome, Error> {
    let cache = volume::open(path)?;
    let beside = &put.beside;
    let tags: Vec<&str> = beside.tag.iter().map(String::as_str).collect();
    let mut options = PutOptions::new().tags(&tags);
    if let Some(ttl) = beside.ttl {
        options = options.ttl(ttl);
    }
    if let Some(stale) = beside.stale {
        options = options.stale(stale);
    }
    if let Some(metadata) = &beside.metadata {
        options = options.metadata(metadata.as_bytes());
    }
    if let Some(reason) = beside.negative {
        cache.put_negative(put.key.as_bytes(), reason, &options)?;
        return Ok(Outcome::Done);
    }
    let value = if put.file.as_os_str() == "-" {
        read_value(&cache, io::stdin().lock(), "standard input")?
    } else {
        let from = format!("the file {}", put.file.display());
        let file = File::open(&put.file).map_err(|source| Error::Source { from: from.clone(), source })?;
        read_value(&cache, file, &from)?
    };
    cache.put_with(put.key.as_bytes(), &value, &options)?;
    Ok(Outcome::Done)
}

/// Reads no more than the volume could store, because the input may be endless.
fn read_value(cache: &Cache, input: impl Read, from: &str) -> Result<Vec<u8>, Error> {
    let bytes_max = cache.entry_bytes_max();
    let mut value = Vec::new();
    input
        .take(bytes_max.saturating_add(1))
        .read_to_end(&mut value)
        .map_err(|source| Error::Source { from: from.to_owned(), source })?;
    if value.len() as u64 > bytes_max {
        return Err(Error::ValueTooLarge { from: from.to_owned(), bytes_max });
    }
    Ok(value)
}
