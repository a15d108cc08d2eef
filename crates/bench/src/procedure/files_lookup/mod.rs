//! Opens files by their paths, through a volume and without one. It measures only the look-up, without a server.

mod way;

use std::hint::black_box;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use eyewall::{Cache, Options};
use eyewall_files::FileCache;
use serde::Deserialize;
use tempfile::TempDir;

use self::way::{Cached, Kept, Read, Way};
use super::Procedure;
use super::file_cache::{Source, content};
use super::gets::touch_of;
use crate::clock::now_ns;
use crate::error::{Error, Result};
use crate::load::allow_misses;
use crate::peer::{Kind, Peer};
use crate::plain::Plain;
use crate::random;
use crate::store::Store as _;
use crate::suite::cell::Cell;
use crate::suite::named::Named;
use crate::suite::size::Bytes;
use crate::suite::value::Case;
use crate::touch::{self, Touch};

/// Has no common divisor with the number of small files, so that their sizes are mixed.
const STRIDE: u64 = 617;

/// How often to try to store a file that was just written, and how long to wait in between.
const TRIES: usize = 20;
const BETWEEN_TRIES: Duration = Duration::from_millis(10);

const CACHED: &str = "eyewall, files";
const READ: &str = "std::fs::read";

/// The ways to open files by their paths. They are not stores.
pub(crate) const OPENERS: [Peer; 2] = [opener(CACHED, Kind::Ours), opener(READ, Kind::Reference)];

const fn opener(name: &'static str, kind: Kind) -> Peer {
    Peer {
        name,
        kind,
        look: || Ok(None),
        open: |_| Err(Error::Invalid("who opens files by their paths takes part in files-lookup only".to_owned())),
        attach: None,
    }
}

/// `storage` and `files` make cells; hits go through `consume`.
pub(super) struct FilesLookup;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    /// The number of `small files`, and the bounds of their sizes.
    small_files: u64,
    smallest: Bytes,
    largest: Bytes,
    /// The size of the volume.
    cap: Bytes,
    /// The length of each way's turn.
    milliseconds: u64,
}

impl Procedure for FilesLookup {
    fn within(&self) -> &'static [&'static str] {
        &["consume"]
    }

    fn measure(&self, cell: &mut Cell<'_>) -> Result<()> {
        let settings: Settings = cell.settings()?;
        let sizes = sizes(cell.case(), &settings)?;
        let source = Source::make(cell, &sizes)?;
        let files = Files::of(&source.plain, &sizes);
        let mut openers = openers(cell, &files, &settings)?;
        let duration = Duration::from_millis(settings.milliseconds);
        for case in cell.cases(self.within()) {
            let work = Work { act: Act::Hit, touch: touch_of(&case)?, duration };
            turns(cell, &mut openers, &files, work, &case)?;
        }
        let case = cell.case().clone();
        for act in [Act::Miss, Act::First] {
            turns(cell, &mut openers, &files, Work { act, touch: Touch::Page, duration }, &case)?;
        }
        Ok(())
    }
}

/// The size of each file: one file of a given size, or many small ones, spread evenly over the logarithm of the size.
fn sizes(case: &Case, settings: &Settings) -> Result<Vec<usize>> {
    if case.text("files")? != "small files" {
        return Ok(vec![case.bytes("files")? as usize]);
    }
    let (smallest, largest) = (settings.smallest.0 as f64, settings.largest.0 as f64);
    let size = |number: u64| {
        let place = (number * STRIDE % settings.small_files) as f64 / (settings.small_files - 1).max(1) as f64;
        (smallest * (largest / smallest).powf(place)).round() as usize
    };
    Ok((0..settings.small_files).map(size).collect())
}

/// The files of a cell.
struct Files<'a> {
    plain: &'a Plain,
    paths: Vec<PathBuf>,
    sizes: &'a [usize],
}

impl<'a> Files<'a> {
    fn of(plain: &'a Plain, sizes: &'a [usize]) -> Self {
        let path = |number: usize| plain.root().join(String::from_utf8_lossy(&random::key(number as u64)).as_ref());
        Self { plain, paths: (0..sizes.len()).map(path).collect(), sizes }
    }
}

/// The ways that take part.
struct Opener {
    name: &'static str,
    /// The volume, for ways that have one, and its directory.
    volume: Option<(Cache, TempDir)>,
}

impl Named for Opener {
    fn name(&self) -> &str {
        self.name
    }
}

/// The ways that gave every file unchanged. After this, the whole volume is in memory and has every file.
fn openers(cell: &mut Cell<'_>, files: &Files<'_>, settings: &Settings) -> Result<Vec<Opener>> {
    let mut openers = Vec::new();
    for peer in cell.peers() {
        cell.show(&format!("{} is made ready", peer.name));
        let made = make(cell, peer.name, files, settings);
        openers.extend(cell.attempt(peer.name, made)?);
    }
    Ok(openers)
}

fn make(cell: &Cell<'_>, name: &'static str, files: &Files<'_>, settings: &Settings) -> Result<Opener> {
    let opener = if name == CACHED {
        let directory = cell.scratch().make(cell.storage()?)?;
        let cache = Options::new().size(settings.cap.0).open(directory.path().join("volume"))?;
        cache.populate()?;
        keep(&FileCache::new(cache.clone()), &files.paths)?;
        Opener { name, volume: Some((cache, directory)) }
    } else {
        Opener { name, volume: None }
    };
    opener.with(files, Check { name, files })?;
    Ok(opener)
}

