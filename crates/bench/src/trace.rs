//! Traces of requests: text with `key size` in each line, and access logs as `eyewall advise` reads them.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use eyewall_access_log::{Format, Line, lines};
use flate2::read::MultiGzDecoder;

use crate::error::{Error, Result};

/// The first bytes of a gzip file.
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// One request of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// The requested object.
    pub key: u64,
    /// The object's bytes; 1 if the source recorded none.
    pub bytes: u64,
}

/// The directory that holds the traces, if there is one: the value of `EYEWALL_TRACES`, or else the first `traces` in a
/// directory beside the repository.
pub fn directory() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("EYEWALL_TRACES").filter(|named| !named.is_empty()) {
        return Some(PathBuf::from(named)).filter(|path| path.is_dir());
    }
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(3)?;
    let mut found: Vec<PathBuf> = std::fs::read_dir(beside)
        .ok()?
        .flatten()
        .map(|entry| entry.path().join("traces"))
        .filter(|path| path.is_dir())
        .collect();
    found.sort();
    found.into_iter().next()
}

/// Reads a whole gzip trace.
pub fn read(path: &Path) -> Result<Vec<Request>> {
    let file = File::open(path).map_err(Error::path("open trace", path))?;
    parse(path, MultiGzDecoder::new(file))
}

/// Parses the text of a trace; `path` only names it in errors.
pub fn parse(path: &Path, text: impl Read) -> Result<Vec<Request>> {
    let mut requests = Vec::new();
    for (index, line) in BufReader::new(text).lines().enumerate() {
        let line = line.map_err(Error::path("read trace", path))?;
        let request =
            parse_line(&line).map_err(|what| Error::Trace { path: path.to_owned(), line: index + 1, what })?;
        requests.push(request);
    }
    if requests.is_empty() {
        return Err(Error::Trace { path: path.to_owned(), line: 0, what: "the trace is empty".to_owned() });
    }
    Ok(requests)
}

/// Reads an access log in NCSA's common or combined format or as JSON lines, or lines of `key size` with any key, plain
/// or in gzip. It leaves out requests that a cache can't answer, and lines that it can't read. An object is as large as
/// its largest response.
pub fn read_log(path: &Path) -> Result<Vec<Request>> {
    let mut text = Vec::new();
    let raw = std::fs::read(path).map_err(Error::path("read", path))?;
    if raw.starts_with(&GZIP_MAGIC) {
        MultiGzDecoder::new(&raw[..]).read_to_end(&mut text).map_err(Error::path("unpack", path))?;
    } else {
        text = raw;
    }
    let wrong = |what: &str| Error::Invalid(format!("{}: {what}", path.display()));
    let Some(format) = Format::detect(&text) else {
        return Err(wrong("no line is one of an access log (NCSA, JSON) or of `key size`"));
    };
    let (mut numbers, mut sizes, mut keys) = (HashMap::new(), Vec::new(), Vec::new());
    let mut scratch = Vec::new();
    for line in lines(&text) {
        if let Line::Request { key, bytes } = format.parse(line, &mut scratch) {
            let number = *numbers.entry(key.to_vec()).or_insert(sizes.len());
            if number == sizes.len() {
                sizes.push(1);
            }
            sizes[number] = bytes.max(sizes[number]);
            keys.push(number);
        }
    }
    if keys.is_empty() {
        return Err(wrong("it has no request that a cache could have answered"));
    }
    Ok(keys.into_iter().map(|number| Request { key: number as u64, bytes: sizes[number] }).collect())
}

fn parse_line(line: &str) -> std::result::Result<Request, String> {
    let mut words = line.split_ascii_whitespace();
    let mut number = |name: &str| -> std::result::Result<u64, String> {
        let word = words.next().ok_or_else(|| format!("no {name}"))?;
        word.parse().map_err(|_| format!("{name} {word:?} is no number"))
    };
    let request = Request { key: number("key")?, bytes: number("size")? };
    match words.next() {
        Some(extra) => Err(format!("unexpected {extra:?} after the size")),
        None => Ok(request),
    }
}

/// Sums over the distinct objects of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Footprint {
    /// Bytes of the objects, each at its first size.
    pub bytes: u64,
    /// Their median size in bytes.
    pub median_bytes: u64,
}

impl Footprint {
    /// Computes the sums over the distinct objects of a trace.
    pub fn of(requests: &[Request]) -> Self {
        let mut sizes = HashMap::new();
        for request in requests {
            sizes.entry(request.key).or_insert(request.bytes);
        }
        let mut sizes: Vec<u64> = sizes.into_values().collect();
        sizes.sort_unstable();
        let median_bytes = sizes.get(sizes.len().saturating_sub(1) / 2).copied().unwrap_or_default();
        Self { bytes: sizes.iter().sum(), median_bytes }
    }
}
