//! The rings in a terminal, one row each.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Color, Style};
use eyewall::{ExtentKind, RingKind};
use eyewall_server::units::size;

use super::{KINDS, Ring, Totals};
use crate::output::HEADING;

/// Stripe, name and size of a ring, before its row.
const LABEL: usize = 21;
const COLUMNS_MIN: usize = 10;

/// The columns of a ring in a terminal of this width.
pub(super) fn columns(width: usize) -> usize {
    width.saturating_sub(LABEL).max(COLUMNS_MIN)
}

/// The sign of a kind, where there are no colours.
fn sign(kind: ExtentKind) -> char {
    match kind {
        ExtentKind::Live => '█',
        ExtentKind::Pinned => '#',
        ExtentKind::Dead => '░',
        ExtentKind::Filler => '-',
        ExtentKind::Unreadable => '!',
        ExtentKind::Index => '=',
        _ => '·',
    }
}

fn colour(kind: ExtentKind) -> Color {
    let colour = match kind {
        ExtentKind::Live => AnsiColor::Green,
        ExtentKind::Pinned => AnsiColor::Magenta,
        ExtentKind::Dead => AnsiColor::Yellow,
        ExtentKind::Filler => AnsiColor::Blue,
        ExtentKind::Unreadable => AnsiColor::Red,
        ExtentKind::Index => AnsiColor::Cyan,
        _ => AnsiColor::BrightBlack,
    };
    colour.into()
}

/// The picture. With colours each column shows two cells.
pub(super) fn picture(path: &str, rings: &[Ring], totals: &Totals, has_colours: bool) -> String {
    let mut text = format!("{HEADING}{path}{HEADING:#}\n");
    for ring in rings {
        let name = if ring.which == RingKind::Small { "small" } else { "main" };
        let number = if ring.which == RingKind::Small { ring.stripe.to_string() } else { String::new() };
        let _ = write!(text, "{number:>3} {name:<5} {:>9}  ", size(ring.bytes));
        if has_colours {
            for pair in ring.cells.chunks(2) {
                let style = Style::new().fg_color(Some(colour(pair[0]))).bg_color(Some(colour(pair[pair.len() - 1])));
                let _ = write!(text, "{style}▌{style:#}");
            }
        } else {
            text.extend(ring.cells.iter().map(|kind| sign(*kind)));
        }
        text.push('\n');
    }
    legend(&mut text, totals, has_colours);
    text
}

/// The legend: each kind with its bytes, two kinds per line.
fn legend(text: &mut String, totals: &Totals, has_colours: bool) {
    let shown: Vec<_> = KINDS.iter().filter(|(_, name)| totals.get(name).is_some_and(|bytes| *bytes > 0)).collect();
    for line in shown.chunks(2) {
        text.push_str("   ");
        for (kind, name) in line {
            let style = Style::new().fg_color(Some(colour(*kind)));
            let sign = if has_colours { '█' } else { sign(*kind) };
            let bytes = totals.get(name).copied().unwrap_or_default();
            let _ = write!(text, " {style}{sign}{style:#} {name:<10} {:>9}  ", size(bytes));
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
}
