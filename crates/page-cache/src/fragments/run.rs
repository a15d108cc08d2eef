//! Adjacent fragments that the origin sends for all requests that lack them. A request for a byte that is about to arrive waits for
//! it.
//!
//! ```text
//! reach:   |fragment|fragment|fragment|fragment|fragment|
//!           stored ... gone   ^start ... ^end    not there yet
//!                              pieces in memory
//! ```
//! A piece is dropped when its fragment is stored; a slower reader then looks it up in the volume. Pieces that can't be stored wait
//! for their readers. So at most a fragment is in memory, however long the body and however slow a reader is.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use bytes::Bytes;

use super::Lack;

/// A reader waits for a byte that is at most this far ahead of what has arrived, and doesn't ask the origin itself.
const AHEAD_BYTES: u64 = 8 << 20;

/// The runs that are under way, by the prefix of their fragments' keys.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    running: Mutex<HashMap<Vec<u8>, Vec<Arc<Run>>>>,
}

/// Bytes of a body that were asked for, or that arrive.
#[derive(Debug)]
pub(crate) struct Run {
    reach: Range<u64>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    pieces: VecDeque<Bytes>,
    start: u64,
    end: u64,
    stage: Stage,
    readers: Vec<Option<Place>>,
    pusher: Option<Waker>,
}

/// The progress of a run.
#[derive(Debug)]
enum Stage {
    Coming,
    /// No more bytes arrive, for a reason that doesn't concern other requests.
    Over,
    /// No more bytes arrive, and none are available elsewhere.
    Lacking(Lack),
}

#[derive(Debug)]
struct Place {
    at: u64,
    waker: Option<Waker>,
}

/// The right, and the duty, to get a run. Dropping it ends the run.
#[derive(Debug)]
pub(crate) struct Lead {
    runs: Arc<Runs>,
    prefix: Vec<u8>,
    run: Arc<Run>,
}

/// A reader of a run.
#[derive(Debug)]
pub(crate) struct Reader {
    run: Arc<Run>,
    number: usize,
}

/// What a reader gets next.
#[derive(Debug)]
pub(crate) enum Next {
    /// These bytes.
    Piece(Bytes),
    /// The bytes at its position have been dropped, or this run never brings them.
    Elsewhere,
    /// The bytes at its position are unavailable.
    Lack(Lack),
}

/// What a request for a byte has to do.
#[derive(Debug)]
pub(crate) enum Joined {
    /// Read the run while it arrives.
    Follow(Reader),
    /// Get the run.
    Lead(Lead),
}

impl Runs {
    fn running(&self) -> MutexGuard<'_, HashMap<Vec<u8>, Vec<Arc<Run>>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A reader from a position, if its bytes are in memory or will arrive soon.
    pub(crate) fn follow(&self, prefix: &[u8], position: u64) -> Option<Reader> {
        self.running().get(prefix).and_then(|runs| follow(runs, position))
    }

    /// Joins a run that gets this position, or begins one that gets it and what follows, up to the end of `reach`.
    pub(crate) fn join(self: &Arc<Self>, prefix: &[u8], position: u64, reach: Range<u64>) -> Joined {
        let mut running = self.running();
        let runs = running.entry(prefix.to_vec()).or_default();
        if let Some(reader) = follow(runs, position) {
            return Joined::Follow(reader);
        }
        let run = Arc::new(Run::new(reach));
        runs.push(Arc::clone(&run));
        Joined::Lead(Lead { runs: Arc::clone(self), prefix: prefix.to_vec(), run })
    }
}

fn follow(runs: &[Arc<Run>], position: u64) -> Option<Reader> {
    runs.iter().find_map(|run| run.reader(position, AHEAD_BYTES))
}

