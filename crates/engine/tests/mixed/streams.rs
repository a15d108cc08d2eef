//! Streams: values that are written piece by piece, and followed by this process and others.

use std::io::Write;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use eyewall::{Committed, Error, Follower, Writer};

use super::WORKERS;
use super::ground::{Own, Tally};
use super::keys::{self, Key, Ledger};
use super::worker::Worker;
use crate::common::value;

const PATIENCE: Duration = Duration::from_millis(20);

/// The bytes read of a stream so far, and the follower or hit that reads it.
struct Read {
    follower: Follower,
    bytes: Vec<u8>,
}

impl Read {
    /// Reads what comes. Returns true at the end.
    fn some(&mut self, deadline: Duration) -> eyewall::Result<bool> {
        let mut piece = [0; 5000];
        let read = self.follower.read(&mut piece, deadline)?;
        self.bytes.extend_from_slice(&piece[..read]);
        Ok(read == 0)
    }

    /// Judges what was read: the beginning of a version, or all of it.
    fn check(&self, key: &Key, ended: bool) -> Option<u32> {
        let length = u64::from_le_bytes(self.follower.metadata().try_into().unwrap()) as usize;
        let version = u32::from_le_bytes(*self.bytes.first_chunk()?);
        let whole = value(&key.name, version, length);
        assert!(
            whole.get(..self.bytes.len()) == Some(&self.bytes[..]),
            "{key:?}, version {version}, of {length} bytes"
        );
        assert!(!ended || self.bytes.len() == length, "{key:?}: {} of {length} bytes are all", self.bytes.len());
        Some(version)
    }
}

impl Worker<'_> {
    pub fn stream(&mut self) {
        let key = self.own_key();
        let ends = self.random.below(5) > 0;
        self.write(&key.clone(), |worker, version, whole, options| {
            let said = match version % 3 {
                0 => None,
                1 => Some(10),
                _ => Some(whole.len() as u64),
            };
            let writer = worker.timed(|cache| cache.writer(&key.name, options, said))?;
            worker.ledger.is_at_work(&key, version);
            worker.ground.own(worker.me, Own::Streaming).store(key.number + 1, SeqCst);
            let stored = worker.write_pieces(&key, writer, whole, ends);
            worker.ground.own(worker.me, Own::Streaming).store(0, SeqCst);
            stored
        });
        // A key of its own, since another put of a streamed key would be finished before the stream.
        self.supersede_own();
    }

    /// Writes a value in pieces and follows it. Commits it if it `ends`.
    fn write_pieces(&self, key: &Key, mut writer: Writer, whole: &[u8], ends: bool) -> Option<()> {
        let follower = self.timed(|cache| cache.follow(&key.name)).flatten();
        let mut read = follower.map(|follower| Read { follower, bytes: Vec::new() });
        for piece in whole.chunks(1 + whole.len() / 4) {
            if let Err(error) = writer.write_all(piece) {
                self.refused(error.get_ref().unwrap().downcast_ref::<Error>().unwrap());
                return None;
            }
            if let Some(read) = &mut read
                && let Err(error) = read.some(Duration::from_millis(1))
            {
                self.refused(&error);
            }
        }
        if !ends {
            writer.abort();
            self.ground.count(Tally::Aborted);
            if let Some(read) = read {
                self.read_to_end(key, read, false);
            }
            return None;
        }
        let committed = self.timed(|_| writer.commit())?;
        let stored = matches!(committed, Committed::Stored(_));
        self.ground.count(if stored { Tally::Stored } else { Tally::Superseded });
        if let Some(read) = read {
            self.read_to_end(key, read, stored);
        }
        stored.then_some(())
    }

    /// Reads to the end, or until nothing more comes.
    fn read_to_end(&self, key: &Key, mut read: Read, may_end: bool) {
        let ended = loop {
            match read.some(PATIENCE) {
                Ok(false) => {}
                Ok(true) => break true,
                Err(Error::Busy { .. } | Error::Interrupted { .. }) => break false,
                Err(error) => panic!("{error}"),
            }
        };
        assert!(may_end || !ended, "{key:?}: a stream that was given up has ended");
        read.check(key, ended);
        self.ground.count(if ended { Tally::Followed } else { Tally::Unfollowed });
    }

    /// Puts a key that is being streamed, so that nothing of the stream is stored.
    fn supersede_own(&mut self) {
        let key = self.own_key();
        if self.random.below(4) > 0 {
            return;
        }
        let superseded = self.ledger.begin(&key);
        let whole = value(&key.name, superseded, 3000);
        let begun = key.with_options(&keys::metadata(3000), |options| {
            let mut writer = self.timed(|cache| cache.writer(&key.name, options, None))?;
            writer.write_all(&whole).ok().map(|()| writer)
        });
        let Some(writer) = begun else { return };
        self.ledger.is_at_work(&key, superseded);
        let put = self
            .write(&key, |worker, _, value, options| worker.timed(|cache| cache.put_with(&key.name, value, options)));
        match self.timed(|_| writer.commit()) {
            // As if the put had come after the stream.
            Some(Committed::Superseded) => self.ground.count(Tally::Superseded),
            Some(Committed::Stored(_)) => {
                assert!(put.is_none(), "{key:?}: a stream was stored over a put that came behind its beginning");
                self.stored(&key, superseded);
            }
            None => {}
        }
    }

    pub fn die_in_stream(&mut self) {
        loop {
            let key = self.own_key();
            let version = self.ledger.begin(&key);
            let whole = value(&key.name, version, 20_000);
            key.with_options(&keys::metadata(whole.len()), |options| {
                let Some(mut writer) = self.timed(|cache| cache.writer(&key.name, options, None)) else { return };
                self.ground.own(self.me, Own::Streaming).store(key.number + 1, SeqCst);
                if writer.write_all(&whole[..15_000]).is_ok() {
                    Self::die();
                }
            });
        }
    }

    /// Follows what another process streams.
    pub fn follow(&mut self) {
        let other = self.random.below(WORKERS);
        let streaming = self.ground.own(other, Own::Streaming).load(SeqCst);
        let Some(number) = streaming.checked_sub(1) else { return };
        let key = Ledger::own_key(number);
        let Some(follower) = self.timed(|cache| cache.follow(&key.name)).flatten() else { return };
        self.read_to_end(&key, Read { follower, bytes: Vec::new() }, true);
    }
}
