//! The screen.

use std::time::Duration;

use eyewall_server::units::{count, counted, duration, size};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::super::draw::{bold, gauge, percent};
use super::view::{VERDICTS, View};

/// From this width on, the tables are in two columns.
const TWO_COLUMNS: u16 = 150;

/// Draws a view. `is_plain`: without colours.
pub(super) fn draw(frame: &mut Frame<'_>, view: &View, is_plain: bool) {
    let style = |colour| if is_plain { Style::new() } else { Style::new().fg(colour) };
    let figures = figures(view, style(Color::Green), style(Color::Red));
    let rows = figures.len() as u16 + 1;
    let [top, below] = Layout::vertical([Constraint::Length(rows), Constraint::Min(0)]).areas(frame.area());
    frame.render_widget(Paragraph::new(figures), top);
    let tables = [sites(view), origins(view, style(Color::Red)), slowest(view), missed(view), hottest(view)];
    for (area, table) in areas(below, &tables).into_iter().zip(tables) {
        frame.render_widget(Paragraph::new(table), area);
    }
}

/// Draws what there is before the first difference.
pub(super) fn waits(frame: &mut Frame<'_>) {
    frame.render_widget(Paragraph::new("The first figures come in a second.   q ends"), frame.area());
}

/// The places of the tables. Each gets rows in turn, as far as it has some to show.
fn areas(all: Rect, tables: &[Vec<Line<'static>>; 5]) -> Vec<Rect> {
    if all.width >= TWO_COLUMNS {
        let [left, right] = Layout::horizontal([Constraint::Percentage(50), Constraint::Min(0)]).spacing(2).areas(all);
        let of_left = stacked(left, &[tables[0].len(), tables[1].len()]);
        let of_right = stacked(right, &[tables[2].len(), tables[3].len(), tables[4].len()]);
        return [of_left, of_right].concat();
    }
    stacked(all, &tables.each_ref().map(Vec::len))
}

fn stacked(area: Rect, lengths: &[usize]) -> Vec<Rect> {
    let mut rows = vec![0; lengths.len()];
    // Blank lines between the tables, if each of them has some rows then.
    let gaps = lengths.len().saturating_sub(1);
    let gap = u16::from(usize::from(area.height) >= lengths.len() * 3 + gaps);
    let mut left = usize::from(area.height).saturating_sub(gaps * usize::from(gap));
    while left > 0 && rows.iter().zip(lengths).any(|(has, wants)| has < wants) {
        for (has, wants) in rows.iter_mut().zip(lengths) {
            if *has < *wants && left > 0 {
                *has += 1;
                left -= 1;
            }
        }
    }
    let constraints = rows.iter().map(|rows| Constraint::Length(*rows as u16));
    Layout::vertical(constraints).spacing(gap).split(area).to_vec()
}

fn figures(view: &View, good: Style, bad: Style) -> Vec<Line<'static>> {
    let words = |ratio: Option<f64>| format!("{} since its start", percent(ratio));
    let busy = format!(
        "{} a second, {}/s, {}",
        counted(view.requests_per_second.round() as u64, "request", "requests"),
        size(view.bytes_per_second as u64),
        counted(view.connections, "connection", "connections"),
    );
    let up = duration(Duration::from_secs(view.uptime_seconds));
    let mut lines = vec![
        Line::from(vec![bold(view.server.clone()), Span::raw(format!("   up {up}   q ends"))]),
        match view.warnings.first() {
            _ if view.is_gone => Line::styled("The server is gone; `top` waits for it.", bad),
            Some(warning) => Line::styled(warning.clone(), bad),
            None => Line::raw(busy),
        },
        gauge("hits", view.hit_ratio, &words(view.hit_ratio_of_run), good),
        gauge("spared", view.spared_ratio, &words(view.spared_ratio_of_run), good),
    ];
    if let Some(volume) = &view.volume {
        let part = volume.live_bytes as f64 / volume.data_bytes.max(1) as f64;
        let (live, data) = (size(volume.live_bytes), size(volume.data_bytes));
        let words = format!("{live} of {data}, {}", counted(volume.entries, "entry", "entries"));
        lines.push(gauge("data", Some(part), &words, good));
    }
    let heading = VERDICTS.iter().map(|verdict| format!("{:>9}", short(verdict))).collect::<Vec<_>>().concat();
    let rates = VERDICTS.iter().map(|verdict| format!("{:>9}", rate(view.per_second[verdict])));
    let rates = rates.collect::<Vec<_>>().concat();
    lines.push(Line::from(bold(format!("{:<10}{heading}", ""))));
    lines.push(Line::from(format!("{:<10}{rates}", "a second")));
    lines
}

fn short(verdict: &str) -> String {
    if verdict == "revalidated" { "REVALID.".to_owned() } else { verdict.to_uppercase() }
}

