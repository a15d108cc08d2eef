//! A cache in front of a directory of files, compared with reading the files.

use std::time::Duration;

use serde::Deserialize;
use tempfile::TempDir;

use super::Procedure;
use super::gets::touch_of;
use super::traffic::Body;
use crate::contender::Contender;
use crate::error::{Error, Result};
use crate::load;
use crate::peer::{Open, Peer};
use crate::plain::Plain;
use crate::random::{self, Random};
use crate::reads::{Act, ReadLap, Reads};
use crate::scratch::Storage;
use crate::store::{Handle as _, Store as _};
use crate::suite::cell::Cell;
use crate::suite::entrant::{Closed, Entrant, Room};
use crate::suite::named::Named;
use crate::suite::size::Bytes;
use crate::suite::value::Case;
use crate::touch::Touch;

/// Keys from here on belong to entries that are never requested.
const OTHERS_FIRST: u64 = 1 << 42;

/// Files smaller than this are read so many in a row between two readings of the clock.
const SMALL_BYTES: usize = 64 << 10;
const SMALL_BETWEEN_LOOKS: usize = 16;

/// A cap has room for so many of the largest file beyond the content. Some caches consist of parts, and an entry has to
/// fit into its part.
const SPARE_FILES: u64 = 16;

/// `storage`, `files`, `page_cache` and `others` make cells; gets go through `readers` and `consume`, misses through `readers`.
pub(super) struct FileCache;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    /// The number of `small files`, and their sizes.
    small_files: u64,
    sizes: Body,
    /// Bytes of each other entry.
    other: Bytes,
    /// The length of each store's turn, for cells in which nothing is cold.
    milliseconds: u64,
}

impl Procedure for FileCache {
    fn within(&self) -> &'static [&'static str] {
        &["readers", "consume"]
    }

    fn measure(&self, cell: &mut Cell<'_>) -> Result<()> {
        let settings: Settings = cell.settings()?;
        let is_cold = match cell.case().text("page_cache")? {
            "warm" => false,
            "cold" => true,
            _ => return Err(Error::parameter("page_cache", cell.case().get("page_cache"), "warm, or cold")),
        };
        if is_cold && cell.storage()? == Storage::Shm {
            cell.note("in shared memory nothing is cold: not measured");
            return Ok(());
        }
        let files = files_of(cell.case(), &settings)?;
        let others = cell.case().count("others")? as u64;
        let source = Source::make(cell, &files)?;
        let mut shelves = shelves(cell, &files, others, settings.other.0 as usize, is_cold)?;
        let duration = (!is_cold).then(|| Duration::from_millis(settings.milliseconds));
        let work = |orders, act, touch| Reads {
            source: &source.plain,
            orders,
            act,
            touch,
            between_looks: between_looks(&files),
            untimed: if is_cold { 0 } else { files.len() },
            duration,
        };
        for case in cell.cases(self.within()) {
            cell.show(&format!("gets, {case}"));
            let reads = work(files_in_turn(&files, case.count("readers")?), Act::Get, touch_of(&case)?);
            turns(cell, &mut shelves, &reads, &case, "get")?;
        }
        for case in cell.cases(&["readers"]) {
            cell.show(&format!("misses, {case}"));
            let reads = work(files_in_turn(&files, case.count("readers")?), Act::Miss, Touch::Page);
            turns(cell, &mut shelves, &reads, &case, "miss")?;
        }
        cell.show("first stores");
        let case = cell.case().clone();
        turns(
            cell,
            &mut shelves,
            &work(files_in_turn(&files, 1), Act::FirstStore, Touch::Pointer),
            &case,
            "first_store",
        )
    }
}

/// Files that together are larger than the cache: `storage` makes cells.
pub(super) struct FilePressure;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PressureSettings {
    cap: Bytes,
    files: u64,
    file: Bytes,
    milliseconds: u64,
}

