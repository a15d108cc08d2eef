//! A process is stopped (SIGSTOP) while it holds a stripe's lock. However long that lasts, nobody robs it. Writers
//! get `Busy` at their lock deadline, and readers don't notice. It is continued, and everything goes on.

#![cfg(test)]

mod common;

use std::time::Duration;

use common::{Child, fast_folder, listen, play, say, soak, value, version_of};
use eyewall::{Cache, Change, Error, Options, PutOptions, seams};

#[test]
fn child() {
    play(&[("stops in a put", stops_in_a_put), ("stops in an update", stops_in_an_update)]);
}

fn stops_in_a_put(arguments: &[&str]) {
    let cache = Cache::open(arguments[0]).unwrap();
    let stores: i64 = arguments[1].parse().unwrap();
    say("ready");
    listen();
    seams::stop_after(stores);
    for version in 0..20 {
        cache.put("stopped", value(b"stopped", version, 400)).unwrap();
    }
    say("done");
    listen();
}

fn is_busy<T: std::fmt::Debug>(outcome: eyewall::Result<T>) {
    let error = outcome.unwrap_err();
    assert!(matches!(error, Error::Busy { .. }), "{error:?}");
    assert!(error.to_string().contains("its holder is stopped, or the machine is overloaded; retry"), "{error}");
}

#[test]
fn a_stopped_holder_is_never_robbed() {
    for stores in 0..soak(8, 50) {
        let folder = fast_folder();
        let path = folder.path().join("volume");
        // One stripe, so there is one lock.
        let options = Options::new().size(512 << 10).lock_deadline(Duration::from_millis(12));
        let cache = options.open(&path).unwrap();
        cache.put("known", value(b"known", 7, 500)).unwrap();
        let mut holder = Child::start("stops in a put", &[path.to_str().unwrap(), &stores.to_string()]);
        holder.expect("ready");
        holder.tell("go");
        holder.wait_until_stopped();
        for _ in 0..3 {
            is_busy(cache.put("other", "value"));
            is_busy(cache.remove("known"));
            is_busy(cache.update("known", &PutOptions::new(), |_| Change::Remove));
            is_busy(cache.verify());
            assert_eq!(version_of(b"known", &cache.get("known").unwrap().unwrap()), 7);
            if let Some(hit) = cache.get("stopped").unwrap() {
                version_of(b"stopped", &hit);
            }
        }
        // Another process doesn't rob it either, nor does one that attaches now.
        is_busy(options.open(&path).unwrap().put("other", "value"));
        holder.signal(libc::SIGCONT);
        holder.expect("done");
        cache.put("other", "value").unwrap();
        assert_eq!(version_of(b"stopped", &cache.get("stopped").unwrap().unwrap()), 19);
        let stats = cache.stats().unwrap();
        assert_eq!((stats.repairs, stats.processes), (0, 2));
        assert!(stats.busy >= 12, "{}", stats.busy);
        assert!(cache.verify().unwrap().is_sound());
        holder.tell("end");
        holder.finish();
    }
}

fn stops_in_an_update(arguments: &[&str]) {
    let cache = Cache::open(arguments[0]).unwrap();
    cache
        .update("counter", &PutOptions::new(), |_| {
            say("claimed");
            // SAFETY: no pointers are involved.
            unsafe { libc::raise(libc::SIGSTOP) };
            Change::Put(value(b"counter", 1, 100))
        })
        .unwrap();
    say("done");
}

#[test]
fn a_stopped_updater_keeps_its_claim_and_nothing_else() {
    let folder = fast_folder();
    let path = folder.path().join("volume");
    let cache = Options::new().size(1 << 20).lock_deadline(Duration::from_millis(30)).open(&path).unwrap();
    let mut updater = Child::start("stops in an update", &[path.to_str().unwrap()]);
    updater.expect("claimed");
    updater.wait_until_stopped();
    is_busy(cache.update("counter", &PutOptions::new(), |_| Change::Put(vec![2])));
    cache.update("other", &PutOptions::new(), |_| Change::Put(vec![2])).unwrap();
    cache.put("third", "value").unwrap();
    assert!(cache.get("counter").unwrap().is_none());
    updater.signal(libc::SIGCONT);
    updater.expect("done");
    updater.finish();
    cache
        .update("counter", &PutOptions::new(), |hit| {
            assert_eq!(version_of(b"counter", hit.unwrap()), 1);
            Change::Keep
        })
        .unwrap();
}
