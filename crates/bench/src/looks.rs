//! Samples the space that a store takes while it works.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::contender::Contender;
use crate::error::{Error, Result};

/// The space that a store took at one moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Look {
    /// Time since the work began.
    pub seconds: f64,
    /// Bytes.
    pub bytes: u64,
}

/// Does some work, and samples the store's footprint meanwhile, with pauses. Takes no samples if the store can't tell
/// its footprint.
pub fn while_looking<T>(
    store: &dyn Contender,
    pause: Duration,
    work: impl FnOnce() -> Result<T>,
) -> Result<(T, Vec<Look>)> {
    if store.footprint_bytes()?.is_none() {
        return Ok((work()?, Vec::new()));
    }
    let is_over = AtomicBool::new(false);
    let begin = Instant::now();
    thread::scope(|scope| {
        let looking = scope.spawn(|| {
            let mut looks = Vec::new();
            loop {
                // One more sample after the work.
                let is_last = is_over.load(Ordering::Relaxed);
                if let Some(bytes) = store.footprint_bytes()? {
                    looks.push(Look { seconds: begin.elapsed().as_secs_f64(), bytes });
                }
                if is_last {
                    return Ok(looks);
                }
                thread::sleep(pause);
            }
        });
        let worked = work();
        is_over.store(true, Ordering::Relaxed);
        let looks: Result<Vec<Look>> =
            looking.join().map_err(|_| Error::Invalid("who looked at the footprint panicked".to_owned()))?;
        Ok((worked?, looks?))
    })
}

/// At most so many of the samples, evenly spread, always with the largest: for drawing a line.
pub fn thinned(looks: &[Look], most: usize) -> Vec<Look> {
    let step = looks.len().div_ceil(most.max(1)).max(1);
    looks.chunks(step).filter_map(|some| some.iter().copied().max_by_key(|look| look.bytes)).collect()
}

#[cfg(test)]
mod tests {
    use super::{Look, thinned};

    #[test]
    fn a_thinned_line_keeps_its_peak() {
        let looks: Vec<Look> =
            (0..1_000).map(|at| Look { seconds: f64::from(at), bytes: 5 + u64::from(at == 777) }).collect();
        let few = thinned(&looks, 100);
        assert_eq!(few.len(), 100);
        assert_eq!(few.iter().map(|look| look.bytes).max(), Some(6));
        assert_eq!(thinned(&looks[..3], 100).len(), 3);
        assert!(thinned(&[], 100).is_empty());
    }
}
