//! Every store that is available here works as the workloads expect. The test names the stores that aren't available,
//! with the reason.
//!
//! The heavy stores take part with `--features all-stores`.

#![cfg(test)]

use std::collections::HashSet;
use std::path::Path;
use std::time::Duration;

use eyewall_bench::contender::Contender;
use eyewall_bench::error::{Error, Result};
use eyewall_bench::load::{Gets, Population, Puts, Sequences};
use eyewall_bench::peer::{Kind, Peer};
use eyewall_bench::random;
use eyewall_bench::store::Place;
use eyewall_bench::stores::{BARE_COPY, FILES, NOTHING, PLAIN};
use eyewall_bench::touch::Touch;
use eyewall_bench_compare::ALL;

const CAP_BYTES: u64 = 16 << 20;

/// All available stores that find stored values.
fn peers() -> Vec<Peer> {
    let found = ALL.into_iter().filter(|peer| ![BARE_COPY.name, NOTHING.name].contains(&peer.name));
    found.filter(|peer| (peer.look)().inspect_err(|why| eprintln!("{} skipped: {why}", peer.name)).is_ok()).collect()
}

fn place(directory: &Path, value_bytes: usize) -> Place<'_> {
    Place { directory, cap_bytes: CAP_BYTES, value_bytes, value_bytes_max: 0, tier_bytes: 4 << 20 }
}

/// Does something with each store, in a directory of its own.
fn with_each(value_bytes: usize, check: impl Fn(&Peer, &dyn Contender) -> Result<()>) {
    for peer in peers() {
        let directory = tempfile::tempdir().unwrap();
        let store = (peer.open)(&place(directory.path(), value_bytes)).unwrap();
        check(&peer, store.as_ref()).unwrap_or_else(|failure| panic!("{}: {failure}", peer.name));
    }
}

#[test]
fn names_are_distinct_and_absent_stores_say_what_to_do() {
    let names: HashSet<&str> = ALL.iter().map(|peer| peer.name).collect();
    assert_eq!(names.len(), ALL.len());
    let directory = tempfile::tempdir().unwrap();
    for peer in ALL {
        match (peer.look)() {
            Ok(version) => assert!(version.is_none_or(|version| version.contains('.')), "{}", peer.name),
            Err(absent) => {
                assert!(absent.0.contains("apt install") || absent.0.contains("--features"), "{absent}");
                let refused = (peer.open)(&place(directory.path(), 100)).err().unwrap().to_string();
                assert!(refused.starts_with(peer.name), "{refused}");
            }
        }
        assert_eq!(peer.name.starts_with("eyewall"), peer.kind == Kind::Ours);
    }
}

#[test]
fn every_store_gives_back_what_it_was_given() {
    let population = Population { objects: 300, value_bytes: 5_000 };
    with_each(population.value_bytes, |peer, store| {
        assert_eq!(store.name(), peer.name);
        store.fill(population)?;
        store.complete(population)?;
        store.check(population)?;
        let sequences = Sequences::random(population, 2, 100, 1);
        let gets = Gets { sequences, touch: Touch::Every, duration: Duration::from_millis(1) };
        assert!(store.gets(&gets)?.operations > 0);
        let puts = Puts { population, first: population.objects, duration: Duration::from_millis(1) };
        assert!(store.puts(&puts)?.lap.operations > 0);
        Ok(())
    });
}

#[test]
fn what_was_overwritten_has_its_new_value_and_what_was_deleted_is_gone() {
    with_each(1_000, |peer, store| {
        for bytes in [100, 0, 70_000, 1_000] {
            let value = random::filler(bytes as u64, bytes);
            store.put_one(b"overwritten", &value)?;
            assert!(store.get_one(b"overwritten")? == Some(value), "{}, {bytes} bytes", peer.name);
        }
        store.put_one(b"deleted", b"value")?;
        assert!(store.delete_one(b"deleted")?, "{}", peer.name);
        assert_eq!(store.get_one(b"deleted")?, None, "{}", peer.name);
        // Stores that don't look return true.
        store.delete_one(b"deleted")?;
        store.put_one(b"deleted", b"again")?;
        assert_eq!(store.get_one(b"deleted")?.as_deref(), Some(&b"again"[..]), "{}", peer.name);
        assert_eq!(store.get_one(b"never-put")?, None, "{}", peer.name);
        Ok(())
    });
}

#[test]
fn a_value_that_is_too_large_is_refused_as_such_and_costs_nothing() {
    let large = vec![7; CAP_BYTES as usize + 1];
    with_each(1_000, |peer, store| {
        // For plain files, the disk is the only cap.
        if peer.name == PLAIN.name {
            return Ok(());
        }
        store.put_one(b"kept", b"value")?;
        let refused = store.put_one(b"large", &large);
        assert!(matches!(refused, Err(Error::Refused { .. })), "{}: {refused:?}", peer.name);
        assert_eq!(store.get_one(b"kept")?.as_deref(), Some(&b"value"[..]), "{}", peer.name);
        assert_eq!(store.get_one(b"large")?, None, "{}", peer.name);
        Ok(())
    });
}

#[test]
fn values_as_large_as_said_to_be_typical_are_taken() {
    let value = random::filler(1, CAP_BYTES as usize / 5);
    with_each(value.len(), |peer, store| {
        store.put_one(b"large", &value)?;
        assert!(store.get_one(b"large")?.as_ref() == Some(&value), "{}", peer.name);
        Ok(())
    });
}

/// Another test covers file-per-entry, which cleans with a delay of a second: there it can be made to clean.
#[test]
fn who_evicts_keeps_the_cap_and_uses_it() {
    let population = Population { objects: 4 * CAP_BYTES / 5_000, value_bytes: 5_000 };
    with_each(population.value_bytes, |peer, store| {
        if !store.evicts() || peer.name == FILES.name {
            return Ok(());
        }
        store.fill(population)?;
        let mut held = 0;
        for index in 0..population.objects {
            held += store.get_one(&random::key(index))?.map_or(0, |value| value.len() as u64);
        }
        eprintln!("{}: {held} bytes held, {:?} taken, of {CAP_BYTES}", peer.name, store.footprint_bytes()?);
        // A tier, foyer's memory or RocksDB's memtables come on top of the cap.
        let near = CAP_BYTES / 2..=CAP_BYTES * 3 / 2;
        assert!(near.contains(&held), "{} holds {held} bytes", peer.name);
        let footprint = store.footprint_bytes()?.unwrap_or(CAP_BYTES);
        assert!(near.contains(&footprint), "{} takes {footprint} bytes", peer.name);
        Ok(())
    });
}
