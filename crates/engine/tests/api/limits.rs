//! Everything beyond a limit is refused by an error of its own, which names the limit and what to do. Existing
//! entries stay.

use eyewall::{Cache, Change, Error, Options, PutOptions};

fn small() -> Cache {
    Options::new().size(512 << 10).heap().unwrap()
}

fn says(error: &Error, text: &str) {
    assert!(error.to_string().contains(text), "{error}");
}

#[test]
fn a_key_has_at_least_one_byte() {
    let cache = small();
    for error in [
        cache.get("").map(drop).unwrap_err(),
        cache.put("", "value").map(drop).unwrap_err(),
        cache.add("", "value", &PutOptions::new()).map(drop).unwrap_err(),
        cache.remove("").map(drop).unwrap_err(),
        cache.contains("").map(drop).unwrap_err(),
        cache.update("", &PutOptions::new(), |_| Change::Keep).map(drop).unwrap_err(),
    ] {
        assert!(matches!(error, Error::KeyEmpty));
        says(&error, "the key is empty; a key has at least one byte");
    }
}

#[test]
fn a_key_is_at_most_as_long_as_an_entry() {
    let cache = small();
    let max = cache.entry_bytes_max() as usize - 44;
    cache.put(vec![1; max], "").unwrap();
    let error = cache.put(vec![1; max + 1], "").unwrap_err();
    assert!(matches!(error, Error::KeyTooLong { bytes, max: found } if bytes == max + 1 && found == max));
    says(&error, "use a hash of it as key");
    let large = Options::new().size(8 << 20).heap().unwrap();
    large.put(vec![1; 65_535], "").unwrap();
    assert_eq!(large.get(vec![1; 65_535]).unwrap().unwrap().key().len(), 65_535);
    assert!(matches!(large.get(vec![1; 65_536]).unwrap_err(), Error::KeyTooLong { max: 65_535, .. }));
}

#[test]
fn metadata_has_at_most_65535_bytes() {
    let cache = Options::new().size(8 << 20).heap().unwrap();
    let metadata = vec![7; 65_536];
    cache.put_with("key", "value", &PutOptions::new().metadata(&metadata[1..])).unwrap();
    assert_eq!(cache.get("key").unwrap().unwrap().metadata().len(), 65_535);
    let error = cache.put_with("key", "other", &PutOptions::new().metadata(&metadata)).unwrap_err();
    assert!(matches!(error, Error::MetadataTooLong { bytes: 65_536, max: 65_535 }));
    says(&error, "store it as part of the value");
    assert_eq!(&*cache.get("key").unwrap().unwrap(), b"value", "the old entry stays");
}

#[test]
fn an_entry_is_at_most_as_large_as_the_volume_accepts() {
    let cache = small();
    let max = cache.entry_bytes_max();
    assert_eq!(max, 32 << 10);
    let most = max as usize - 44 - 3;
    cache.put("key", vec![1; most]).unwrap();
    let error = cache.put("key", vec![2; most + 1]).unwrap_err();
    assert!(
        matches!(error, Error::EntryTooLarge { bytes, max: found } if bytes == max + 8 && found == max),
        "{error:?}"
    );
    says(&error, "create it with a larger entry_bytes_max (at most a quarter of its size) or split the value");
    assert_eq!(&*cache.get("key").unwrap().unwrap(), vec![1; most]);
    assert_eq!(cache.stats().unwrap().entries, 1, "nothing was evicted for it");
}

#[test]
fn a_quarter_of_the_volume_is_the_largest_entry_of_all() {
    let size = 1 << 20;
    let options = Options::new().size(size);
    for bytes in [(size / 4) + 1, 95, 0] {
        let error = options.clone().entry_bytes_max(bytes).heap().unwrap_err();
        assert!(matches!(error, Error::EntryMaxOutOfRange { max, .. } if max == size / 4), "{error:?}");
        says(&error, "for this size it must lie between 96 and 262144");
    }
    let cache = options.entry_bytes_max(size / 4).heap().unwrap();
    for round in 0..20 {
        let value = vec![round; (size / 4) as usize - 48];
        cache.put([round], &value).unwrap();
        assert_eq!(&*cache.get([round]).unwrap().unwrap(), &value[..], "it fits any number of times");
    }
}

#[test]
fn sizes_have_bounds() {
    for bytes in [0, 4096, (512 << 10) - 1] {
        let error = Options::new().size(bytes).heap().unwrap_err();
        assert!(matches!(error, Error::SizeTooSmall { min: 524_288, .. }), "{error:?}");
        says(&error, "is too small; the smallest has 524288");
    }
    let error = Options::new().size(1 << 50).heap().unwrap_err();
    assert!(matches!(error, Error::SizeTooLarge { .. }), "{error:?}");
    says(&error, "is too large; the largest with these options has");
}