/// A rate; small ones have a digit behind the point.
fn rate(rate: f64) -> String {
    if rate > 0.0 && rate < 10.0 { format!("{rate:.1}") } else { count(rate.round() as u64) }
}

/// `140 us`, `1.9 ms`, `12.0 s`.
fn span(seconds: f64) -> String {
    match seconds {
        ..0.001 => format!("{:.0} us", seconds * 1e6),
        ..1.0 => format!("{:.1} ms", seconds * 1e3),
        _ => format!("{seconds:.1} s"),
    }
}

fn sites(view: &View) -> Vec<Line<'static>> {
    let heading =
        format!("{:>9} {:>8} {:>8} {:>10} {:>8}  {}", "REQ/S", "HITS", "SPARED", "BYTES/S", "ERRORS/S", "SITE");
    let lines = view.sites.iter().map(|site| {
        Line::from(format!(
            "{:>9} {:>8} {:>8} {:>10} {:>8}  {}",
            rate(site.requests_per_second),
            percent(site.hit_ratio),
            percent(site.spared_ratio),
            size(site.bytes_per_second as u64),
            rate(site.errors_per_second),
            if site.name == "-" { "(no site has their host)" } else { &site.name }
        ))
    });
    std::iter::once(Line::from(bold(heading))).chain(lines).collect()
}

fn origins(view: &View, bad: Style) -> Vec<Line<'static>> {
    let heading = format!("{:>9} {:>8} {:>8} {:>10} {:>8}  {}", "REQ/S", "MEDIAN", "P95", "OPEN", "ERRORS/S", "ORIGIN");
    let lines = view.origins.iter().map(|origin| {
        let [median, p95] = origin.quantiles.map(|seconds| seconds.map_or_else(|| "-".to_owned(), span));
        let state = match origin.is_up {
            Some(true) => "",
            Some(false) => "  down",
            None => "  no longer configured",
        };
        let words = format!(
            "{:>9} {median:>8} {p95:>8} {:>10} {:>8}  {}{state}",
            rate(origin.requests_per_second),
            count(origin.open),
            rate(origin.errors_per_second),
            origin.url
        );
        if origin.is_up == Some(false) { Line::styled(words, bad) } else { Line::from(words) }
    });
    std::iter::once(Line::from(bold(heading))).chain(lines).collect()
}

fn slowest(view: &View) -> Vec<Line<'static>> {
    let heading = format!("{:>9} {:>8} {:>8}  {}", "REQUESTS", "MEDIAN", "P95", "SLOWEST");
    let lines = view.slowest.iter().map(|slow| {
        let [median, p95] = slow.quantiles.map(span);
        Line::from(format!("{:>9} {median:>8} {p95:>8}  {}", count(slow.requests), slow.path))
    });
    std::iter::once(Line::from(bold(heading))).chain(lines).collect()
}

fn missed(view: &View) -> Vec<Line<'static>> {
    let heading = format!("{:>9}  {}", "MISSES", "MOST MISSED");
    let lines = view.missed.iter().map(|missed| Line::from(format!("{:>9}  {}", count(missed.count), missed.key)));
    std::iter::once(Line::from(bold(heading))).chain(lines).collect()
}

fn hottest(view: &View) -> Vec<Line<'static>> {
    let heading = format!("{:>9} {:>8}  {}", "HOT", "SIZE", "KEY");
    let lines =
        view.hottest.iter().map(|hot| Line::from(format!("{:>9} {:>8}  {}", hot.frequency, size(hot.bytes), hot.key)));
    std::iter::once(Line::from(bold(heading))).chain(lines).collect()
}

#[cfg(test)]
mod tests {
    use ratatui::style::Color;

    use super::super::super::page;
    use super::*;
    use crate::expected::expect;

    #[test]
    fn the_screen_is_as_expected() {
        let view = View::example();
        expect("top-server-80x24.txt", &page(|frame| draw(frame, &view, true), 80, 24));
        expect("top-server-160x30.txt", &page(|frame| draw(frame, &view, true), 160, 30));
        page(|frame| draw(frame, &view, true), 1, 1);
    }

    #[test]
    fn a_screen_without_colours_has_none() {
        for (is_plain, wanted) in [(true, false), (false, true)] {
            let Ok(mut terminal) = ratatui::Terminal::new(ratatui::backend::TestBackend::new(80, 24));
            let Ok(_) = terminal.draw(|frame| draw(frame, &View::example(), is_plain));
            let cells = terminal.backend().buffer().content();
            assert_eq!(cells.iter().any(|cell| cell.fg != Color::Reset), wanted);
        }
    }

    #[test]
    fn a_server_that_is_gone_is_told() {
        let view = View { is_gone: true, ..View::example() };
        assert!(page(|frame| draw(frame, &view, true), 80, 24).contains("The server is gone"));
    }
}
