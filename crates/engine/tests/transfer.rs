//! A cache moves: its entries leave one volume as a stream of bytes, and enter another. The stream may have been cut
//! off, changed, or made by an attacker.
#![cfg(test)]

mod common;

use std::io::{self, Read, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use eyewall::{Broken, Cache, Error, Import, ImportError, Imported, Lookup, Options, Purge, PutOptions, seams};

use common::Random;

const MINUTE_MS: i64 = 60_000;

/// The whole process shares one clock.
fn clock() -> MutexGuard<'static, ()> {
    static CLOCK: Mutex<()> = Mutex::new(());
    CLOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

fn cache() -> Cache {
    Options::new().size(4 << 20).heap().unwrap()
}

fn exported(cache: &Cache) -> Vec<u8> {
    let mut stream = Vec::new();
    let exported = cache.export(&mut stream).unwrap();
    assert_eq!(exported.bytes, stream.len() as u64);
    stream
}

fn broken(stream: &[u8]) -> ImportError {
    match cache().import(stream, &Import::new()) {
        Err(Error::Import(error)) => *error,
        other => panic!("{other:?}"),
    }
}

/// All that a user can see of the entries.
fn seen(cache: &Cache) -> Vec<String> {
    let mut all: Vec<_> = cache
        .iter_all()
        .map(|hit| {
            let minutes = |left: Option<Duration>| left.map(|left| (left.as_secs_f64() / 60.0).round());
            format!(
                "{:?} {:?} {:?} {:?} {:?} stale {} {:?} {:?} age {}",
                hit.key(),
                hit.value().len(),
                hit.metadata(),
                hit.tags().collect::<Vec<_>>(),
                hit.reason(),
                hit.is_stale(),
                minutes(hit.ttl_left()),
                minutes(hit.usable_left()),
                hit.age().as_secs() / 60,
            )
        })
        .collect();
    all.sort();
    all
}

/// An entry of every kind.
fn some() -> Cache {
    let cache = cache();
    let minutes = Duration::from_mins;
    cache.put("plain", "value").unwrap();
    cache.put("empty", "").unwrap();
    cache.put([0, 255, 0], vec![7; 30_000]).unwrap();
    let all = PutOptions::new().ttl(minutes(60)).stale(minutes(600)).metadata(b"text/html").tags(&["one", "other"]);
    cache.put_with("all", "value", &all).unwrap();
    cache.put_with("stale", "value", &PutOptions::new().ttl(minutes(1)).stale(minutes(90))).unwrap();
    cache.put_negative("gone", 410, &PutOptions::new().ttl(minutes(30)).tags(&["one"])).unwrap();
    cache.put_with("over", "value", &PutOptions::new().ttl(minutes(1))).unwrap();
    cache.put_with("soft", "value", &PutOptions::new().tags(&["soft"])).unwrap();
    cache.purge_tag("soft", Purge::Soft).unwrap();
    seams::shift_clock(5 * MINUTE_MS);
    cache
}

#[test]
fn an_import_restores_what_was_exported() {
    let _clock = clock();
    let from = some();
    let stream = exported(&from);
    let to = cache();
    let imported = to.import(&stream[..], &Import::new()).unwrap();
    assert_eq!((imported.entries, imported.bytes), (7, stream.len() as u64), "{imported:?}");
    assert_eq!(seen(&to), seen(&from));
    assert!(matches!(to.lookup("stale").unwrap(), Lookup::Stale(_)));
    assert!(matches!(to.lookup("soft").unwrap(), Lookup::Stale(_)));
    assert!(matches!(to.lookup("gone").unwrap(), Lookup::Negative(hit) if hit.reason() == Some(410)));
    to.purge_tag("one", Purge::Hard).unwrap();
    assert!(to.get("all").unwrap().is_none(), "tags mean the same in the new volume");
    assert_eq!(exported(&to).len(), exported(&to).len());
    assert!(to.verify().unwrap().is_sound());
}

#[test]
fn the_time_since_the_export_counts() {
    let _clock = clock();
    let stream = exported(&some());
    let to = cache();
    // On a machine with another clock since boot, half an hour later.
    seams::shift_wall_clock(30 * MINUTE_MS);
    let imported = to.import(&stream[..], &Import::new()).unwrap();
    assert_eq!((imported.entries, imported.expired), (6, 1), "the negative entry has expired: {imported:?}");
    let hit = to.get("all").unwrap().unwrap();
    let minutes = |span: Duration| (span.as_secs_f64() / 60.0).round();
    assert!((minutes(hit.age()) - 35.0).abs() < 0.1 && (minutes(hit.ttl_left().unwrap()) - 25.0).abs() < 0.1);
    seams::shift_wall_clock(-60 * MINUTE_MS);
    assert_eq!(cache().import(&stream[..], &Import::new()).unwrap().entries, 7, "a clock that is behind takes nothing");
    seams::shift_wall_clock(30 * MINUTE_MS);
}

#[test]
fn existing_entries_are_replaced_or_kept() {
    let from = cache();
    from.put("one", "new").unwrap();
    from.put("two", "new").unwrap();
    let stream = exported(&from);
    let to = cache();
    to.put("one", "old").unwrap();
    let kept = to.import(&stream[..], &Import::new().keep(true)).unwrap();
    assert_eq!((kept.entries, kept.kept, &*to.get("one").unwrap().unwrap()), (1, 1, &b"old"[..]));
    to.import(&stream[..], &Import::new()).unwrap();
    assert_eq!(&*to.get("one").unwrap().unwrap(), b"new");
}

#[test]
fn a_stream_cut_off_anywhere_is_noticed() {
    let from = cache();
    from.put_with("first", "value", &PutOptions::new().metadata(b"meta").tags(&["tag"])).unwrap();
    from.put("second", "another").unwrap();
    let stream = exported(&from);
    for length in 0..stream.len() {
        let error = broken(&stream[..length]);
        assert!(matches!(error.broken, Broken::CutOff), "{length}: {error}");
        let whole = [11 + 4 + 4 + 5, 6 + 7].map(|parts| 48 + parts);
        let ends = [32 + whole[0], 32 + whole[1], 32 + whole[0] + whole[1]];
        let (first, both) = (ends[0].min(ends[1]), ends[2]);
        let entries = u64::from(length >= first) + u64::from(length >= both);
        assert!(error.imported.entries.abs_diff(entries) <= 1, "{length}: {error}");
        assert!(error.imported.bytes <= length as u64);
    }
}

#[test]
fn a_changed_bit_anywhere_is_noticed() {
    let from = cache();
    from.put_with("first", "value", &PutOptions::new().metadata(b"meta").tags(&["tag"])).unwrap();
    from.put_negative("second", 404, &PutOptions::new()).unwrap();
    let stream = exported(&from);
    for bit in 0..stream.len() * 8 {
        let mut changed = stream.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        let error = broken(&changed);
        match error.broken {
            Broken::Foreign => assert!(bit < 64),
            Broken::Version { found, supported } => assert!((64..96).contains(&bit) && found != supported),
            // A length that grew asks for more bytes than there are.
            Broken::CutOff | Broken::Damaged { .. } => assert!(bit >= 96),
            other => panic!("{bit}: {other}"),
        }
    }
}

#[test]
fn other_files_and_other_versions_are_told_apart() {
    assert!(matches!(broken(b"once upon a time").broken, Broken::Foreign));
    let mut stream = exported(&cache());
    stream[8] = 9;
    let error = broken(&stream);
    assert!(matches!(error.broken, Broken::Version { found: 9, supported: 1 }));
    assert!(error.to_string().contains("version 9"), "{error}");
}

#[test]
fn entries_before_an_error_stay_and_are_counted() {
    let from = cache();
    for number in 0..10 {
        from.put(format!("key {number}"), "value").unwrap();
    }
    let stream = exported(&from);
    let to = cache();
    let Err(Error::Import(error)) = to.import(&stream[..stream.len() - 30], &Import::new()) else { panic!("cut off") };
    assert_eq!((error.imported.entries, to.iter().count()), (9, 9));
    assert!(error.to_string().ends_with("(9 entries before that were imported)"), "{error}");
}

#[test]
fn a_smaller_volume_takes_what_fits() {
    let from = Options::new().size(16 << 20).heap().unwrap();
    from.put("large", vec![1; 500_000]).unwrap();
    for number in 0..2000 {
        from.put(format!("key {number}"), vec![2; 1000]).unwrap();
    }
    let stream = exported(&from);
    let to = Options::new().size(1 << 20).heap().unwrap();
    let imported = to.import(&stream[..], &Import::new()).unwrap();
    assert_eq!((imported.entries, imported.too_large), (2000, 1));
    let left = to.iter().count();
    assert!((100..2000).contains(&left), "{left}");
    assert!(to.verify().unwrap().is_sound());
}

#[test]
fn a_false_length_takes_no_memory() {
    // A value of many gigabytes, of which no byte comes.
    let mut stream = exported(&cache());
    stream.truncate(32);
    let mut head = [0_u8; 40];
    (head[0], head[2]) = (1, 3);
    for value in [1_u64 << 20, 1 << 40, u64::MAX] {
        head[8..16].copy_from_slice(&value.to_le_bytes());
        let lie: Vec<u8> = stream.iter().chain(&head).chain(b"keyvalue").copied().collect();
        assert!(matches!(broken(&lie).broken, Broken::CutOff));
    }
}

#[test]
fn noise_never_panics() {
    let _clock = clock();
    let mut random = Random(7);
    let valid = exported(&some());
    let to = cache();
    for _ in 0..common::soak(500, 50_000) {
        let mut noise = valid.clone();
        for _ in 0..=random.below(6) {
            let at = random.below(noise.len() as u64) as usize;
            noise[at] = random.next() as u8;
        }
        let _ = to.import(&noise[..], &Import::new());
    }
    assert!(to.verify().unwrap().is_sound());
}

/// Reads or writes a little, then fails.
struct Failing(usize);

impl Read for Failing {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::ErrorKind::ConnectionReset.into())
    }
}

impl Write for Failing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let some = bytes.len().min(self.0);
        self.0 -= some;
        if some == 0 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(some) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn read_and_write_errors_are_reported() {
    let _clock = clock();
    let cache = some();
    assert!(matches!(cache.export(Failing(100)), Err(Error::Export { .. })));
    let Err(Error::Import(error)) = cache.import(Failing(0), &Import::new()) else { panic!("it can't be read") };
    assert!(matches!(error.broken, Broken::Read(_)) && error.imported == Imported::default());
}

#[test]
fn a_read_only_opener_exports_and_does_not_import() {
    let folder = common::fast_folder();
    let path = folder.path().join("volume");
    let writer = Options::new().size(1 << 20).open(&path).unwrap();
    writer.put_with("key", "value", &PutOptions::new().tags(&["tag"])).unwrap();
    let reader = Options::new().read_only(true).open(&path).unwrap();
    let stream = exported(&reader);
    assert_eq!(cache().import(&stream[..], &Import::new()).unwrap().entries, 1);
    assert!(matches!(reader.import(&stream[..], &Import::new()), Err(Error::ReadOnly { .. })));
}
