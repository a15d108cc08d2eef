//! A user watches a volume on a terminal, and quits in any way: the terminal is restored.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Child, Stdio};

use rustix::fs::{Mode, OFlags, open};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use crate::command::Volume;

/// The sequences by which a program takes over the screen, and gives it back.
const ALTERNATE: &str = "\x1b[?1049h";
const BACK: &str = "\x1b[?1049l";
const SHOW_CARET: &str = "\x1b[?25h";

/// `eyewall top` on a terminal of 80 columns and 24 rows: the controlling end, and all output so far.
struct Watched {
    top: Child,
    terminal: File,
    shown: String,
}

impl Watched {
    /// Returns once the screen is drawn.
    fn start(volume: &Volume) -> Self {
        let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&terminal).unwrap();
        unlockpt(&terminal).unwrap();
        let name = ptsname(&terminal, Vec::new()).unwrap();
        let end = File::from(open(name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty()).unwrap());
        tcsetwinsize(&end, Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        assert!(is_cooked(&end));
        let mut command = volume.command(["top", "--interval", "1h"]);
        let [input, output] = [0; 2].map(|_| Stdio::from(end.try_clone().unwrap()));
        let top = command.env("TERM", "xterm").stdin(input).stdout(output).stderr(end).spawn().unwrap();
        let mut watched = Self { top, terminal: terminal.into(), shown: String::new() };
        watched.read_until(|shown| shown.contains("HITS"));
        assert!(watched.shown.contains(ALTERNATE) && !is_cooked(&watched.terminal));
        watched
    }

    /// Reads until the output is as wanted, or the other end is closed.
    fn read_until(&mut self, is_as_wanted: impl Fn(&str) -> bool) {
        let mut bytes = [0; 4096];
        while !is_as_wanted(&self.shown) {
            match self.terminal.read(&mut bytes) {
                Ok(count) if count > 0 => self.shown.push_str(&String::from_utf8_lossy(&bytes[..count])),
                _ => return,
            }
        }
    }

    fn send(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.top), signal).unwrap();
    }

    fn assert_orderly_end(mut self) {
        self.read_until(|_| false);
        assert_eq!(self.top.wait().unwrap().code(), Some(0), "{}", self.shown);
        assert!(self.shown.contains(BACK) && self.shown.contains(SHOW_CARET), "{:?}", self.shown);
        assert!(is_cooked(&self.terminal), "it takes lines, and shows what is typed");
    }
}

fn is_cooked(terminal: &File) -> bool {
    tcgetattr(terminal).unwrap().local_modes.contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG)
}

#[test]
fn keys_end_it_gracefully() {
    let volume = Volume::new();
    for key in ["q", "\x1b", "\x03"] {
        let mut watched = Watched::start(&volume);
        watched.terminal.write_all(key.as_bytes()).unwrap();
        watched.assert_orderly_end();
    }
}

#[test]
fn signals_end_it_gracefully() {
    let volume = Volume::new();
    for signal in [Signal::TERM, Signal::HUP, Signal::INT] {
        let watched = Watched::start(&volume);
        watched.send(signal);
        watched.assert_orderly_end();
    }
}

#[test]
fn it_ends_when_its_terminal_is_gone() {
    let volume = Volume::new();
    let Watched { mut top, terminal, .. } = Watched::start(&volume);
    drop(terminal);
    kill_process(Pid::from_child(&top), Signal::HUP).unwrap();
    assert_eq!(top.wait().unwrap().code(), Some(0));
}