impl Procedure for FilePressure {
    fn within(&self) -> &'static [&'static str] {
        &["readers"]
    }

    fn measure(&self, cell: &mut Cell<'_>) -> Result<()> {
        let settings: PressureSettings = cell.settings()?;
        let bytes = settings.file.0 as usize;
        let files: Vec<usize> = (0..settings.files).map(|_| bytes).collect();
        let source = Source::make(cell, &files)?;
        let room = Room { cap_bytes: settings.cap.0, value_bytes: bytes, value_bytes_max: bytes, tier_bytes: 0 };
        let mut entrants = cell.open_all(|_| room, |_| Ok(()))?;
        for case in cell.cases(self.within()) {
            cell.show(&case.to_string());
            let order = |reader: usize| {
                let mut random = Random::new(random::mix(cell.seed() ^ ((reader as u64) << 32)));
                (0..8 * settings.files).map(|_| random.below(settings.files)).collect()
            };
            let reads = Reads {
                source: &source.plain,
                orders: (0..case.count("readers")?).map(order).collect(),
                act: Act::GetOrStore,
                touch: Touch::Page,
                between_looks: 1,
                untimed: files.len(),
                duration: Some(Duration::from_millis(settings.milliseconds)),
            };
            cell.turns(&mut entrants, |cell, entrant, repetition| {
                cell.scratch().settle(cell.storage()?)?;
                let name = entrant.store.name();
                let lap = serve(entrant.store.as_ref(), &reads)?;
                cell.sample(&case, name, "time", repetition, lap.seconds_each())?;
                // A store without a cache has no hits.
                if name != Plain::NAME {
                    cell.sample(&case, name, "hits", repetition, lap.hit_percent())?;
                }
                if lap.refused > 0 {
                    cell.note(format!("{name} refused files, as too large or for want of room; they count as misses"));
                }
                Ok(())
            })?;
        }
        Ok(())
    }
}

/// The files to cache, in a scratch directory.
pub(super) struct Source {
    pub(super) plain: Plain,
    _directory: TempDir,
}

impl Source {
    /// Files of these sizes.
    pub(super) fn make(cell: &Cell<'_>, files: &[usize]) -> Result<Self> {
        cell.show("files are made");
        let directory = cell.scratch().make(cell.storage()?)?;
        let plain = Plain::new(directory.path())?;
        for (index, bytes) in files.iter().enumerate() {
            plain.handle().put(&random::key(index as u64), &content(index as u64, *bytes))?;
        }
        cell.scratch().settle(cell.storage()?)?;
        Ok(Self { plain, _directory: directory })
    }
}

/// The content of a file.
pub(super) fn content(index: u64, bytes: usize) -> Vec<u8> {
    let mut content = random::filler(index, bytes);
    load::stamp(&mut content, index);
    content
}

/// The size of each file.
fn files_of(case: &Case, settings: &Settings) -> Result<Vec<usize>> {
    if case.text("files")? == "small files" {
        return Ok((0..settings.small_files).map(|index| settings.sizes.sizes().of(index)).collect());
    }
    Ok(vec![case.bytes("files")? as usize])
}

fn between_looks(files: &[usize]) -> usize {
    let is_small = files.iter().sum::<usize>() / files.len().max(1) < SMALL_BYTES;
    if is_small { SMALL_BETWEEN_LOOKS } else { 1 }
}

/// All files for each reader. Each reader begins with a different file.
fn files_in_turn(files: &[usize], readers: usize) -> Vec<Vec<u64>> {
    let count = files.len();
    (0..readers).map(|reader| (0..count).map(|place| ((place + reader) % count) as u64).collect()).collect()
}

/// A store that holds the files. It is either open all the time, or closed between turns, so that its pages can be
/// dropped.
enum Shelf {
    Open(Entrant),
    Closed(Closed),
}

impl Named for Shelf {
    fn name(&self) -> &str {
        match self {
            Self::Open(entrant) => Named::name(entrant),
            Self::Closed(closed) => Named::name(closed),
        }
    }

