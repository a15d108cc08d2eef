//! The miss-ratio curve as an image.

use std::fmt::Write as _;

use eyewall_server::units::size;

use super::advice::Advice;
use super::estimate::{Estimate, Point};
use super::plot::{across, misses, top};
use crate::svg::Image;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 696.0;
const TOP: f64 = 64.0;
const BOTTOM: f64 = 352.0;
/// The width of the mark's text in large letters.
const MARK_WIDTH: f64 = 230.0;
/// How many labels fit below the axis.
const LABELS_MAX: usize = 8;

const LIGHT: &str = "--grid:#d8dee4;--objects:#0a5ea8;--bytes:#a44a00";
const DARK: &str = "--grid:#30363d;--objects:#6cb6ff;--bytes:#f0a35e";
const STYLE: &str = "\
.grid{stroke:var(--grid)}.mark{stroke:var(--ink);stroke-dasharray:2 4}\
.objects{stroke:var(--objects)}.bytes{stroke:var(--bytes);stroke-dasharray:6 4}.objects,.bytes{fill:none;stroke-width:2.5}\
.band{fill:var(--objects);opacity:.18}.dot{fill:var(--objects)}";

/// The image, a whole file.
pub(crate) fn svg(advice: &Advice) -> String {
    let image = Image {
        width: WIDTH,
        height: HEIGHT,
        title: &format!("Miss ratio by size of the volume: {}", advice.logs.join(", ")),
        description: &description(advice),
        light: LIGHT,
        dark: DARK,
        style: STYLE,
    };
    let mut text = image.head();
    let _ = writeln!(text, "<text class=\"title\" x=\"{LEFT}\" y=\"28\">Misses by size of the volume</text>");
    legend(&mut text);
    let points = &advice.sizes;
    let highest = top(points);
    axes(&mut text, points, highest);
    mark(&mut text, points, advice.recommended_bytes);
    if points.len() > 1 {
        band(&mut text, points, highest);
        line(&mut text, points, highest, 1, "bytes");
        line(&mut text, points, highest, 0, "objects");
    }
    for point in points {
        let (x, y) = (x(points, point.size_bytes), y(misses(point)[0], highest));
        let _ = writeln!(
            text,
            "<circle class=\"dot\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\"><title>{}: {:.1} % of requests miss, {:.1} % of \
             bytes</title></circle>",
            size(point.size_bytes),
            misses(point)[0] * 100.0,
            misses(point)[1] * 100.0,
        );
    }
    text.push_str("</svg>\n");
    text
}

/// What the image shows, in a sentence or two.
fn description(advice: &Advice) -> String {
    let figure = |estimate: Estimate| format!("{:.1} %", (1.0 - estimate.ratio) * 100.0);
    let ends = match advice.sizes.as_slice() {
        [first, .., last] => format!(
            "From {} to {} the share of requests that miss goes from {} to {}. ",
            size(first.size_bytes),
            size(last.size_bytes),
            figure(first.object_hits),
            figure(last.object_hits)
        ),
        _ => String::new(),
    };
    format!("{ends}Recommended is {}: {}.", size(advice.recommended_bytes), advice.rule)
}

fn legend(text: &mut String) {
    for (x, class, words) in [(LEFT, "objects", "of requests"), (LEFT + 180.0, "bytes", "of bytes")] {
        let (end, words_at) = (x + 28.0, x + 36.0);
        let _ = writeln!(
            text,
            "<path class=\"{class}\" d=\"M{x} 46H{end}\"/><text x=\"{words_at}\" y=\"50\">{words}</text>"
        );
    }
}

fn axes(text: &mut String, points: &[Point], highest: f64) {
    let step = if highest > 0.5 { 0.2 } else { 0.1 };
    for ratio in (0..=10).map(|number| f64::from(number) * step).take_while(|ratio| *ratio < highest + 1e-9) {
        let (y, label_y) = (y(ratio, highest), y(ratio, highest) + 4.0);
        let _ = writeln!(
            text,
            "<path class=\"grid\" d=\"M{LEFT} {y:.1}H{RIGHT}\"/><text x=\"{:.1}\" y=\"{label_y:.1}\" \
             text-anchor=\"end\">{:.0} %</text>",
            LEFT - 8.0,
            ratio * 100.0,
        );
    }
    // Powers of two read best; where they are too many, every second, third, and so on.
    let powers: Vec<&Point> = points.iter().filter(|point| point.size_bytes.is_power_of_two()).collect();
    let labelled = if powers.len() < 2 { points.iter().collect() } else { powers };
    for (number, point) in labelled.iter().step_by(labelled.len().div_ceil(LABELS_MAX).max(1)).enumerate() {
        let (x, class) = (x(points, point.size_bytes), if number % 2 == 1 { " class=\"wide\"" } else { "" });
        let _ = writeln!(
            text,
            "<text{class} x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            BOTTOM + 22.0,
            size(point.size_bytes)
        );
    }
    let middle = f64::midpoint(LEFT, RIGHT);
    let _ = writeln!(
        text,
        "<text x=\"{middle}\" y=\"{:.1}\" text-anchor=\"middle\">Size of the volume</text>",
        BOTTOM + 48.0
    );
}

/// The mark of the recommended size. Its name is to the right, where the curves are low, if there is room.
fn mark(text: &mut String, points: &[Point], recommended: u64) {
    if !points.iter().any(|point| point.size_bytes == recommended) {
        return;
    }
    let x = x(points, recommended);
    let (words_at, anchor) = if x > RIGHT - MARK_WIDTH { (x - 8.0, "end") } else { (x + 8.0, "start") };
    let _ = writeln!(
        text,
        "<path class=\"mark\" d=\"M{x:.1} {TOP}V{BOTTOM}\"/><text x=\"{words_at:.1}\" y=\"{:.1}\" \
         text-anchor=\"{anchor}\">{} recommended</text>",
        TOP + 18.0,
        size(recommended)
    );
}

/// The band of two standard errors to each side, if there are any.
fn band(text: &mut String, points: &[Point], highest: f64) {
    if points.iter().all(|point| point.object_hits.error <= 0.0) {
        return;
    }
    let edge = |point: &Point, side: f64| {
        let ratio = misses(point)[0] + side * point.object_hits.error;
        format!("{:.1},{:.1} ", x(points, point.size_bytes), y(ratio.clamp(0.0, highest), highest))
    };
    let there = points.iter().map(|point| edge(point, 2.0));
    let back = points.iter().rev().map(|point| edge(point, -2.0));
    let edges: String = there.chain(back).collect();
    let _ = writeln!(text, "<polygon class=\"band\" points=\"{}\"/>", edges.trim_end());
}

fn line(text: &mut String, points: &[Point], highest: f64, which: usize, class: &str) {
    let place = |point: &Point| (x(points, point.size_bytes), y(misses(point)[which], highest));
    let places: Vec<String> = points.iter().map(place).map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    let _ = writeln!(text, "<polyline class=\"{class}\" points=\"{}\"/>", places.join(" "));
}

fn x(points: &[Point], bytes: u64) -> f64 {
    LEFT + 12.0 + across(points, bytes) * (RIGHT - LEFT - 24.0)
}

fn y(ratio: f64, highest: f64) -> f64 {
    BOTTOM - ratio / highest * (BOTTOM - TOP)
}
