//! The parent of a storm. It starts the workers, kills them, stops them and sends them away. Meanwhile it purges,
//! resizes, sweeps, syncs and verifies.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

use eyewall::{Cache, Error, Options, OwnedHit, Purge, Stats};
use tempfile::TempDir;

use super::ground::{Fate, Ground, Longest, Own, PARENT, Tally, Word};
use super::keys::{Found, GROUPS, Ledger, Scope};
use super::worker::{LOCK_DEADLINE, verify};
use super::{SITES, Site, WORKERS};
use crate::common::{Child, Random, disk_folder, fast_folder, version_of};

/// File systems count a block of extents with the file.
const EXTENT_BLOCK: u64 = 4096;

/// How many hits the parent holds.
const HELD: usize = 6;

/// How long the storm lasts.
#[derive(Debug, Clone, Copy)]
pub enum Length {
    Rounds(u64),
    Time(Duration),
}

pub struct Storm {
    pub site: &'static Site,
    number: usize,
    pub folder: TempDir,
    pub tier: TempDir,
    board: TempDir,
    pub ground: Ground,
    /// A cache that is attached all the time.
    pub cache: Cache,
    random: Random,
    workers: Vec<Child>,
    held: Vec<Held>,
    last: Stats,
}

/// A hit that the parent holds for many rounds, longer than any worker lives.
struct Held {
    hit: OwnedHit,
    version: u32,
    since: Instant,
}

impl Storm {
    pub fn new(number: usize, seed: u64) -> Self {
        let site = &SITES[number];
        let folder = if site.on_disk { disk_folder() } else { fast_folder() };
        let (tier, board) = (fast_folder(), fast_folder());
        let ground = Ground::create(&board.path().join("board"), Ledger::keys(site));
        let options = site.options(Some(tier.path())).size(site.sizes[0]).secure_erase(site.erases);
        let cache = options.lock_deadline(LOCK_DEADLINE).open(folder.path().join("volume")).unwrap();
        let random = Random(seed.wrapping_mul(31).wrapping_add(number as u64));
        Self {
            site,
            number,
            folder,
            tier,
            board,
            ground,
            cache,
            random,
            workers: Vec::new(),
            held: Vec::new(),
            last: Stats::default(),
        }
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join("volume")
    }

    pub fn rage(&mut self, length: Length) {
        self.workers = (0..WORKERS).map(|worker| self.start(worker)).collect();
        let start = Instant::now();
        let mut round = 0;
        let goes_on = |round| match length {
            Length::Rounds(rounds) => round < rounds,
            Length::Time(time) => start.elapsed() < time,
        };
        while goes_on(round) {
            let operations = 100 + self.random.below(if matches!(length, Length::Time(_)) { 3000 } else { 400 });
            self.let_work(operations, None);
            self.round();
            self.hold();
            self.assert_cap();
            self.take_stats();
            round += 1;
        }
        self.ground.word(Word::End).store(1, SeqCst);
        self.workers.drain(..).for_each(Child::finish);
        while !self.held.is_empty() {
            self.let_go(0);
        }
        self.take_stats();
    }

    fn start(&mut self, worker: u64) -> Child {
        let own = |own| self.ground.own(worker, own);
        for word in [Own::Fate, Own::Leave, Own::Streaming] {
            own(word).store(0, SeqCst);
        }
        let life = own(Own::Life).load(SeqCst);
        let numbers = [self.number as u64, worker, life, self.random.next()].map(|number| number.to_string());
        let [site, worker, life, seed] = &numbers;
        let (volume, board) = (self.path(), self.board.path().join("board"));
        let [volume, board, tier] = [&volume, &board, self.tier.path()].map(|path| path.to_str().unwrap());
        Child::start("worker", &[site, volume, board, tier, worker, life, seed])
    }

