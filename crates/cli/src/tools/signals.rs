//! The signals that ask a tool to end: SIGHUP, SIGINT and SIGTERM.

use std::io;
use std::thread;

use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// From here on, these signals don't end the process: the first one makes a thread call `told`.
pub(super) fn tell(told: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let mut signals = Signals::new()?;
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        signals.wait();
        told();
    })?;
    Ok(())
}

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
