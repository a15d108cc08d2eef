//! Messages to systemd, or to another supervisor with the same protocol (`sd_notify(3)`). Without one, they go nowhere.

use std::time::Duration;

use sd_notify::NotifyState;

/// The supervisor, if the server is a service of its own.
#[derive(Clone, Copy)]
pub(crate) struct Supervisor {
    /// Whether it gets messages.
    pub(crate) is_told: bool,
}

impl Supervisor {
    /// The server answers.
    pub(crate) fn ready(self, status: &str) {
        self.send(&[NotifyState::Ready, NotifyState::Status(status)]);
    }

    /// A reload begins; [`Supervisor::ready`] ends it.
    pub(crate) fn reloading(self) {
        // systemd ignores the message without the time.
        if let Ok(now) = NotifyState::monotonic_usec_now() {
            self.send(&[NotifyState::Reloading, now]);
        }
    }

    /// The server ends.
    pub(crate) fn stopping(self) {
        self.send(&[NotifyState::Stopping, NotifyState::Status("answering the last requests")]);
    }

    /// Another process is the service from now on.
    pub(crate) fn main_process(self, process: u32) {
        self.send(&[NotifyState::MainPid(process)]);
    }

    /// The time after which the supervisor ends a server that sends no [`Supervisor::alive`].
    pub(crate) fn watchdog(self) -> Option<Duration> {
        sd_notify::watchdog_enabled().filter(|_| self.is_told)
    }

    /// The server works.
    pub(crate) fn alive(self) {
        self.send(&[NotifyState::Watchdog]);
    }

    fn send(self, state: &[NotifyState<'_>]) {
        if !self.is_told {
            return;
        }
        if let Err(error) = sd_notify::notify(state) {
            tracing::warn!(%error, "can't send a message to the supervisor at NOTIFY_SOCKET");
        }
    }
}
