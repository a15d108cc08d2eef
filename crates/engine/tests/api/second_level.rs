//! A second level: a fill asks it before the caller makes the value, and offers it what was made.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use eyewall::{Cache, Fill, FillOptions, Filled, Foreign, Made, Options, Purge, PutOptions, SecondLevel};

/// What a test's second level was asked and offered.
#[derive(Debug, Default)]
struct Shared {
    has: Mutex<Option<Foreign>>,
    asked: Mutex<u32>,
    offered: Mutex<Vec<(Vec<u8>, Foreign, u32)>>,
    /// Purged while it answers.
    purged: Mutex<Option<Cache>>,
}

impl SecondLevel for Shared {
    fn ask(&self, _key: &[u8]) -> Option<Foreign> {
        *self.asked.lock().unwrap() += 1;
        if let Some(cache) = self.purged.lock().unwrap().take() {
            cache.purge_tag("post-7", Purge::Hard).unwrap();
        }
        self.has.lock().unwrap().clone()
    }

    fn offer(&self, made: &Made<'_>) {
        let foreign = Foreign {
            value: made.value.to_vec(),
            metadata: made.metadata.to_vec(),
            tags: made.tags.iter().map(|tag| (*tag).to_owned()).collect(),
            ttl: made.ttl,
            stale: made.stale,
        };
        self.offered.lock().unwrap().push((made.key.to_vec(), foreign, made.begun.number()));
    }
}

fn foreign() -> Foreign {
    Foreign {
        value: b"of another".to_vec(),
        metadata: b"text/html".to_vec(),
        tags: vec!["post-7".to_owned()],
        ttl: Some(Duration::from_mins(1)),
        stale: Duration::from_mins(10),
    }
}

fn fill<'a>(cache: &'a Cache, key: &str) -> Filled<'a> {
    let put = PutOptions::new().ttl(Duration::from_mins(1)).metadata(b"own").tags(&["tag"]);
    let made = || Ok::<_, Infallible>(Fill::Value(b"made".to_vec()));
    cache.get_or_fill(key, Duration::from_secs(5), &FillOptions::new().put(put), made).unwrap()
}

#[test]
fn a_fill_gets_what_the_second_level_has() {
    let shared = Arc::new(Shared::default());
    let cache = Options::new().heap().unwrap().with_second_level(shared.clone());
    *shared.has.lock().unwrap() = Some(foreign());
    let Filled::Hit(hit) = fill(&cache, "key") else { panic!("it is not filled") };
    assert_eq!(
        (hit.value(), hit.metadata(), hit.tags().collect::<Vec<_>>()),
        (&b"of another"[..], &b"text/html"[..], vec!["post-7"])
    );
    assert!(hit.ttl_left().unwrap() <= Duration::from_mins(1) && hit.usable_left().unwrap() > Duration::from_mins(10));
    assert_eq!(fill(&cache, "key").value(), Some(&b"of another"[..]));
    assert_eq!((*shared.asked.lock().unwrap(), shared.offered.lock().unwrap().len()), (1, 0));
    assert!(cache.get("other").unwrap().is_none(), "a look-up asks nobody");
    assert_eq!(*shared.asked.lock().unwrap(), 1);
}

#[test]
fn a_fill_offers_what_its_caller_made() {
    let shared = Arc::new(Shared::default());
    let cache = Options::new().heap().unwrap().with_second_level(shared.clone());
    cache.purge_tag("earlier", Purge::Hard).unwrap();
    let epoch = cache.epoch().unwrap();
    assert!(matches!(fill(&cache, "key"), Filled::Stored { .. }));
    let (key, made, begun) = shared.offered.lock().unwrap().pop().unwrap();
    assert_eq!((&key[..], &made.value[..], &made.metadata[..]), (&b"key"[..], &b"made"[..], &b"own"[..]));
    assert_eq!((made.tags, made.ttl), (vec!["tag".to_owned()], Some(Duration::from_mins(1))));
    assert_eq!(begun, epoch.number());
    cache.put("other", "value").unwrap();
    assert!(shared.offered.lock().unwrap().is_empty(), "nobody knows when the work on it began");
}

#[test]
fn a_purge_during_the_question_covers_the_answer() {
    let shared = Arc::new(Shared::default());
    let cache = Options::new().heap().unwrap().with_second_level(shared.clone());
    *shared.has.lock().unwrap() = Some(foreign());
    *shared.purged.lock().unwrap() = Some(cache.clone());
    assert!(matches!(fill(&cache, "key"), Filled::Stored { .. }), "the caller makes it");
    assert_eq!(&*cache.get("key").unwrap().unwrap(), b"made");
    assert_eq!(*shared.asked.lock().unwrap(), 1);
}

#[test]
fn an_answer_that_does_not_fit_is_not_used() {
    let shared = Arc::new(Shared::default());
    let cache = Options::new().size(1 << 20).heap().unwrap().with_second_level(shared.clone());
    *shared.has.lock().unwrap() = Some(Foreign { value: vec![0; 1 << 20], ..foreign() });
    assert!(matches!(fill(&cache, "key"), Filled::Stored { .. }));
}
