//! An operator inspects a volume: what lies where, which processes use it, which entries it has, and which of them
//! are hot.

use std::collections::HashMap;

use eyewall::{Cache, Extent, ExtentKind, Options, RingKind};

use crate::common::{Random, fast_folder};

fn extents(cache: &Cache) -> Vec<Extent> {
    let mut all = Vec::new();
    cache.extents(|some| all.extend_from_slice(some)).unwrap();
    all
}

/// Entries of many sizes. Some are overwritten, some removed, and both rings have turned.
fn lived(cache: &Cache) {
    let mut random = Random(3);
    for _ in 0..4000 {
        let key = random.below(1500).to_string();
        cache.put(&key, vec![1; random.below(3000) as usize]).unwrap();
        if random.below(10) == 0 {
            cache.remove(random.below(1500).to_string()).unwrap();
        }
    }
}

#[test]
fn extents_tile_the_rings_and_agree_with_the_statistics() {
    let cache = Options::new().size(4 << 20).entry_bytes_max(16 << 10).heap().unwrap();
    lived(&cache);
    let held: Vec<_> = cache.iter().take(3).collect();
    let (all, stats) = (extents(&cache), cache.stats().unwrap());
    let mut ends: HashMap<(u64, RingKind), (u64, ExtentKind)> = HashMap::new();
    for extent in &all {
        let former = ends.insert((extent.stripe, extent.ring), (extent.start + extent.bytes, extent.kind));
        assert_eq!(former.map_or(0, |(end, _)| end), extent.start, "{extent:?}");
        assert!(former.is_none_or(|(_, kind)| kind != extent.kind) && extent.bytes > 0, "{extent:?}");
    }
    assert_eq!(ends.len() as u64, 2 * stats.stripes);
    let sum =
        |kind: ExtentKind| all.iter().filter(|extent| extent.kind == kind).map(|extent| extent.bytes).sum::<u64>();
    assert_eq!(all.iter().map(|extent| extent.bytes).sum::<u64>(), stats.data_bytes + sum(ExtentKind::Index));
    assert!(sum(ExtentKind::Pinned) > 0 && sum(ExtentKind::Unreadable) == 0);
    assert_eq!(sum(ExtentKind::Live) + sum(ExtentKind::Pinned), stats.live_bytes);
    assert_eq!(
        (sum(ExtentKind::Free), sum(ExtentKind::Dead), sum(ExtentKind::Filler)),
        (stats.free_bytes, stats.dead_bytes, stats.filler_bytes)
    );
    drop(held);
}

#[test]
fn the_parts_add_up_to_the_whole() {
    let cache = Options::new().size(4 << 20).entry_bytes_max(16 << 10).heap().unwrap();
    lived(&cache);
    let (details, stats) = (cache.details().unwrap(), cache.stats().unwrap());
    assert_eq!(details.stripes.len() as u64, stats.stripes);
    assert_eq!(details.stripes.iter().map(|stripe| stripe.entries).sum::<u64>(), stats.entries);
    assert_eq!(details.stripes.iter().map(|stripe| stripe.evictions_cold).sum::<u64>(), stats.evictions_cold);
    let rings = details.stripes.iter().flat_map(|stripe| stripe.rings);
    assert_eq!(rings.clone().map(|ring| ring.live_bytes).sum::<u64>(), stats.live_bytes);
    for ring in rings {
        let used = [ring.live_bytes, ring.pinned_bytes, ring.dead_bytes, ring.filler_bytes];
        let kinds = used.into_iter().chain([ring.free_bytes, ring.index_bytes]);
        assert_eq!(kinds.sum::<u64>(), ring.bytes, "{ring:?}");
        assert!(ring.head_laps >= ring.tail_laps);
    }
    assert_eq!(details.sizes.iter().map(|class| class.entries).sum::<u64>(), stats.entries);
    assert_eq!(details.sizes.iter().map(|class| class.bytes).sum::<u64>(), stats.live_bytes);
    assert!(details.sizes.windows(2).all(|pair| pair[1].from_bytes == 2 * pair[0].from_bytes));
    assert!(details.sizes.first().is_some_and(|class| class.entries > 0));
}

#[test]
fn processes_are_listed_with_their_pins() {
    let folder = fast_folder();
    let path = folder.path().join("volume");
    let cache = Options::new().size(1 << 20).open(&path).unwrap();
    cache.put("key", "value").unwrap();
    let _held = cache.get("key").unwrap();
    cache.get("nothing").unwrap();
    let reader = Options::new().read_only(true).open(&path).unwrap();
    for looker in [&cache, &reader] {
        let processes = looker.details().unwrap().processes;
        assert_eq!(processes.len(), 1);
        let only = &processes[0];
        assert_eq!((only.pid, only.threads, only.pins), (std::process::id(), 1, 1));
        assert_eq!((only.hits, only.misses), (1, 1));
        assert!(only.since().elapsed().is_ok_and(|ago| ago.as_secs() < 3600));
        let of_data = |extent: &&Extent| extent.kind != ExtentKind::Index;
        let bytes = |extents: Vec<Extent>| extents.iter().filter(of_data).map(|extent| extent.bytes).sum::<u64>();
        assert_eq!(bytes(extents(looker)), looker.stats().unwrap().data_bytes);
    }
}

#[test]
fn entries_with_hits_are_hot() {
    let cache = Options::new().size(1 << 20).heap().unwrap();
    for number in 0..100 {
        cache.put(number.to_string(), vec![0; number]).unwrap();
    }
    for _ in 0..5 {
        cache.get("42").unwrap();
    }
    cache.get("7").unwrap();
    let hot = cache.hottest(10).unwrap();
    let seen: Vec<_> = hot.iter().map(|hot| (hot.key.as_slice(), hot.frequency, hot.value_bytes)).collect();
    assert_eq!(seen, [(&b"42"[..], 5, 42), (&b"7"[..], 1, 7)]);
    assert_eq!(cache.hottest(1).unwrap().len(), 1);
}
