//! Wakes the screen between two updates, on keys, a new size of the terminal, and signals.
//!
//! Two threads wait for them. The thread that reads keys may hang if its terminal is gone; no other thread waits for it.

use std::sync::mpsc::{self, Receiver, Sender};
use std::{io, thread};

use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::tools::signals;

pub(super) enum Wake {
    /// The terminal may have another size, or there is something to show.
    Draw,
    End,
    Failed(io::Error),
}

/// From here on, a signal that asks the process to end only sends a wake. Others can send one, too, by the sender.
pub(super) fn listen() -> io::Result<(Sender<Wake>, Receiver<Wake>)> {
    let (sender, wakes) = mpsc::channel();
    let (to_signals, to_keys) = (sender.clone(), sender.clone());
    signals::tell(move || {
        // Fails only if the screen has ended by itself.
        let _ = to_signals.send(Wake::End);
    })?;
    thread::Builder::new().spawn(move || read_keys(&to_keys))?;
    Ok((sender, wakes))
}

fn read_keys(to: &Sender<Wake>) {
    loop {
        let wake = match event::read() {
            Ok(Event::Key(key)) if ends(key) => Wake::End,
            Ok(_) => Wake::Draw,
            Err(error) => Wake::Failed(error),
        };
        let is_last = !matches!(wake, Wake::Draw);
        if to.send(wake).is_err() || is_last {
            return;
        }
    }
}

fn ends(key: KeyEvent) -> bool {
    let is_control_c = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
    key.kind != KeyEventKind::Release && (matches!(key.code, KeyCode::Char('q') | KeyCode::Esc) || is_control_c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn q_escape_and_control_c_end_top() {
        let key = |code, modifiers| KeyEvent::new(code, modifiers);
        assert!(ends(key(KeyCode::Char('q'), KeyModifiers::NONE)) && ends(key(KeyCode::Esc, KeyModifiers::NONE)));
        assert!(ends(key(KeyCode::Char('c'), KeyModifiers::CONTROL)));
        assert!(!ends(key(KeyCode::Char('c'), KeyModifiers::NONE)) && !ends(key(KeyCode::Enter, KeyModifiers::NONE)));
    }
}
