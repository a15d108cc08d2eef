//! Ctrl-C: what is measured is kept, what was made is removed, what was started is stopped.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::error::{Error, Result};

/// Whether the run is to end. A second signal ends it at once.
#[derive(Debug, Clone, Default)]
pub struct Interrupt {
    wanted: Arc<AtomicBool>,
}

impl Interrupt {
    /// Listens to SIGINT and SIGTERM from now on.
    pub fn listen() -> Result<Self> {
        let interrupt = Self::default();
        for signal in [SIGINT, SIGTERM] {
            // In this order: the second of two finds the flag that the first has set.
            flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&interrupt.wanted))
                .and_then(|_| flag::register(signal, Arc::clone(&interrupt.wanted)))
                .map_err(Error::io("listen to signals"))?;
        }
        Ok(interrupt)
    }

    /// Ends the run as a signal does.
    pub fn raise(&self) {
        self.wanted.store(true, Ordering::Relaxed);
    }

    /// Whether a signal came.
    pub fn is_wanted(&self) -> bool {
        // The flag stands for nothing but itself.
        self.wanted.load(Ordering::Relaxed)
    }

    /// An error once a signal came.
    pub fn check(&self) -> Result<()> {
        if self.is_wanted() { Err(Error::Interrupted) } else { Ok(()) }
    }
}
