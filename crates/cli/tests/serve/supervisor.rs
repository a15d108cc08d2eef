//! systemd, or another supervisor with its protocol, learns when the server is ready, reloads, hands over and ends.

use std::os::unix::net::UnixDatagram;

use rustix::process::Signal;

use crate::common::origin::Origin;
use crate::common::upgrading::Upgrading;

struct Supervisor {
    socket: UnixDatagram,
    _folder: tempfile::TempDir,
}

impl Supervisor {
    /// The next message that isn't of the watchdog.
    fn next(&self) -> String {
        loop {
            let message = self.any();
            if message != "WATCHDOG=1" {
                return message;
            }
        }
    }

    fn any(&self) -> String {
        let mut bytes = [0; 1000];
        let count = self.socket.recv(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes[..count]).trim_end().to_owned()
    }
}

fn start(watchdog_microseconds: &str) -> (Supervisor, Upgrading) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let supervisor = Supervisor { socket: UnixDatagram::bind(&path).unwrap(), _folder: folder };
    let site = format!("[[site]]\norigins = [\"{}\"]\n", Origin::counting("").url());
    let upgrading = Upgrading::with(&site, |command| {
        command.env("NOTIFY_SOCKET", path).env("WATCHDOG_USEC", watchdog_microseconds)
    });
    (supervisor, upgrading)
}

#[test]
fn each_change_of_state_is_told() {
    let (supervisor, mut upgrading) = start("3600000000");
    assert_eq!(supervisor.next(), "READY=1\nSTATUS=serving");
    for by_signal in [true, false] {
        if by_signal {
            upgrading.signal(Signal::HUP);
        } else {
            upgrading.socket.ask("POST", "/reload", &[], "");
        }
        let reloading = supervisor.next();
        assert!(reloading.starts_with("RELOADING=1\nMONOTONIC_USEC="), "{reloading}");
        assert_eq!(supervisor.next(), "READY=1\nSTATUS=reloaded");
    }
    upgrading.upgrade();
    assert_eq!(supervisor.next(), format!("MAINPID={}", upgrading.process()));
    assert_eq!(supervisor.next(), "READY=1\nSTATUS=serving");
    assert!(upgrading.first_ends().success());
    upgrading.signal(Signal::TERM);
    assert_eq!(supervisor.next(), "STOPPING=1\nSTATUS=answering the last requests");
}

#[test]
fn the_watchdog_is_fed_by_each_process() {
    let (supervisor, mut upgrading) = start("10000");
    assert_eq!(supervisor.next(), "READY=1\nSTATUS=serving");
    while supervisor.any() != "WATCHDOG=1" {}
    upgrading.upgrade();
    assert!(upgrading.first_ends().success());
    while !supervisor.next().starts_with("READY=1\nSTATUS=serving") {}
    while supervisor.any() != "WATCHDOG=1" {}
}
