//! `eyewall top`: the state of a volume, or of a server, live.
//!
//! | file | what it holds |
//! |---|---|
//! | `view.rs` | the figures: the difference between two updates |
//! | `probe.rs` | measures how long gets and puts take |
//! | `draw.rs` | the screen |
//! | `wake.rs` | keys and signals |
//! | `of_server/` | the same of a running server |

mod draw;
pub(crate) mod of_server;
mod probe;
mod view;
mod wake;

use std::io::{self, IsTerminal as _, Write as _};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread;
use std::time::Instant;

use eyewall::Cache;
use ratatui::{DefaultTerminal, Frame, Terminal, backend::TestBackend};

use crate::args::Top;
use crate::{Error, Outcome, output, volume};
use view::Looker;
use wake::Wake;

/// The size of the page where there is no terminal.
const COLUMNS: u16 = 80;
const ROWS: u16 = 24;

pub(crate) fn run(path: &Path, top: &Top) -> Result<Outcome, Error> {
    let cache = open(path)?;
    let mut looker = Looker::new(path, &cache, top.probe_puts)?;
    if top.json {
        loop {
            thread::sleep(top.interval);
            output::json_to_stdout(&looker.look()?)?;
            if top.once {
                return Ok(Outcome::Done);
            }
        }
    }
    if top.once || !io::stdout().is_terminal() {
        thread::sleep(top.interval);
        let view = looker.look()?;
        let page = page(|frame| draw::draw(frame, &view, true), COLUMNS, ROWS);
        output::text_to_stdout(|stdout| stdout.write_all(page.as_bytes()))?;
        return Ok(Outcome::Done);
    }
    let (_, wakes) = wake::listen().map_err(Error::Watch)?;
    // A panic also restores the terminal, before its message is written.
    let mut terminal = ratatui::try_init().map_err(Error::Output)?;
    let ended = watch(&mut terminal, &mut looker, &wakes, top);
    restore(terminal, ended)
}

/// Gives the terminal back.
fn restore(terminal: DefaultTerminal, ended: Result<(), Error>) -> Result<Outcome, Error> {
    if ratatui::try_restore().is_err() {
        // The terminal is gone, whether a signal, a key or the screen reported it first. Its destructor would write
        // that to standard error, which is gone, too, and would panic.
        std::mem::forget(terminal);
        return Ok(Outcome::Done);
    }
    ended.map(|()| Outcome::Done)
}

/// Whether the user wants no colours.
fn is_plain() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|word| !word.is_empty())
}

/// A process that joins an unused volume may empty it, if it is a copy; `top` then opens it for reading only. If other
/// processes use the volume, `top` joins them, so that its probes take the same path as their gets.
fn open(path: &Path) -> Result<Cache, Error> {
    let look = volume::open_to_read(path)?;
    if look.stats()?.processes == 0 {
        return Ok(look);
    }
    Ok(volume::open(path).unwrap_or(look))
}

fn watch(
    terminal: &mut DefaultTerminal,
    looker: &mut Looker<'_>,
    wakes: &Receiver<Wake>,
    top: &Top,
) -> Result<(), Error> {
    let is_plain = is_plain();
    loop {
        let view = looker.look()?;
        let next = Instant::now() + top.interval;
        loop {
            terminal.draw(|frame| draw::draw(frame, &view, is_plain)).map_err(Error::Output)?;
            match wakes.recv_timeout(next.saturating_duration_since(Instant::now())) {
                Ok(Wake::Draw) => {}
                Ok(Wake::Failed(error)) => return Err(Error::Watch(error)),
                // Both threads that could wake this one have ended.
                Ok(Wake::End) | Err(RecvTimeoutError::Disconnected) => return Ok(()),
                Err(RecvTimeoutError::Timeout) => break,
            }
        }
    }
}

/// The screen as text.
fn page(draw: impl FnOnce(&mut Frame<'_>), columns: u16, rows: u16) -> String {
    let Ok(mut terminal) = Terminal::new(TestBackend::new(columns, rows));
    let Ok(_) = terminal.draw(draw);
    let buffer = terminal.backend().buffer();
    let lines = buffer.content().chunks(usize::from(columns).max(1)).map(|line| {
        let line: String = line.iter().map(ratatui::buffer::Cell::symbol).collect();
        line.trim_end().to_owned() + "\n"
    });
    let page: String = lines.collect();
    page.trim_end().to_owned() + "\n"
}

#[cfg(test)]
mod tests {
    use ratatui::style::Color;

    use super::view::View;
    use super::*;
    use crate::expected::expect;

    #[test]
    fn the_screen_is_as_expected() {
        let view = View::example();
        let page = |columns, rows| page(|frame| draw::draw(frame, &view, true), columns, rows);
        expect("top-80x24.txt", &page(80, 24));
        expect("top-120x40.txt", &page(120, 40));
        page(1, 1);
    }

    #[test]
    fn a_screen_without_colours_has_none() {
        for (is_plain, wanted) in [(true, false), (false, true)] {
            let Ok(mut terminal) = Terminal::new(TestBackend::new(80, 24));
            let Ok(_) = terminal.draw(|frame| draw::draw(frame, &View::example(), is_plain));
            let cells = terminal.backend().buffer().content();
            let has_colours = cells.iter().any(|cell| cell.fg != Color::Reset || cell.bg != Color::Reset);
            assert_eq!(has_colours, wanted);
        }
    }
}