    /// Waits until the workers have done this much together, or for this time if some can't work.
    fn let_work(&mut self, operations: u64, most: Option<Duration>) {
        let (start, until) = (Instant::now(), self.ground.get(Word::Work) + operations);
        while self.ground.get(Word::Work) < until && most.is_none_or(|most| start.elapsed() < most) {
            for (number, worker) in self.workers.iter_mut().enumerate() {
                assert!(!worker.has_ended(), "{}: worker {number} has ended by itself", self.site.name);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn round(&mut self) {
        let worker = self.random.below(WORKERS);
        match self.random.below(100) {
            0..20 => self.kill(worker),
            20..50 => {
                let fate = Fate::DEATHS[self.random.below(Fate::DEATHS.len() as u64) as usize];
                self.doom(worker, fate);
            }
            50..54 => self.send_away(worker),
            54..68 => self.stop(worker),
            68..84 => self.purge(),
            84..92 => self.resize(),
            92..95 => self.tell(Tally::Sweep, |cache| cache.sweep().map(drop)),
            95..97 => self.tell(Tally::Sync, Cache::sync),
            _ => verify(&self.ground, &self.cache),
        }
    }

    /// Holds a few hits for long, and checks each when it lets it go.
    fn hold(&mut self) {
        let place = self.random.below(HELD as u64 * 4) as usize;
        if place < self.held.len() && self.held.len() == HELD {
            self.let_go(place);
        }
        if self.held.len() == HELD {
            return;
        }
        let ledger = Ledger::new(&self.ground, self.site);
        let key = ledger.any_key(self.random.below(ledger.versioned()));
        let known = ledger.known(&key);
        match self.cache.get(&key.name) {
            Ok(Some(hit)) => {
                let version = ledger.check_hit(&key, &known, &hit, Found::Fresh);
                self.held.push(Held { hit: hit.into_owned(), version, since: Instant::now() });
            }
            Ok(None) | Err(Error::Busy { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }

    fn let_go(&mut self, place: usize) {
        let Held { hit, version, since } = self.held.swap_remove(place);
        assert_eq!(version_of(hit.key(), hit.value()), version);
        self.ground.count(Tally::Held);
        self.ground.note(Longest::Hold, since.elapsed());
    }

    /// Does something besides the workers, unless the volume is too busy.
    fn tell(&self, tally: Tally, work: impl FnOnce(&Cache) -> eyewall::Result<()>) {
        match work(&self.cache) {
            Ok(()) => self.ground.count(tally),
            Err(Error::Busy { .. }) => self.ground.count(Tally::Busy),
            Err(error) => panic!("{error}"),
        }
    }

    fn kill(&mut self, worker: u64) {
        self.condemn(worker, Tally::Kill);
        self.workers[worker as usize].kill_all();
        self.bury(worker);
        self.workers[worker as usize] = self.start(worker);
    }

    fn doom(&mut self, worker: u64, fate: Fate) {
        self.condemn(worker, Tally::Kill);
        self.ground.count(fate.tally());
        self.ground.own(worker, Own::Fate).store(fate as u64 + 1, SeqCst);
        self.workers[worker as usize].wait_until_killed();
        self.bury(worker);
        self.workers[worker as usize] = self.start(worker);
    }

    /// Counts the worker as dead from here on.
    fn condemn(&self, worker: u64, tally: Tally) {
        self.ground.own(worker, Own::Life).fetch_add(1, SeqCst);
        self.ground.word(Word::Kills).fetch_add(1, SeqCst);
        self.ground.count(tally);
    }

    fn bury(&self, worker: u64) {
        self.ground.end_resize(worker);
        self.ground.word(Word::Kills).fetch_add(1, SeqCst);
    }

    fn send_away(&mut self, worker: u64) {
        self.ground.own(worker, Own::Leave).store(1, SeqCst);
        let status = self.workers[worker as usize].wait();
        assert!(status.success(), "{}: worker {worker}: {status}", self.site.name);
        self.ground.own(worker, Own::Life).fetch_add(1, SeqCst);
        self.ground.count(Tally::Leave);
        self.workers[worker as usize] = self.start(worker);
    }

    /// Stops a worker, anywhere or in a lock. Does something else meanwhile, and then continues or kills it.
    fn stop(&mut self, worker: u64) {
        self.ground.word(Word::Stopped).fetch_add(1, SeqCst);
        self.ground.word(Word::Stops).fetch_add(1, SeqCst);
        self.ground.count(Tally::Stop);
        if self.random.below(2) == 0 {
            self.ground.count(Tally::StopInLock);
            self.ground.own(worker, Own::Fate).store(Fate::StopInLock as u64 + 1, SeqCst);
            self.workers[worker as usize].wait_until_stopped();
        } else {
            self.workers[worker as usize].signal(libc::SIGSTOP);
        }
        let time = Duration::from_millis(self.random.below(300));
        self.let_work(300, Some(time));
        match self.random.below(4) {
            0 => self.purge(),
            1 => self.resize(),
            _ => {}
        }
        self.ground.word(Word::Stops).fetch_add(1, SeqCst);
        if self.random.below(5) == 0 {
            self.kill(worker);
        } else {
            self.workers[worker as usize].signal(libc::SIGCONT);
        }
        self.ground.word(Word::Stopped).fetch_sub(1, SeqCst);
    }

    fn purge(&mut self) {
        let group = self.random.below(GROUPS);
        let scope = match self.random.below(9) {
            0 => Scope::Everything,
            1..5 => Scope::Prefix(group),
            _ => Scope::Tag(group),
        };
        let (kind, tally) = match self.random.below(2) {
            0 => (Purge::Hard, Tally::PurgeHard),
            _ => (Purge::Soft, Tally::PurgeSoft),
        };
        let ledger = Ledger::new(&self.ground, self.site);
        self.tell(tally, |cache| ledger.purge(cache, scope, kind));
    }

    fn resize(&mut self) {
        let shape = Options::new().size(self.site.sizes[self.random.below(3) as usize]);
        self.take_stats();
        self.ground.begin_resize(PARENT);
        self.tell(Tally::Resize, |cache| cache.resize(&shape).map(drop));
        self.ground.end_resize(PARENT);
    }

    /// The file keeps the size that was asked for, whatever happens.
    fn assert_cap(&self) {
        let file = self.path().metadata().unwrap();
        assert!(self.site.sizes.contains(&file.len()), "{} bytes", file.len());
        assert!(file.blocks() * 512 <= file.len() + EXTENT_BLOCK, "{} blocks of {}", file.blocks(), file.len());
    }

    /// Counts the growth of the statistics since the last time. A resize sets them to zero, so the growth between the
    /// last look and a worker's resize isn't counted.
    fn take_stats(&mut self) {
        let now = match self.cache.stats() {
            Ok(stats) => stats,
            Err(Error::Busy { .. }) => return,
            Err(error) => panic!("{error}"),
        };
        assert_eq!((now.resets, now.evictions_damaged, now.unclean_drops), (0, 0, 0), "{now:?}");
        let counts = |stats: &Stats| {
            let tier = stats.tier.clone().unwrap_or_default();
            [
                (Tally::Takeover, stats.repairs),
                (Tally::Evicted, stats.evictions_cold + stats.evictions_index + stats.evictions_expired),
                (Tally::Purged, stats.evictions_purged),
                (Tally::TierHit, tier.hits),
                (Tally::TierVoid, tier.voids),
            ]
        };
        for ((tally, new), (_, old)) in counts(&now).into_iter().zip(counts(&self.last)) {
            self.ground.add(tally, new.checked_sub(old).unwrap_or(new));
        }
        self.last = now;
    }
}
