//! A volume without a name is opened again by its descriptor, as another process opens it.

use eyewall::{Error, Options};

#[test]
fn both_see_the_entries_of_each_other() {
    let options = Options::new().size(1 << 20);
    let first = options.anonymous().unwrap();
    let descriptor = first.share().unwrap().expect("it is in memory");
    let second = options.shared(descriptor).unwrap();
    first.put("a", "1").unwrap();
    second.put("b", "2").unwrap();
    assert_eq!((&*second.get("a").unwrap().unwrap(), &*first.get("b").unwrap().unwrap()), (&b"1"[..], &b"2"[..]));
    drop(first);
    assert_eq!(&*second.get("b").unwrap().unwrap(), b"2", "it lives as long as one of them");
    let third = options.shared(second.share().unwrap().unwrap()).unwrap();
    assert_eq!(&*third.get("a").unwrap().unwrap(), b"1");
}

#[test]
fn another_size_is_refused() {
    let cache = Options::new().size(1 << 20).anonymous().unwrap();
    let refused = Options::new().size(2 << 20).shared(cache.share().unwrap().unwrap());
    assert!(matches!(refused, Err(Error::OptionsDiffer { .. })), "{refused:?}");
}

#[test]
fn a_volume_with_a_path_or_on_the_heap_has_no_descriptor_to_share() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options::new().size(1 << 20);
    assert!(options.open(folder.path().join("site.eye")).unwrap().share().unwrap().is_none());
    assert!(options.heap().unwrap().share().unwrap().is_none());
}