    fn settle(&self) -> Result<()> {
        match self {
            Self::Open(entrant) => Named::settle(entrant),
            Self::Closed(_) => Ok(()),
        }
    }
}

fn shelves(cell: &mut Cell<'_>, files: &[usize], others: u64, other_bytes: usize, is_cold: bool) -> Result<Vec<Shelf>> {
    let room = room(files, others, other_bytes);
    let entrants = cell.open_all(|_| room, |entrant| fill(entrant, files, others, other_bytes))?;
    let peers = cell.peers();
    let reopen = |entrant: &Entrant| -> Option<Open> {
        let peer: Option<&&Peer> = peers.iter().find(|peer| peer.name == entrant.store.name());
        peer.and_then(|peer| peer.reopen())
    };
    let shelve = |entrant: Entrant| match reopen(&entrant) {
        Some(reopen) if is_cold => Shelf::Closed(entrant.close(reopen, room)),
        _ => Shelf::Open(entrant),
    };
    Ok(entrants.into_iter().map(shelve).collect())
}

fn room(files: &[usize], others: u64, other_bytes: usize) -> Room {
    let largest = files.iter().copied().max().unwrap_or(0);
    let bytes = files.iter().sum::<usize>() as u64 + others * other_bytes as u64;
    let entries = files.len() as u64 + others;
    Room {
        cap_bytes: (2 * bytes + SPARE_FILES * largest as u64).max(16 << 20),
        value_bytes: (bytes / entries.max(1)) as usize,
        value_bytes_max: largest,
        tier_bytes: 0,
    }
}

/// Puts the other entries first, then the files. The files have to be in the store then.
fn fill(entrant: &Entrant, files: &[usize], others: u64, other_bytes: usize) -> Result<()> {
    let store: &dyn Contender = entrant.store.as_ref();
    // This store reads the source itself.
    if store.name() == Plain::NAME {
        return Ok(());
    }
    for index in 0..others {
        store.put_one(&random::key(OTHERS_FIRST + index), &content(OTHERS_FIRST + index, other_bytes))?;
    }
    for (index, bytes) in files.iter().enumerate() {
        let (key, content) = (random::key(index as u64), content(index as u64, *bytes));
        store.put_one(&key, &content)?;
        if store.get_one(&key)?.is_none_or(|found| found != content) {
            let what = format!("{} doesn't keep a file of {bytes} bytes though there is room", store.name());
            return Err(Error::Invalid(what));
        }
    }
    Ok(())
}

/// Gives each store its turns at some work, and records the time of an operation.
fn turns(cell: &mut Cell<'_>, shelves: &mut Vec<Shelf>, reads: &Reads<'_>, case: &Case, measure: &str) -> Result<()> {
    cell.turns(shelves, |cell, shelf, repetition| {
        if reads.act == Act::FirstStore {
            cell.scratch().settle(cell.storage()?)?;
        }
        let is_cold = reads.duration.is_none();
        if is_cold {
            cell.scratch().forget(reads.source.root())?;
        }
        let lap = match shelf {
            Shelf::Open(entrant) => serve(entrant.store.as_ref(), reads)?,
            Shelf::Closed(closed) => {
                cell.scratch().forget(closed.path())?;
                serve(closed.open()?.as_ref(), reads)?
            }
        };
        cell.sample(case, shelf.name(), measure, repetition, lap.seconds_each())
    })
}

/// A plain read has no look-up, and always reads the source; only puts go to another directory.
fn serve(store: &dyn Contender, reads: &Reads<'_>) -> Result<ReadLap> {
    if store.name() == Plain::NAME && reads.act != Act::FirstStore {
        let plain = Reads { orders: reads.orders.clone(), act: Act::Get, ..*reads };
        return reads.source.serve_files(&plain);
    }
    store.serve_files(reads)
}
