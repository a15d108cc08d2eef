//! What all processes know about the versions of keys that have one writer each: the version that the writer began
//! last, and the one that it finished last. A reader of such a key must find a version between the two, or nothing.

use std::sync::atomic::Ordering::SeqCst;

use eyewall::{Cache, Hit};

use super::{Board, version_of};

/// The words of a board for each key.
pub struct Ledger<'a> {
    board: &'a Board,
    first: usize,
}

pub const WORDS_PER_KEY: usize = 2;

pub fn key(number: u64) -> Vec<u8> {
    format!("key {number}").into_bytes()
}

impl<'a> Ledger<'a> {
    /// The ledger's words begin at `first`.
    pub fn new(board: &'a Board, first: usize) -> Self {
        Self { board, first }
    }

    fn word(&self, number: u64, which: usize) -> &std::sync::atomic::AtomicU64 {
        self.board.word(self.first + number as usize * WORDS_PER_KEY + which)
    }

    fn begun(&self, number: u64) -> u64 {
        self.word(number, 0).load(SeqCst)
    }

    fn finished(&self, number: u64) -> u64 {
        self.word(number, 1).load(SeqCst)
    }

    /// Notes that the key's writer begins a put or a removal.
    pub fn begin(&self, number: u64) -> u32 {
        (self.word(number, 0).fetch_add(1, SeqCst) + 1) as u32
    }

    /// Notes that the key's writer has finished.
    pub fn finish(&self, number: u64, version: u32) {
        self.word(number, 1).store(u64::from(version), SeqCst);
    }

    /// Looks a key up and checks the result. For the key's writer the answer is exact, unless a former writer was
    /// killed.
    pub fn get<'c>(&self, cache: &'c Cache, number: u64) -> eyewall::Result<Option<Hit<'c>>> {
        let key = key(number);
        let oldest = self.finished(number);
        let hit = cache.get(&key)?;
        if let Some(hit) = &hit {
            assert_eq!(hit.key(), key);
            self.check(number, oldest, hit);
        }
        Ok(hit)
    }

    /// Checks an entry that was found after version `oldest` was finished.
    pub fn check(&self, number: u64, oldest: u64, value: &[u8]) {
        let version = u64::from(version_of(&key(number), value));
        let newest = self.begun(number);
        assert!((oldest..=newest).contains(&version), "key {number}: version {version}, not {oldest} to {newest}");
    }

    /// The last version that was surely stored or removed.
    pub fn oldest(&self, number: u64) -> u64 {
        self.finished(number)
    }
}
