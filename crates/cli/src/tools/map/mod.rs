//! `eyewall map`: a picture of the rings, in a terminal or as an image.

mod picture;
mod svg;

use std::collections::BTreeMap;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::Path;

use anstream::{AutoStream, ColorChoice};
use eyewall::{Cache, Extent, ExtentKind, RingKind};
use ratatui::crossterm::terminal;
use serde::Serialize;

use crate::args::Map;
use crate::{Error, Outcome, output, volume};

/// The width of a terminal that doesn't tell its own.
const COLUMNS: u16 = 80;
/// Cells of a ring in an image.
const SVG_CELLS: usize = 320;

/// The content of a ring.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Ring {
    stripe: u64,
    which: RingKind,
    bytes: u64,
    /// The kind of each of its cells, which are equal parts of the ring.
    cells: Vec<ExtentKind>,
}

/// In the order of the legend; the last kind is not drawn.
const KINDS: [(ExtentKind, &str); 7] = [
    (ExtentKind::Live, "live"),
    (ExtentKind::Pinned, "held"),
    (ExtentKind::Dead, "dead"),
    (ExtentKind::Filler, "filler"),
    (ExtentKind::Unreadable, "unreadable"),
    (ExtentKind::Index, "index"),
    (ExtentKind::Free, "free"),
];

/// Bytes of each kind.
type Totals = BTreeMap<&'static str, u64>;

#[derive(Serialize)]
struct Document {
    path: String,
    rings: Vec<RingDocument>,
}

#[derive(Serialize)]
struct RingDocument {
    stripe: u64,
    ring: RingKind,
    bytes: u64,
    extents: Vec<ExtentDocument>,
}

#[derive(Serialize)]
struct ExtentDocument {
    start: u64,
    bytes: u64,
    kind: ExtentKind,
}

pub(crate) fn run(path: &Path, map: &Map) -> Result<Outcome, Error> {
    let cache = volume::open_to_read(path)?;
    if map.json {
        output::json_to_stdout(&document(path, &cache)?)?;
    }
    if let Some(file) = &map.svg {
        let (rings, totals) = rings(&cache, SVG_CELLS)?;
        let failed = |source| Error::File { path: file.clone(), source };
        std::fs::write(file, svg::svg(&path.display().to_string(), &rings, &totals)).map_err(failed)?;
    }
    if !map.json && map.svg.is_none() {
        let has_colours = AutoStream::choice(&io::stdout()) != ColorChoice::Never;
        // With colours, one column shows two cells.
        let columns = picture::columns(width());
        let (rings, totals) = rings(&cache, if has_colours { columns * 2 } else { columns })?;
        let text = picture::picture(&path.display().to_string(), &rings, &totals, has_colours);
        output::text_to_stdout(|stdout| stdout.write_all(text.as_bytes()))?;
    }
    Ok(Outcome::Done)
}

fn width() -> usize {
    let size = if io::stdout().is_terminal() { terminal::size().ok() } else { None };
    size.map_or(COLUMNS, |(columns, _)| columns).into()
}

fn document(path: &Path, cache: &Cache) -> Result<Document, Error> {
    let mut rings: Vec<RingDocument> = Vec::new();
    cache.extents(|extents| {
        for ring in by_ring(extents) {
            rings.push(RingDocument {
                stripe: ring[0].stripe,
                ring: ring[0].ring,
                bytes: ring.iter().map(|extent| extent.bytes).sum(),
                extents: ring
                    .iter()
                    .map(|extent| ExtentDocument { start: extent.start, bytes: extent.bytes, kind: extent.kind })
                    .collect(),
            });
        }
    })?;
    Ok(Document { path: path.display().to_string(), rings })
}

fn by_ring(extents: &[Extent]) -> impl Iterator<Item = &[Extent]> {
    extents.chunk_by(|one, next| one.ring == next.ring)
}

