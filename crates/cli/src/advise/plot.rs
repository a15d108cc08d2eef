//! The miss-ratio curve in a terminal: braille, two dots to a column and four to a row.

use std::fmt::Write as _;

use eyewall_server::units::size;

use super::estimate::Point;
use crate::output::{BYTES, OBJECTS};

const COLUMNS: usize = 60;
const ROWS: usize = 12;
const DOTS_WIDE: usize = COLUMNS * 2;
const DOTS_HIGH: usize = ROWS * 4;
/// A dotted curve sets one dot of this many.
const DOTTED: usize = 4;
/// The first Braille character; the others follow in the order of their dots' bits.
const BRAILLE: u32 = 0x2800;
/// The bits of the dots of a character, column by column from the top.
const BITS: [[u8; 4]; 2] = [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]];

type Letters = [[u8; COLUMNS]; ROWS];

/// The top of the axis: the worst miss ratio, rounded up to tenths.
pub(crate) fn top(points: &[Point]) -> f64 {
    let worst = points.iter().flat_map(misses).fold(0.0, f64::max);
    ((worst * 10.0).ceil() / 10.0).max(0.1)
}

/// The miss ratios of a point: objects, bytes.
pub(crate) fn misses(point: &Point) -> [f64; 2] {
    [1.0 - point.object_hits.ratio, 1.0 - point.byte_hits.ratio]
}

/// The horizontal place of a size, from 0 to 1: sizes double at equal steps.
pub(crate) fn across(points: &[Point], bytes: u64) -> f64 {
    let log = |bytes: u64| (bytes.max(1) as f64).ln();
    match points {
        [first, .., last] if last.size_bytes > first.size_bytes => {
            (log(bytes) - log(first.size_bytes)) / (log(last.size_bytes) - log(first.size_bytes))
        }
        _ => 0.0,
    }
}

/// The curve with its axes; empty with fewer than two points.
pub(crate) fn plot(points: &[Point]) -> String {
    let [first, .., last] = points else { return String::new() };
    let top = top(points);
    let (objects, bytes) = (draw(points, 0, top, false), draw(points, 1, top, true));
    let mut text = format!("misses   {OBJECTS}⠤⠤ of requests{OBJECTS:#}   {BYTES}⠄⠠ of bytes{BYTES:#}\n");
    for row in 0..ROWS {
        let label = match row {
            0 => format!("{:>4.0} %", top * 100.0),
            row if row == ROWS / 2 => format!("{:>4.0} %", top * 50.0),
            row if row == ROWS - 1 => "   0 %".to_owned(),
            _ => String::new(),
        };
        let mut line = format!("{label:>8} ┤");
        for column in 0..COLUMNS {
            push(&mut line, objects[row][column], bytes[row][column]);
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    let (left, right) = (size(first.size_bytes), size(last.size_bytes));
    let _ = writeln!(text, "{:>8} └{}", "", "─".repeat(COLUMNS));
    let _ = writeln!(text, "{:>10}{left}{right:>width$}", "", width = COLUMNS.saturating_sub(left.len()));
    text
}

fn push(line: &mut String, objects: u8, bytes: u8) {
    let letter = char::from_u32(BRAILLE + u32::from(objects | bytes)).unwrap_or(' ');
    let _ = match (objects, bytes) {
        (0, 0) => write!(line, " "),
        (0, _) => write!(line, "{BYTES}{letter}{BYTES:#}"),
        _ => write!(line, "{OBJECTS}{letter}{OBJECTS:#}"),
    };
}

fn draw(points: &[Point], which: usize, top: f64, is_dotted: bool) -> Letters {
    let mut letters = [[0; COLUMNS]; ROWS];
    let mut former: Option<usize> = None;
    for x in 0..DOTS_WIDE {
        let ratio = at(points, which, x as f64 / (DOTS_WIDE - 1) as f64);
        let y = ((1.0 - (ratio / top).clamp(0.0, 1.0)) * (DOTS_HIGH - 1) as f64).round() as usize;
        // A steep curve has no gaps.
        let from = match former.replace(y) {
            Some(former) if former < y => former + 1,
            Some(former) if former > y => former - 1,
            _ => y,
        };
        for y in from.min(y)..=y.max(from) {
            if !is_dotted || x % DOTTED == 0 {
                letters[y / 4][x / 2] |= BITS[x % 2][y % 4];
            }
        }
    }
    letters
}

/// The miss ratio at a place of the axis, interpolated between two points.
fn at(points: &[Point], which: usize, place: f64) -> f64 {
    let above = points.partition_point(|point| across(points, point.size_bytes) < place).clamp(1, points.len() - 1);
    let (low, high) = (&points[above - 1], &points[above]);
    let (left, right) = (across(points, low.size_bytes), across(points, high.size_bytes));
    let way = if right > left { (place - left) / (right - left) } else { 0.0 };
    misses(low)[which] + (misses(high)[which] - misses(low)[which]) * way.clamp(0.0, 1.0)
}
