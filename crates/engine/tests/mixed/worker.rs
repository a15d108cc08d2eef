//! A worker of the storm. It does a mix of everything until it is told to end or is killed, and checks each answer
//! against the ledger.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

use eyewall::{Cache, Change, Check, Counter, Error, Hit, Lookup, Options, Purge, PutOptions, Touch, Updated, seams};

use super::ground::{Fate, Ground, Longest, Own, Tally, Word};
use super::keys::{self, COUNTERS, Found, GROUPS, Key, Ledger, SHARED, Scope};
use super::{SITES, Site, WORKERS};
use crate::common::{Random, value, version_of};

const HELD: usize = 14;
/// For how many operations some hits are held.
const LONG_HOLD: u64 = 20_000;
/// Many wait for a stopped process, so it is stopped only briefly.
pub const LOCK_DEADLINE: Duration = Duration::from_millis(250);
const DAY_MS: i64 = 86_400_000;

/// A hit that is held for a while, until it is looked at again.
struct Held<'a> {
    hit: Hit<'a>,
    version: u32,
    since: Instant,
    /// The operation at which it is let go.
    until: u64,
}

pub struct Worker<'a> {
    pub cache: &'a Cache,
    pub ground: &'a Ground,
    pub ledger: Ledger<'a>,
    pub site: &'a Site,
    pub me: u64,
    pub life: u64,
    pub random: Random,
    held: VecDeque<Held<'a>>,
    operations: u64,
    /// By how much its clocks were stepped.
    wall_ms: i64,
    boot_ms: i64,
}

/// The role's arguments: site, volume, board, folder of the tier (or nothing), worker, life, seed.
pub fn work(arguments: &[&str]) {
    let [site, volume, board, tier, me, life, seed] = arguments else { panic!("{arguments:?}") };
    seams::ignore_waiting();
    let (site, me) = (&SITES[site.parse::<usize>().unwrap()], me.parse().unwrap());
    // Workers without a tier change entries of which the others have copies.
    let tier = Some(Path::new(tier)).filter(|_| me % 3 != 0);
    let options = site.options(tier).create(false).lock_deadline(LOCK_DEADLINE);
    let ground = Ground::open(board);
    // A process that attaches or moves over may be stopped while all the others wait for it.
    let cache = loop {
        match options.open(volume) {
            Err(Error::Busy { .. }) => ground.count(Tally::Busy),
            opened => break opened.unwrap(),
        }
    };
    let worker = Worker {
        cache: &cache,
        ground: &ground,
        ledger: Ledger::new(&ground, site),
        site,
        me,
        life: life.parse().unwrap(),
        random: Random(seed.parse().unwrap()),
        held: VecDeque::new(),
        operations: 0,
        wall_ms: 0,
        boot_ms: 0,
    };
    worker.run();
}

impl<'a> Worker<'a> {
    fn run(mut self) {
        self.step_clocks();
        while self.ground.get(Word::End) == 0 && self.ground.own(self.me, Own::Leave).load(SeqCst) == 0 {
            if let Some(fate) = self.fate() {
                self.meet(fate);
            }
            self.operations += 1;
            self.one();
            self.ground.word(Word::Work).fetch_add(1, SeqCst);
            while self.held.len() > HELD || self.held.front().is_some_and(|held| held.until <= self.operations) {
                self.let_go();
            }
        }
        while !self.held.is_empty() {
            self.let_go();
        }
    }

    fn one(&mut self) {
        match self.random.below(1000) {
            0..240 => self.look(),
            240..300 => self.hold(),
            300..430 => self.put(),
            430..470 => self.write_shared(),
            470..500 => self.remove(),
            500..540 => self.update(),
            540..570 => self.touch(),
            570..600 => self.many(),
            600..630 => self.put_negative(),
            630..680 => self.increment(),
            680..800 => self.fill(),
            800..850 => self.stream(),
            850..930 => self.follow(),
            930..940 => self.iterate(),
            940 => self.purge(),
            941..943 => self.look_after(),
            943 => self.step_clocks(),
            944 if self.random.below(10) == 0 => self.resize(),
            _ => self.let_go(),
        }
    }