fn rings(cache: &Cache, cells: usize) -> Result<(Vec<Ring>, Totals), Error> {
    let (mut rings, mut totals) = (Vec::new(), Totals::new());
    cache.extents(|extents| {
        rings.extend(by_ring(extents).map(|extents| ring(extents, cells)));
        for extent in extents {
            *totals.entry(name(extent.kind)).or_default() += extent.bytes;
        }
    })?;
    Ok((rings, totals))
}

fn name(kind: ExtentKind) -> &'static str {
    KINDS.iter().find(|(known, _)| *known == kind).map_or("unknown", |(_, name)| name)
}

/// The kind of a cell: a rare kind that matters if the cell has any of it, otherwise the kind of most of its bytes.
fn ring(extents: &[Extent], cells: usize) -> Ring {
    let bytes: u64 = extents.iter().map(|extent| extent.bytes).sum();
    let mut of = vec![[0_u64; KINDS.len()]; cells];
    // A cell's edges, as offsets that are exact for a ring of any size.
    let edge = |cell: usize| (u128::from(bytes) * cell as u128 / cells as u128) as u64;
    for extent in extents {
        let kind = KINDS.iter().position(|(kind, _)| *kind == extent.kind).unwrap_or(KINDS.len() - 1);
        let end = extent.start + extent.bytes;
        let first = (u128::from(extent.start) * cells as u128 / u128::from(bytes.max(1))) as usize;
        for (cell, bytes_of) in of.iter_mut().enumerate().skip(first).take_while(|(cell, _)| edge(*cell) < end) {
            bytes_of[kind] += end.min(edge(cell + 1)).saturating_sub(extent.start.max(edge(cell)));
        }
    }
    let kind_of = |bytes: &[u64; KINDS.len()]| {
        let (pinned, unreadable) = (bytes[1], bytes[4]);
        let most = (0..KINDS.len()).rev().max_by_key(|kind| bytes[*kind]).unwrap_or(KINDS.len() - 1);
        KINDS[if pinned > 0 {
            1
        } else if unreadable > 0 {
            4
        } else {
            most
        }]
        .0
    };
    Ring { stripe: extents[0].stripe, which: extents[0].ring, bytes, cells: of.iter().map(kind_of).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expected::expect;

    fn extent(start: u64, bytes: u64, kind: ExtentKind) -> Extent {
        Extent { stripe: 0, ring: RingKind::Main, start, bytes, kind }
    }

    /// A ring of 16 KiB: half of it live, a little held, some of each other kind.
    fn some() -> Vec<Extent> {
        vec![
            extent(0, 8000, ExtentKind::Live),
            extent(8000, 64, ExtentKind::Pinned),
            extent(8064, 2000, ExtentKind::Dead),
            extent(10064, 1000, ExtentKind::Filler),
            extent(11064, 1000, ExtentKind::Unreadable),
            extent(12064, 2256, ExtentKind::Free),
            extent(14320, 2064, ExtentKind::Index),
        ]
    }

    fn totals() -> Totals {
        some().iter().map(|extent| (name(extent.kind), extent.bytes)).collect()
    }

    #[test]
    fn a_cell_has_the_kind_of_most_bytes_and_held_bytes_always_show() {
        let ring = ring(&some(), 8);
        let kinds: Vec<_> = ring.cells.iter().map(|kind| name(*kind)).collect();
        assert_eq!(kinds, ["live", "live", "live", "held", "dead", "unreadable", "free", "index"]);
        assert_eq!(ring.bytes, 16384);
    }

    #[test]
    fn the_picture_is_as_expected() {
        let rings = |cells| vec![ring(&some(), cells)];
        let plain = picture::picture("site.eye", &rings(picture::columns(80)), &totals(), false);
        expect("map.txt", &anstream::adapter::strip_str(&plain).to_string());
        let coloured = picture::picture("site.eye", &rings(2 * picture::columns(60)), &totals(), true);
        expect("map-colours.txt", &coloured);
        let plain = anstream::adapter::strip_str(&coloured).to_string();
        assert!(plain.lines().all(|line| line.chars().count() <= 60), "{plain}");
        expect("map.svg", &svg::svg("site.eye", &rings(SVG_CELLS), &totals()));
    }
}