impl Run {
    fn new(reach: Range<u64>) -> Self {
        let (start, end) = (reach.start, reach.start);
        let state =
            State { pieces: VecDeque::new(), start, end, stage: Stage::Coming, readers: Vec::new(), pusher: None };
        Self { reach, state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A reader from a position whose bytes are in memory, or that is at most `ahead` bytes beyond what has arrived.
    fn reader(self: &Arc<Self>, position: u64, ahead: u64) -> Option<Reader> {
        let mut state = self.state();
        let near = state.start..state.end.saturating_add(ahead).min(self.reach.end);
        if !matches!(state.stage, Stage::Coming) || !near.contains(&position) {
            return None;
        }
        let number = state.readers.iter().position(Option::is_none).unwrap_or(state.readers.len());
        if number == state.readers.len() {
            state.readers.push(None);
        }
        state.readers[number] = Some(Place { at: position, waker: None });
        Some(Reader { run: Arc::clone(self), number })
    }
}

impl State {
    fn wake_readers(&mut self) {
        self.readers.iter_mut().flatten().filter_map(|place| place.waker.take()).for_each(Waker::wake);
    }

    /// Wakes the task that waits for readers, if every reader has all bytes.
    fn wake_pusher(&mut self) {
        if self.is_taken()
            && let Some(pusher) = self.pusher.take()
        {
            pusher.wake();
        }
    }

    /// Whether every reader has all bytes that have arrived.
    fn is_taken(&self) -> bool {
        self.readers.iter().flatten().all(|place| place.at >= self.end)
    }

    /// The bytes in memory from a position to the end of their piece.
    fn piece(&self, position: u64) -> Option<Bytes> {
        let mut start = self.start;
        for piece in &self.pieces {
            let end = start + piece.len() as u64;
            if (start..end).contains(&position) {
                return Some(piece.slice((position - start) as usize..));
            }
            start = end;
        }
        None
    }
}

impl Lead {
    /// The bytes to get.
    pub(crate) fn reach(&self) -> Range<u64> {
        self.run.reach.clone()
    }

    /// A reader from any position within the reach.
    pub(crate) fn reader(&self, position: u64) -> Option<Reader> {
        self.run.reader(position, u64::MAX)
    }

    /// Adds the next bytes.
    pub(crate) fn push(&self, piece: Bytes) {
        let mut state = self.run.state();
        state.end += piece.len() as u64;
        state.pieces.push_back(piece);
        state.wake_readers();
    }

    /// All bytes so far are stored. A reader that lacks them finds them in the volume.
    pub(crate) fn let_go(&self) {
        let mut state = self.run.state();
        state.pieces.clear();
        state.start = state.end;
        state.wake_readers();
    }

    /// The pieces in memory.
    pub(crate) fn pieces(&self) -> Vec<Bytes> {
        self.run.state().pieces.iter().cloned().collect()
    }

    /// Whether there is a reader.
    pub(crate) fn is_read(&self) -> bool {
        self.run.state().readers.iter().any(Option::is_some)
    }

    /// Waits until every reader has all bytes so far. They needn't stay in memory then.
    pub(crate) async fn taken(&self) {
        std::future::poll_fn(|context| {
            let mut state = self.run.state();
            if state.is_taken() {
                return Poll::Ready(());
            }
            state.pusher = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
        self.let_go();
    }

    /// Ends the run; if there is a lack, before the end of its reach.
    pub(crate) fn finish(self, lack: Option<Lack>) {
        self.end(lack.map_or(Stage::Over, Stage::Lacking));
    }

    fn end(&self, stage: Stage) {
        let mut state = self.run.state();
        if matches!(state.stage, Stage::Coming) {
            state.stage = stage;
        }
        state.wake_readers();
    }
}

impl Drop for Lead {
    fn drop(&mut self) {
        let mut running = self.runs.running();
        if let Some(runs) = running.get_mut(&self.prefix) {
            runs.retain(|other| !Arc::ptr_eq(other, &self.run));
            if runs.is_empty() {
                running.remove(&self.prefix);
            }
        }
        drop(running);
        self.end(Stage::Over);
    }
}

impl Reader {
    /// Whether the reader's next byte is at this position.
    pub(crate) fn is_at(&self, position: u64) -> bool {
        self.run.state().readers[self.number].as_ref().is_some_and(|place| place.at == position)
    }

    /// The next bytes, as soon as they arrive.
    pub(crate) async fn next(&mut self) -> Next {
        std::future::poll_fn(|context| {
            let mut state = self.run.state();
            let Some(at) = state.readers[self.number].as_ref().map(|place| place.at) else {
                return Poll::Ready(Next::Elsewhere);
            };
            if let Some(piece) = state.piece(at) {
                if let Some(place) = &mut state.readers[self.number] {
                    place.at += piece.len() as u64;
                }
                state.wake_pusher();
                return Poll::Ready(Next::Piece(piece));
            }
            if at < state.end || at >= self.run.reach.end {
                return Poll::Ready(Next::Elsewhere);
            }
            match &state.stage {
                Stage::Lacking(lack) => return Poll::Ready(Next::Lack(lack.clone())),
                Stage::Over => return Poll::Ready(Next::Elsewhere),
                Stage::Coming => {}
            }
            if let Some(place) = &mut state.readers[self.number] {
                place.waker = Some(context.waker().clone());
            }
            Poll::Pending
        })
        .await
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut state = self.run.state();
        state.readers[self.number] = None;
        state.wake_pusher();
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future as _;
    use std::io;
    use std::pin::pin;

    use super::*;

    const PREFIX: &[u8] = b"http://a/b 1/";

    fn lead(runs: &Arc<Runs>, reach: Range<u64>) -> Lead {
        match runs.join(PREFIX, reach.start, reach) {
            Joined::Lead(lead) => lead,
            Joined::Follow(_) => panic!("somebody leads"),
        }
    }

    async fn piece(reader: &mut Reader) -> Vec<u8> {
        match reader.next().await {
            Next::Piece(bytes) => bytes.to_vec(),
            Next::Elsewhere => b"elsewhere".to_vec(),
            Next::Lack(_) => b"lack".to_vec(),
        }
    }

    #[tokio::test]
    async fn a_request_waits_for_near_bytes_and_asks_for_far_ones() {
        let runs = Arc::new(Runs::default());
        let reach = 10..AHEAD_BYTES * 3;
        let lead = lead(&runs, reach.clone());
        let mut reader = runs.follow(PREFIX, 12).unwrap();
        assert!(runs.follow(PREFIX, 9).is_none() && runs.follow(b"other", 12).is_none());
        assert!(runs.follow(PREFIX, 9 + AHEAD_BYTES).is_some() && runs.follow(PREFIX, 10 + AHEAD_BYTES).is_none());
        assert!(matches!(runs.join(PREFIX, 2 * AHEAD_BYTES, 2 * AHEAD_BYTES..reach.end), Joined::Lead(_)));
        assert!(lead.reader(2 * AHEAD_BYTES).is_some(), "who has asked waits for anything");
        lead.push(Bytes::from_static(b"0123"));
        assert_eq!(piece(&mut reader).await, b"23");
        assert!(reader.is_at(14));
        drop(lead);
        assert_eq!(piece(&mut reader).await, b"elsewhere");
        assert!(runs.follow(PREFIX, 12).is_none());
    }

    #[tokio::test]
    async fn stored_pieces_are_dropped_and_other_pieces_wait_for_their_readers() {
        let runs = Arc::new(Runs::default());
        let lead = lead(&runs, 0..100);
        let (mut quick, mut slow) = (lead.reader(0).unwrap(), lead.reader(0).unwrap());
        lead.push(Bytes::from_static(b"stored"));
        assert_eq!(piece(&mut quick).await, b"stored");
        lead.let_go();
        assert_eq!(piece(&mut slow).await, b"elsewhere", "it is in the volume");
        drop(slow);
        let mut slow = lead.reader(6).unwrap();
        lead.push(Bytes::from_static(b"refused"));
        assert_eq!(piece(&mut quick).await, b"refused");
        {
            let mut taken = pin!(lead.taken());
            let is_pending = std::future::poll_fn(|context| Poll::Ready(taken.as_mut().poll(context).is_pending()));
            assert!(is_pending.await, "the slow one lacks it");
            assert_eq!(piece(&mut slow).await, b"refused");
            taken.await;
        }
        assert!(lead.pieces().is_empty() && lead.is_read());
        drop((quick, slow));
        assert!(!lead.is_read());
    }

    #[tokio::test]
    async fn every_reader_beyond_the_arrived_bytes_gets_the_lack() {
        let runs = Arc::new(Runs::default());
        let lead = lead(&runs, 0..100);
        let mut reader = lead.reader(0).unwrap();
        lead.push(Bytes::from_static(b"half"));
        lead.finish(Some(Lack::Broken(io::ErrorKind::TimedOut, "late".to_owned())));
        assert_eq!(piece(&mut reader).await, b"half");
        assert_eq!(piece(&mut reader).await, b"lack");
    }
}