/// Reads all files into the volume. It doesn't store a file that was just written, since that might still change.
fn keep(cached: &FileCache, paths: &[PathBuf]) -> Result<()> {
    for path in paths {
        let mut tries = 0;
        while !cached.refresh(path).map_err(Error::path("cache", path))? {
            tries += 1;
            if tries == TRIES {
                let what = format!("{CACHED} doesn't keep {} though there is room", path.display());
                return Err(Error::Invalid(what));
            }
            thread::sleep(BETWEEN_TRIES);
        }
    }
    Ok(())
}

/// Work that any way can do, compiled for each.
trait Task {
    type Made;

    fn by(self, way: &mut impl Way) -> Result<Self::Made>;
}

impl Opener {
    fn with<T: Task>(&self, files: &Files<'_>, task: T) -> Result<T::Made> {
        let paths = &files.paths;
        match &self.volume {
            Some((cache, _)) => task.by(&mut Cached { cache, files: FileCache::new(cache.clone()), paths }),
            None if self.name == Plain::NAME => task.by(&mut Kept { handle: files.plain.handle() }),
            None => task.by(&mut Read { paths }),
        }
    }
}

/// Compares the bytes that a way shows with those that were written.
struct Check<'a> {
    name: &'static str,
    files: &'a Files<'a>,
}

impl Task for Check<'_> {
    type Made = ();

    fn by(self, way: &mut impl Way) -> Result<()> {
        for (number, bytes) in self.files.sizes.iter().enumerate() {
            let mut shown = Vec::with_capacity(*bytes);
            way.open(number, |piece| shown.extend_from_slice(piece))?;
            if shown != content(number as u64, *bytes) {
                return Err(Error::Invalid(format!("{} gave other bytes for a file of {bytes}", self.name)));
            }
        }
        Ok(())
    }
}

/// The case of a look-up. Its name is that of the measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    /// The path is known, and the file is in the cache.
    Hit,
    /// The path is known, and the file is in the cache afterwards.
    Miss,
    /// Neither holds before, both hold afterwards.
    First,
}

impl Act {
    fn measure(self) -> &'static str {
        match self {
            Self::Hit => "hit",
            Self::Miss => "miss",
            Self::First => "first",
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Work {
    act: Act,
    touch: Touch,
    duration: Duration,
}

/// Gives each way its turns at some work, and records the time of a file.
fn turns(cell: &mut Cell<'_>, openers: &mut Vec<Opener>, files: &Files<'_>, work: Work, case: &Case) -> Result<()> {
    let measure = work.act.measure();
    cell.show(&format!("{measure}, {case}"));
    cell.turns(openers, |cell, opener, repetition| {
        cell.scratch().settle(cell.storage()?)?;
        let name = opener.name;
        let seconds = match work.touch {
            Touch::Pointer => opener.with(files, Timed { name, files, work, touch: touch::pointer }),
            Touch::Page => opener.with(files, Timed { name, files, work, touch: touch::page }),
            Touch::Every => opener.with(files, Timed { name, files, work, touch: touch::every }),
        }?;
        cell.sample(case, name, measure, repetition, seconds)
    })
}

/// Goes through the files again and again, and returns the mean seconds of a file.
struct Timed<'a, T> {
    name: &'static str,
    files: &'a Files<'a>,
    work: Work,
    touch: T,
}

impl<T: Fn(&[u8]) -> u64> Task for Timed<'_, T> {
    type Made = f64;

    fn by(self, way: &mut impl Way) -> Result<f64> {
        // This makes the paths known, and grows the buffers to their size.
        self.lap(way)?;
        let duration_ns = self.work.duration.as_nanos() as u64;
        let (mut busy_ns, mut opened) = (0, 0);
        let mut before = way.hits_and_misses();
        while busy_ns < duration_ns {
            if self.work.act != Act::Hit {
                way.empty()?;
            }
            if self.work.act == Act::First {
                way.forget();
            }
            if self.work.act != Act::Hit {
                before = way.hits_and_misses();
            }
            busy_ns += self.lap(way)?;
            opened += self.files.sizes.len() as u64;
            self.check(before, way.hits_and_misses())?;
        }
        Ok(busy_ns as f64 / 1e9 / opened as f64)
    }
}

impl<T: Fn(&[u8]) -> u64> Timed<'_, T> {
    /// Goes through all files once; the nanoseconds that this took.
    fn lap(&self, way: &mut impl Way) -> Result<u64> {
        let begin_ns = now_ns();
        for number in 0..self.files.sizes.len() {
            way.open(number, |bytes| {
                black_box(bytes.as_ptr());
                black_box((self.touch)(bytes));
            })?;
        }
        Ok(now_ns() - begin_ns)
    }

    /// Refuses a lap if too many look-ups were misses instead of hits, or hits instead of misses.
    fn check(&self, before: Option<(u64, u64)>, after: Option<(u64, u64)>) -> Result<()> {
        let Some((before, after)) = before.zip(after) else { return Ok(()) };
        let (hits, misses) = (after.0 - before.0, after.1 - before.1);
        match self.work.act {
            Act::Hit => allow_misses(self.name, misses, hits + misses),
            Act::Miss | Act::First if hits == 0 => Ok(()),
            Act::Miss | Act::First => {
                Err(Error::Invalid(format!("{} had {hits} files that were to be in its cache no more", self.name)))
            }
        }
    }
}
