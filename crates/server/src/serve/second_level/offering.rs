//! Offers responses to the second level: those that the origin has made, once they were asked for again.
//!
//! Most responses are asked for once. To share them would only push others out of the store. The volume counts how often an entry is
//! used, so a hit does nothing for this: a thread looks at the counts of recent fills, after longer and longer times.

use std::collections::BinaryHeap;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use eyewall_http::vary_index::Variant;
use eyewall_page_cache::pages::{Kept, Pages};
use http::header::SET_COOKIE;

use super::Level;
use super::record::{Record, Shared, variant_key};

/// So many fills may wait for the thread.
const FILLS_MAX: usize = 4096;
/// So many fills are looked at again.
const CANDIDATES_MAX: usize = 16_384;
/// When a fill is looked at first. The time doubles from one look to the next.
const FIRST_LOOK: Duration = Duration::from_millis(100);
/// It is looked at until the next look would be later than this after the one before.
const LAST_LOOK: Duration = Duration::from_mins(10);

/// The thread. Dropping this ends it.
pub(super) struct Offering {
    fills: SyncSender<Message>,
    thread: Option<JoinHandle<()>>,
}

enum Message {
    Stored(Box<Candidate>),
    End,
}

/// A fill that may be asked for again.
struct Candidate {
    key: Vec<u8>,
    kept_key: Vec<u8>,
    variant: Option<Variant>,
}

/// A look at a candidate. The earliest one is the greatest.
struct Look {
    due: Instant,
    pause: Duration,
    candidate: Box<Candidate>,
}

impl Offering {
    pub(super) fn start(level: &Arc<Level>, pages: &Arc<Pages>) -> io::Result<Self> {
        let (fills, stored) = sync_channel(FILLS_MAX);
        let (level, kept_pages) = (Arc::clone(level), Arc::clone(pages));
        let run = move || run(&level, &kept_pages, &stored);
        let thread = std::thread::Builder::new().name("offers".to_owned()).spawn(run)?;
        let told = fills.clone();
        pages.tell_of_stored(move |kept| {
            let Kept { key, kept_key, variant } = kept;
            let (key, kept_key, variant) = (key.to_vec(), kept_key.to_vec(), variant.cloned());
            // If too many fills wait, this one isn't shared.
            let _ = told.try_send(Message::Stored(Box::new(Candidate { key, kept_key, variant })));
        });
        Ok(Self { fills, thread: Some(thread) })
    }
}

impl Drop for Offering {
    fn drop(&mut self) {
        // An error means that the thread has ended.
        let _ = self.fills.send(Message::End);
        if let Some(thread) = self.thread.take() {
            // The thread has logged a panic already.
            let _ = thread.join();
        }
    }
}

fn run(level: &Level, pages: &Pages, stored: &Receiver<Message>) {
    let mut looks = BinaryHeap::<Look>::new();
    loop {
        let now = Instant::now();
        while looks.peek().is_some_and(|look| look.due <= now) {
            if let Some(look) = looks.pop() {
                looks.extend(look.take(level, pages, now));
            }
        }
        let wait = looks.peek().map_or(LAST_LOOK, |look| look.due.saturating_duration_since(now));
        match stored.recv_timeout(wait) {
            Ok(Message::Stored(candidate)) if looks.len() < CANDIDATES_MAX => {
                looks.push(Look { due: Instant::now() + FIRST_LOOK, pause: FIRST_LOOK, candidate });
            }
            Ok(Message::Stored(_)) | Err(RecvTimeoutError::Timeout) => {}
            Ok(Message::End) | Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

impl Look {
    /// Offers the response if it was asked for again. The next look, if there is one.
    fn take(self, level: &Level, pages: &Pages, now: Instant) -> Option<Self> {
        let Self { pause, candidate, .. } = self;
        // `None`: it was purged, evicted, or is stale.
        let is_popular = pages.store.uses(&candidate.kept_key)? > 0;
        if !is_popular || !offer(level, pages, &candidate) {
            let pause = pause * 2;
            return (pause <= LAST_LOOK).then_some(Self { due: now + pause, pause, candidate });
        }
        None
    }
}

/// Offers a response. False: this node doesn't follow the log now, or the second level takes nothing.
fn offer(level: &Level, pages: &Pages, candidate: &Candidate) -> bool {
    let Candidate { key, kept_key, variant } = candidate;
    // The number of the line comes first, and then the look: whatever was purged up to that line isn't found.
    let Some(as_of) = level.fleet.as_of() else { return false };
    let names = variant.as_ref().map(|variant| &variant.names[..]).unwrap_or_default();
    let Some((carried, body)) = pages.shareable(key, kept_key, names, as_of) else { return true };
    if carried.fields.contains_key(SET_COOKIE) {
        return true;
    }
    let now = SystemTime::now();
    let ttl = carried.terms.fresh_for(now);
    let Some(value) = Record::of_response(Shared { carried, body }, now) else { return true };
    if !level.store.takes(value.len()) {
        return !level.store.takes(0);
    }
    match variant {
        None => drop(level.store.offer(key, value, ttl)),
        Some(variant) => {
            level.store.offer(&variant_key(key, variant), value, ttl);
            level.store.offer(key, Record::of_names(names), ttl);
        }
    }
    true
}

// Ordered by time alone.

impl Ord for Look {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        other.due.cmp(&self.due)
    }
}

impl PartialOrd for Look {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Look {
    fn eq(&self, other: &Self) -> bool {
        self.due == other.due
    }
}

impl Eq for Look {}
