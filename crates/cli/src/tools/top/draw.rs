//! The screen.

use std::time::Duration;

use eyewall_server::units::{count, counted, duration, size};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::probe::Latency;
use super::view::View;
use crate::tools::bars::bar;

const BAR_CELLS: usize = 30;
/// From this width on, hot keys and processes are side by side.
const WIDE: u16 = 110;
/// How many processes are shown below the hot keys.
const PROCESSES_MAX: u16 = 6;

/// Draws a view. `is_plain`: without colours.
pub(super) fn draw(frame: &mut Frame<'_>, view: &View, is_plain: bool) {
    let good = if is_plain { Style::new() } else { Style::new().fg(Color::Green) };
    let figures = figures(view, good);
    let rows = figures.len() as u16 + 1;
    let [top, below] = Layout::vertical([Constraint::Length(rows), Constraint::Min(0)]).areas(frame.area());
    frame.render_widget(Paragraph::new(figures), top);
    let [hot, processes] = if top.width >= WIDE {
        Layout::horizontal([Constraint::Percentage(55), Constraint::Min(0)]).areas(below)
    } else {
        let shown = (view.processes.len() as u16).min(PROCESSES_MAX) + 1;
        Layout::vertical([Constraint::Min(0), Constraint::Length(shown)]).spacing(1).areas(below)
    };
    hot_keys(frame, hot, view);
    show_processes(frame, processes, view);
}

pub(super) fn bold(text: impl Into<String>) -> Span<'static> {
    Span::styled(text.into(), Style::new().add_modifier(Modifier::BOLD))
}

pub(super) fn percent(ratio: Option<f64>) -> String {
    ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{:.1} %", ratio * 100.0))
}

/// A line with a bar.
pub(super) fn gauge(name: &str, ratio: Option<f64>, words: &str, good: Style) -> Line<'static> {
    let part = ratio.map_or(0, |ratio| (ratio * 1e9) as u64);
    Line::from(vec![
        Span::raw(format!("{name:<8} ")),
        Span::styled(format!("{:<BAR_CELLS$}", bar(part, 1_000_000_000, BAR_CELLS)), good),
        Span::raw(format!(" {:>7}   {words}", percent(ratio))),
    ])
}

fn figures(view: &View, good: Style) -> Vec<Line<'static>> {
    let share = |part: u64, whole: u64| Some(part as f64 / whole.max(1) as f64);
    let rates = view.per_second;
    let rate = |rate: f64| format!("{:>11}", count(rate.round() as u64));
    vec![
        Line::from(vec![
            bold(view.path.clone()),
            Span::raw(format!(
                "   {}, {}, {}   for {}   q ends",
                size(view.size_bytes),
                counted(view.entries, "entry", "entries"),
                counted(view.pins, "pin", "pins"),
                duration(Duration::from_secs(view.seconds as u64)),
            )),
        ]),
        Line::default(),
        gauge(
            "data",
            share(view.live_bytes, view.data_bytes),
            &format!("{} of {}", size(view.live_bytes), size(view.data_bytes)),
            good,
        ),
        gauge(
            "index",
            share(view.index_live, view.index_slots),
            &format!("{} of {} slots", count(view.index_live), count(view.index_slots)),
            good,
        ),
        gauge("hits", view.hit_ratio, &format!("{} over the run", percent(view.hit_ratio_of_run)), good),
        Line::default(),
        Line::from(bold(format!(
            "{:<10}{:>11}{:>11}{:>11}{:>11}{:>11}",
            "", "HITS", "MISSES", "PUTS", "REMOVES", "EVICTIONS"
        ))),
        Line::from(format!(
            "{:<10}{}{}{}{}{}",
            "a second",
            rate(rates.hits),
            rate(rates.misses),
            rate(rates.puts),
            rate(rates.removes),
            rate(rates.evictions)
        )),
        Line::from(format!(
            "{:<10}{} evictions for want of a slot; index: {}{}",
            "",
            count(rates.slot_evictions.round() as u64),
            counted(rates.index_steps.round() as u64, "step", "steps"),
            match view.index_slots_wanted {
                wanted if wanted > view.index_slots => ", growing",
                wanted if wanted < view.index_slots => ", shrinking",
                _ => "",
            }
        )),
        Line::default(),
        latency("get", view.get),
        latency("put", view.put),
    ]
}

fn latency(name: &str, latency: Option<Latency>) -> Line<'static> {
    let words = match latency {
        None => "not measured".to_owned(),
        Some(Latency { probes, median_ns, p99_ns, max_ns }) => {
            format!("{} median, {} p99, {} max of {probes} probes", span(median_ns), span(p99_ns), span(max_ns))
        }
    };
    Line::from(format!("{name:<8} {words}"))
}

/// `140 ns`, `1.9 us`, `12.0 ms`.
fn span(nanoseconds: u64) -> String {
    match nanoseconds {
        0..1000 => format!("{nanoseconds} ns"),
        1000..1_000_000 => format!("{:.1} us", nanoseconds as f64 / 1e3),
        _ => format!("{:.1} ms", nanoseconds as f64 / 1e6),
    }
}

fn hot_keys(frame: &mut Frame<'_>, area: Rect, view: &View) {
    let heading = Line::from(bold(format!("{:>4}  {:>9}  {}", "HOT", "SIZE", "KEY")));
    let lines = view
        .hot
        .iter()
        .map(|hot| Line::from(format!("{:>4}  {:>9}  {}", hot.frequency, size(hot.value_bytes), hot.key)));
    frame.render_widget(Paragraph::new(std::iter::once(heading).chain(lines).collect::<Vec<_>>()), area);
}

fn show_processes(frame: &mut Frame<'_>, area: Rect, view: &View) {
    let heading =
        format!("{:>8} {:>9} {:>7} {:>5} {:>9} {:>9}", "PROCESS", "FOR", "THREADS", "PINS", "HITS/S", "MISSES/S");
    let lines = view.processes.iter().map(|process| {
        Line::from(format!(
            "{:>8} {:>9} {:>7} {:>5} {:>9} {:>9}{}",
            process.pid,
            duration(Duration::from_secs(process.since_seconds)),
            process.threads,
            process.pins,
            count(process.hits_per_second.round() as u64),
            count(process.misses_per_second.round() as u64),
            if process.is_this { "  this one" } else { "" },
        ))
    });
    frame.render_widget(
        Paragraph::new(std::iter::once(Line::from(bold(heading))).chain(lines).collect::<Vec<_>>()),
        area,
    );
}
