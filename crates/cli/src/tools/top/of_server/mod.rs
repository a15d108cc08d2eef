//! `eyewall top --server`: what a running server does, live. The server's dashboard has the figures, and this shows them on a terminal.
//!
//! | file | what it holds |
//! |---|---|
//! | `feed.rs` | the samples of the server, by `GET /dashboard/events` |
//! | `view.rs` | the figures: the difference between two samples |
//! | `draw.rs` | the screen |

mod draw;
mod feed;
mod view;

use std::io::{IsTerminal as _, Write as _};
use std::sync::mpsc::{Receiver, Sender};

use ratatui::DefaultTerminal;

use super::wake::{self, Wake};
use super::{COLUMNS, ROWS, is_plain, page, restore};
use crate::args::{ServerPlace, Top};
use crate::{Error, Outcome, output};
use feed::{Feed, News};
use view::{Looker, View};

pub(crate) fn run(server: &ServerPlace, top: &Top) -> Result<Outcome, Error> {
    let is_page = top.once || !std::io::stdout().is_terminal();
    if !top.json && !is_page {
        return on_terminal(server, top);
    }
    // Without a terminal, signals end the process as they do any tool.
    let feed = Feed::start(server, top, || {})?;
    let mut looker = Looker::new(server, top.interval);
    while let Some(sample) = feed.next()? {
        let Some(view) = looker.look(sample) else { continue };
        if top.json {
            output::json_to_stdout(&view)?;
        } else {
            let page = page(|frame| draw::draw(frame, &view, true), COLUMNS, ROWS);
            output::text_to_stdout(|stdout| stdout.write_all(page.as_bytes()))?;
        }
        if top.once || !top.json {
            return Ok(Outcome::Done);
        }
    }
    Ok(Outcome::Done)
}

fn on_terminal(server: &ServerPlace, top: &Top) -> Result<Outcome, Error> {
    let (sender, wakes) = wake::listen().map_err(Error::Watch)?;
    let feed = Feed::start(server, top, waker(sender))?;
    // Errors of the first connection are told on a terminal that is as it was.
    let Some(first) = feed.next()? else { return Ok(Outcome::Done) };
    let mut looker = Looker::new(server, top.interval);
    let view = looker.look(first);
    let mut terminal = ratatui::try_init().map_err(Error::Output)?;
    let ended = watch(&mut terminal, (&mut looker, view), &feed, &wakes);
    restore(terminal, ended)
}

fn waker(sender: Sender<Wake>) -> impl Fn() + Send + 'static {
    move || {
        // Fails only if the screen has ended.
        let _ = sender.send(Wake::Draw);
    }
}

fn watch(
    terminal: &mut DefaultTerminal,
    (looker, mut view): (&mut Looker, Option<View>),
    feed: &Feed,
    wakes: &Receiver<Wake>,
) -> Result<(), Error> {
    let is_plain = is_plain();
    loop {
        while let Some(news) = feed.try_next() {
            match news {
                News::Sample(sample) => view = looker.look(*sample).or(view),
                News::Gone => view.iter_mut().for_each(|view| view.is_gone = true),
                News::Ended(ended) => return ended,
            }
        }
        terminal
            .draw(|frame| match &view {
                Some(view) => draw::draw(frame, view, is_plain),
                None => draw::waits(frame),
            })
            .map_err(Error::Output)?;
        match wakes.recv() {
            Ok(Wake::Draw) => {}
            Ok(Wake::Failed(error)) => return Err(Error::Watch(error)),
            // All threads that could wake this one have ended.
            Ok(Wake::End) | Err(_) => return Ok(()),
        }
    }
}
