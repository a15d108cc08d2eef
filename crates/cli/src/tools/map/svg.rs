//! The rings as an image.

use std::fmt::Write as _;

use eyewall::RingKind;
use eyewall_server::units::{counted, size};

use super::{KINDS, Ring, Totals, name};
use crate::svg::{Image, escaped};

const WIDTH: f64 = 800.0;
const LEFT: f64 = 136.0;
const RIGHT: f64 = 784.0;
const TOP: f64 = 84.0;
const ROW: f64 = 22.0;
const BAR: f64 = 16.0;
const LEGEND_STEP: f64 = 138.0;

const LIGHT: &str =
    "--live:#1a7f37;--held:#8250df;--dead:#d4a72c;--filler:#0969da;--unreadable:#cf222e;--index:#1b7c83;--free:#d8dee4";
const DARK: &str =
    "--live:#3fb950;--held:#bc8cff;--dead:#bb8009;--filler:#58a6ff;--unreadable:#ff7b72;--index:#39c5cf;--free:#30363d";
const STYLE: &str = "\
.live{fill:var(--live)}.held{fill:var(--held)}.dead{fill:var(--dead)}.filler{fill:var(--filler)}\
.unreadable{fill:var(--unreadable)}.index{fill:var(--index)}.free{fill:var(--free)}";

/// The image, a whole file.
pub(super) fn svg(path: &str, rings: &[Ring], totals: &Totals) -> String {
    let title = format!("Use of the bytes in {path}");
    let image = Image {
        width: WIDTH,
        height: TOP + ROW * rings.len() as f64 + 12.0,
        title: &title,
        description: &description(rings, totals),
        light: LIGHT,
        dark: DARK,
        style: STYLE,
    };
    let mut text = image.head();
    let _ = writeln!(text, "<text class=\"title\" x=\"16\" y=\"28\">{}</text>", escaped(&title));
    for (number, (_, name)) in KINDS.iter().enumerate() {
        let x = 16.0 + LEGEND_STEP * number as f64;
        let _ = writeln!(
            text,
            "<rect class=\"{name}\" x=\"{x}\" y=\"46\" width=\"12\" height=\"12\"/><text x=\"{}\" y=\"57\">{name}</text>",
            x + 18.0
        );
    }
    for (number, ring) in rings.iter().enumerate() {
        row(&mut text, ring, TOP + ROW * number as f64);
    }
    text.push_str("</svg>\n");
    text
}

/// What the image shows, in a sentence.
fn description(rings: &[Ring], totals: &Totals) -> String {
    let parts = KINDS.iter().filter_map(|(_, name)| totals.get(name).map(|bytes| format!("{} {name}", size(*bytes))));
    format!("{}: {}.", counted(rings.len() as u64, "ring", "rings"), parts.collect::<Vec<_>>().join(", "))
}

fn row(text: &mut String, ring: &Ring, y: f64) {
    let kind = if ring.which == RingKind::Small { "small" } else { "main" };
    let _ = writeln!(
        text,
        "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{} {kind}<tspan class=\"wide\">, {}</tspan></text>",
        LEFT - 8.0,
        y + BAR - 3.0,
        ring.stripe,
        size(ring.bytes)
    );
    let cell = (RIGHT - LEFT) / ring.cells.len().max(1) as f64;
    let mut x = LEFT;
    for same in ring.cells.chunk_by(|one, next| one == next) {
        let width = cell * same.len() as f64;
        let _ = writeln!(
            text,
            "<rect class=\"{}\" x=\"{x:.2}\" y=\"{y}\" width=\"{width:.2}\" height=\"{BAR}\"/>",
            name(same[0])
        );
        x += width;
    }
}