    /// The fate that the parent has chosen for this worker.
    fn fate(&self) -> Option<Fate> {
        let told = self.ground.own(self.me, Own::Fate).swap(0, SeqCst).checked_sub(1)?;
        Some(Fate::DEATHS.get(told as usize).copied().unwrap_or(Fate::StopInLock))
    }

    /// Goes on to where it is to die or to stop. If it doesn't get there, another store is the last one.
    fn meet(&mut self, fate: Fate) {
        match fate {
            Fate::InLock => seams::die_after(self.random.below(100) as i64),
            Fate::InFill => self.die_in_fill(),
            Fate::InStream => self.die_in_stream(),
            Fate::InUpdate => self.die_in_update(),
            Fate::InResize => {
                seams::die_after(self.random.below(3000) as i64);
                self.resize();
            }
            Fate::InPurge => {
                seams::die_after(self.random.below(4) as i64);
                self.purge();
            }
            Fate::StopInLock => seams::stop_after(self.random.below(60) as i64),
        }
    }

    /// Ends as by SIGKILL from another process.
    pub fn die() -> ! {
        // SAFETY: no pointers are involved, and it is this process's own id.
        unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
        unreachable!("nobody survives that");
    }

    /// Runs one operation, and notes its duration and its outcome.
    pub fn timed<T>(&self, operation: impl FnOnce(&'a Cache) -> eyewall::Result<T>) -> Option<T> {
        let met = || [self.ground.get(Word::Stops), self.ground.resizes_begun(), self.ground.get(Word::Kills)];
        let (stopped, resized) = (self.ground.get(Word::Stopped) > 0, self.ground.resizes_ended());
        let before = met();
        let start = Instant::now();
        let outcome = operation(self.cache);
        let took = start.elapsed();
        let longest = match met() {
            [stops, ..] if stopped || stops != before[0] => Longest::WaitInStop,
            [_, begun, _] if begun != resized => Longest::WaitInResize,
            [.., kills] if kills != before[2] => Longest::WaitInKill,
            _ => Longest::Wait,
        };
        self.ground.note(longest, took);
        outcome.map_err(|error| self.refused(&error)).ok()
    }

    /// Does the same for an operation that waits for storage or reads the whole volume.
    fn timed_at_length<T>(&self, operation: impl FnOnce(&'a Cache) -> eyewall::Result<T>) -> Option<T> {
        let start = Instant::now();
        let outcome = operation(self.cache);
        self.ground.note(Longest::Storage, start.elapsed());
        outcome.map_err(|error| self.refused(&error)).ok()
    }

    /// Accepts the answers that a storm allows; anything else is a fault.
    pub fn refused(&self, error: &Error) {
        self.ground.count(match error {
            Error::Pinned { .. } => Tally::Pinned,
            Error::Busy { .. } => Tally::Busy,
            // The volume was resized between the choice of a length and the put.
            Error::EntryTooLarge { .. } => Tally::TooLarge,
            Error::Interrupted { .. } => Tally::Interrupted,
            error => panic!("{error}"),
        });
    }

    pub fn own_key(&mut self) -> Key {
        let any = self.random.below(self.site.own);
        Ledger::own_key(any - any % WORKERS + self.me)
    }

    pub fn any_key(&mut self) -> Key {
        // Some keys are used more often, so that they are promoted, and copied to the tier.
        let any = self.random.below(self.ledger.versioned());
        let hot = self.random.below(4) > 0;
        self.ledger.any_key(if hot { any / 8 } else { any })
    }

    pub fn bytes(&mut self) -> usize {
        let most = (self.cache.entry_bytes_max() - 400).min(150_000);
        let (from, to) = match self.random.below(100) {
            0..70 => (10, 2000),
            70..95 => (2000, 20_000),
            _ => (20_000, most),
        };
        (from + self.random.below(to - from)) as usize
    }

    fn look(&mut self) {
        let key = self.any_key();
        self.ground.count(Tally::Get);
        let known = self.ledger.known(&key);
        match self.random.below(4) {
            0 => drop(self.get(&key)),
            1 => {
                let mut copied = Vec::new();
                if self.timed(|cache| cache.get_into(&key.name, &mut copied)).flatten().is_some() {
                    self.ground.count(Tally::FoundFresh);
                    self.ledger.check(&key, &known, &copied, Found::Fresh);
                }
            }
            2 => self.look_up(&key),
            _ => {
                if let Some(hit) = self.timed(|cache| cache.peek(&key.name)).flatten() {
                    self.ledger.check_hit(&key, &known, &hit, Found::Fresh);
                }
            }
        }
    }

    fn get(&self, key: &Key) -> Option<(Hit<'a>, u32)> {
        let known = self.ledger.known(key);
        let hit = self.timed(|cache| cache.get(&key.name)).flatten()?;
        self.ground.count(Tally::FoundFresh);
        let version = self.ledger.check_hit(key, &known, &hit, Found::Fresh);
        Some((hit, version))
    }

    fn look_up(&self, key: &Key) {
        let known = self.ledger.known(key);
        let (tally, hit, found) = match self.timed(|cache| cache.lookup(&key.name)) {
            Some(Lookup::Fresh(hit)) => (Tally::FoundFresh, hit, Found::Fresh),
            Some(Lookup::Stale(hit)) => (Tally::FoundStale, hit, Found::Usable),
            Some(Lookup::Negative(hit)) => (Tally::FoundNegative, hit, Found::Usable),
            Some(Lookup::Miss) | None => return,
        };
        self.ground.count(tally);
        self.ledger.check_hit(key, &known, &hit, found);
    }

    fn hold(&mut self) {
        let key = self.any_key();
        self.ground.count(Tally::Get);
        let Some((hit, version)) = self.get(&key) else { return };
        let operations = if self.random.below(8) == 0 { LONG_HOLD } else { 100 };
        let until = self.operations + self.random.below(operations);
        let at = self.held.partition_point(|held| held.until <= until);
        self.held.insert(at, Held { hit, version, since: Instant::now(), until });
    }

    /// Checks that a hit is unchanged since it was found, whatever has happened.
    fn let_go(&mut self) {
        let Some(held) = self.held.pop_front() else { return };
        assert_eq!(version_of(held.hit.key(), &held.hit), held.version);
        assert!(held.hit.is_intact());
        self.ground.count(Tally::Held);
        self.ground.note(Longest::Hold, held.since.elapsed());
    }

    /// Begins a version of an own key, lets `store` store it, and notes the outcome for all.
    pub fn write<T>(
        &mut self,
        key: &Key,
        store: impl FnOnce(&Self, u32, &[u8], &PutOptions<'_>) -> Option<T>,
    ) -> Option<T> {
        let bytes = self.bytes();
        let version = self.ledger.begin(key);
        self.ledger.forget_times(key);
        let value = value(&key.name, version, bytes);
        let stored = key.with_options(&keys::metadata(bytes), |options| store(self, version, &value, options));
        if stored.is_some() {
            self.stored(key, version);
        }
        stored
    }

    pub fn stored(&self, key: &Key, version: u32) {
        self.ledger.finish(key, version);
        if let Some(times) = key.times() {
            self.ledger.note_times(key, version, times);
        }
    }

    fn put(&mut self) {
        let key = self.own_key();
        let how = self.random.below(8);
        let name = key.name.clone();
        let tally = if how < 6 { Tally::Put } else { Tally::Add };
        self.ground.count(tally);
        self.write(&key, |worker, _, value, options| {
            worker.timed(|cache| match how {
                0..6 => cache.put_with(&name, value, options).map(Some),
                6 => cache.add(&name, value, options),
                _ => {
                    let serial = cache.peek(&name)?.map_or(1, |hit| hit.serial());
                    cache.replace_if(&name, serial, value, options)
                }
            })?
        });
    }

    fn write_shared(&mut self) {
        let (number, bytes, version) = (self.random.below(SHARED), self.bytes(), self.random.next() as u32);
        let key = Ledger::shared_key(number);
        let options = PutOptions::new();
        match self.random.below(5) {
            0 => {
                self.ground.count(Tally::Get);
                if let Some(hit) = self.timed(|cache| cache.get(&key)).flatten() {
                    assert_eq!(hit.key(), key);
                    version_of(&key, &hit);
                }
            }
            1 => {
                self.ground.count(Tally::Remove);
                self.timed(|cache| cache.remove(&key));
            }
            2 => {
                self.ground.count(Tally::Add);
                self.timed(|cache| cache.add(&key, value(&key, version, bytes), &options));
            }
            _ => {
                self.ground.count(Tally::Put);
                self.timed(|cache| cache.put(&key, value(&key, version, bytes)));
            }
        }
    }

    fn remove(&mut self) {
        let key = self.own_key();
        let version = self.ledger.begin(&key);
        self.ground.count(Tally::Remove);
        if self.timed(|cache| cache.remove(&key.name)).is_some() {
            self.ledger.finish(&key, version);
        }
    }

    fn update(&mut self) {
        let key = self.own_key();
        self.ground.count(Tally::Update);
        let (removes, known) = (self.random.below(6) == 0, self.ledger.known(&key));
        self.write(&key, |worker, version, value, options| {
            let updated = worker.timed(|cache| {
                cache.update(&key.name, options, |hit| {
                    worker.ledger.is_at_work(&key, version);
                    if let Some(hit) = hit {
                        worker.ledger.check_hit(&key, &known, hit, Found::Fresh);
                    }
                    if removes { Change::Remove } else { Change::Put(value.to_vec()) }
                })
            })?;
            match updated {
                Updated::Stored(_) | Updated::Removed => Some(()),
                // By a purge.
                Updated::Superseded => {
                    worker.ground.count(Tally::Superseded);
                    None
                }
                Updated::Kept => panic!("a change was asked for"),
            }
        });
    }

    fn touch(&mut self) {
        let key = self.own_key();
        if !key.is_touched() {
            return;
        }
        self.ground.count(Tally::Touch);
        let touch = match key.times() {
            Some((fresh, stale)) => Touch::new().ttl(Some(fresh), stale),
            None if self.random.below(2) == 0 => Touch::new(),
            None => Touch::new().metadata(b"touched"),
        };
        self.ledger.forget_times(&key);
        let touched = self.timed(|cache| cache.touch(&key.name, &touch));
        let known = self.ledger.known(&key);
        let Some(times) = key.times().filter(|_| touched == Some(true)) else { return };
        let Some(hit) = self.timed(|cache| cache.lookup(&key.name)).and_then(Lookup::fresh) else { return };
        let version = self.ledger.check_hit(&key, &known, &hit, Found::Fresh);
        self.ledger.note_times(&key, version, times);
    }

    fn many(&mut self) {
        self.ground.count(Tally::Many);
        if self.random.below(3) == 0 {
            let mut keys: Vec<Key> = (0..4).map(|_| self.own_key()).filter(|key| key.times().is_none()).collect();
            keys.sort_by_key(|key| key.number);
            keys.dedup_by_key(|key| key.number);
            for tagged in [false, true] {
                let keys: Vec<&Key> = keys.iter().filter(|key| key.is_tagged() == tagged).collect();
                // Tags belong to a group.
                if let [key, others @ ..] = &keys[..] {
                    let group = key.number % GROUPS;
                    self.put_many(
                        std::iter::once(*key)
                            .chain(others.iter().copied().filter(|other| !tagged || other.number % GROUPS == group)),
                    );
                }
            }
            return;
        }
        let keys: Vec<Key> = (0..12).map(|_| self.any_key()).collect();
        let known: Vec<_> = keys.iter().map(|key| self.ledger.known(key)).collect();
        let names: Vec<&[u8]> = keys.iter().map(|key| &key.name[..]).collect();
        let found = self.timed(|cache| cache.get_many(&names)).unwrap_or_default();
        for ((key, known), hit) in keys.iter().zip(&known).zip(&found) {
            if let Some(hit) = hit {
                self.ledger.check_hit(key, known, hit, Found::Fresh);
            }
        }
    }

    /// For keys with the same options and values of one length.
    fn put_many<'k>(&self, keys: impl Iterator<Item = &'k Key>) {
        const BYTES: usize = 700;
        let begun: Vec<(&Key, u32)> = keys.map(|key| (key, self.ledger.begin(key))).collect();
        let Some((first, _)) = begun.first() else { return };
        let entries: Vec<_> =
            begun.iter().map(|(key, version)| (&key.name, value(&key.name, *version, BYTES))).collect();
        let done = first.with_options(&keys::metadata(BYTES), |options| {
            self.timed(|cache| Ok(cache.put_many(&entries, options))).unwrap_or_default()
        });
        for ((key, version), done) in begun.iter().zip(done) {
            match done {
                Ok(_) => self.ledger.finish(key, *version),
                Err(error) => self.refused(&error),
            }
        }
    }

    fn put_negative(&mut self) {
        let key = self.own_key();
        let version = self.ledger.begin(&key);
        self.ledger.forget_times(&key);
        self.ground.count(Tally::Negative);
        let stored =
            key.with_options(b"", |options| self.timed(|cache| cache.put_negative(&key.name, version as u16, options)));
        if stored.is_some() {
            self.stored(&key, version);
        }
    }

    fn increment(&mut self) {
        let (number, by) = (self.random.below(COUNTERS), 1 + self.random.below(5));
        self.ledger.add(number, by);
        self.ground.count(Tally::Increment);
        let key = Ledger::counter_key(number);
        if let Some(value) = self.timed(|cache| cache.increment(&key, by as i64, &Counter::new())) {
            self.ledger.check_counter(number, value);
            assert!(value >= by as i64, "counter {number} is {value} after an increment by {by}");
        }
    }

    fn iterate(&mut self) {
        self.ground.count(Tally::Iterate);
        let count = self.random.below(60) as usize;
        for hit in self.cache.iter().take(count) {
            check_any(&self.ledger, &hit);
        }
    }

    fn purge(&mut self) {
        let scope = match self.random.below(40) {
            0 => Scope::Everything,
            1..20 => Scope::Prefix(self.random.below(GROUPS)),
            _ => Scope::Tag(self.random.below(GROUPS)),
        };
        let (kind, tally) = match self.random.below(2) {
            0 => (Purge::Hard, Tally::PurgeHard),
            _ => (Purge::Soft, Tally::PurgeSoft),
        };
        if self.timed(|cache| self.ledger.purge(cache, scope, kind)).is_some() {
            self.ground.count(tally);
        }
    }

    fn look_after(&mut self) {
        match self.random.below(6) {
            0 => {
                self.ground.count(Tally::Sync);
                self.timed_at_length(Cache::sync);
            }
            1 => verify(self.ground, self.cache),
            _ => {
                self.ground.count(Tally::Sweep);
                self.timed_at_length(Cache::sweep);
            }
        }
    }

    fn resize(&mut self) {
        let shape = Options::new().size(self.site.sizes[self.random.below(3) as usize]);
        self.ground.begin_resize(self.me);
        let resized = self.timed_at_length(|cache| cache.resize(&shape));
        self.ground.end_resize(self.me);
        self.ground.count(if resized.is_some() { Tally::Resize } else { Tally::ResizeBusy });
    }

    /// The wall clock may be set to anything; the clocks since boot of two processes differ only a little.
    fn step_clocks(&mut self) {
        let wall = self.random.below(2000) as i64 * DAY_MS - 1000 * DAY_MS;
        seams::shift_wall_clock(wall - std::mem::replace(&mut self.wall_ms, wall));
        self.ground.count(Tally::WallStep);
        let boot = self.random.below(keys::CLOCKS_DIFFER_MS) as i64;
        seams::shift_clock(boot - std::mem::replace(&mut self.boot_ms, boot));
        self.ground.count(Tally::BootStep);
    }
}

/// Checks the volume while all are working on it.
pub fn verify(ground: &Ground, cache: &Cache) {
    match cache.verify_with(&Check::new().deep(true)) {
        Ok(report) => assert!(report.is_sound(), "{report:?}"),
        Err(Error::Busy { .. }) => return ground.count(Tally::Busy),
        Err(error) => panic!("{error}"),
    }
    ground.count(Tally::Verify);
}

/// Checks an entry that wasn't looked for.
pub fn check_any(ledger: &Ledger<'_>, hit: &Hit<'_>) {
    if let Some(key) = ledger.key_of(hit.key()) {
        // It may be older than what is known by now.
        if hit.reason().is_none() {
            version_of(&key.name, hit);
        }
    } else if let Some(number) = hit.key().strip_prefix(b"counter ") {
        let number = std::str::from_utf8(number).unwrap().parse().unwrap();
        ledger.check_counter(number, i64::from_le_bytes((**hit).try_into().unwrap()));
    } else {
        version_of(hit.key(), hit);
    }
}
