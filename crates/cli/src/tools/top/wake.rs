//! Wakes the screen between two updates, on keys, a new size of the terminal, and signals.
//!
//! Two threads wait for them. The thread that reads keys may hang if its terminal is gone; no other thread waits for it.

use std::sync::mpsc::{self, Receiver, Sender};
use std::{io, thread};

use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};

pub(super) enum Wake {
    /// The terminal may have another size.
    Draw,
    End,
    Failed(io::Error),
}

/// From here on, a signal that asks the process to end only sends a wake.
pub(super) fn listen() -> io::Result<Receiver<Wake>> {
    let mut signals = Signals::new()?;
    let (to_signals, wakes) = mpsc::channel();
    let to_keys = to_signals.clone();
    thread::Builder::new().spawn(move || {
        signals.wait();
        // Fails only if the screen has ended by itself.
        let _ = to_signals.send(Wake::End);
    })?;
    thread::Builder::new().spawn(move || read_keys(&to_keys))?;
    Ok(wakes)
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

/// SIGHUP, SIGINT and SIGTERM.
struct Signals {
    runtime: Runtime,
    hangup: Signal,
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn new() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_io().build()?;
        let [hangup, interrupt, terminate] = {
            let _entered = runtime.enter();
            [signal(SignalKind::hangup())?, signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?]
        };
        Ok(Self { runtime, hangup, interrupt, terminate })
    }

    fn wait(&mut self) {
        let Self { runtime, hangup, interrupt, terminate } = self;
        runtime.block_on(async {
            tokio::select! {
                _ = hangup.recv() => {}
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
        });
    }
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
