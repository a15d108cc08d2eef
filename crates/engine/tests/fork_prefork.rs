//! A server opens its cache, holds some hits, and forks sixteen workers. They work. Some drop the hits that they
//! inherited, some try to read them, some are killed halfway. What the server holds stays as it is while all of them
//! overwrite everything else. The volume is a file, or has no name.

#![cfg(test)]

mod common;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use common::{Board, Child, Forked, Random, fast_folder, fork, play, say, soak, value, version_of};
use eyewall::{Cache, Change, Hit, Options, OwnedHit, PutOptions, Updated};

const CHILDREN: usize = 16;

#[test]
fn child() {
    play(&[("server", server)]);
}

fn key(number: u64) -> Vec<u8> {
    format!("key {number}").into_bytes()
}

fn held_key(number: usize) -> Vec<u8> {
    format!("held {number}").into_bytes()
}

fn server(arguments: &[&str]) {
    // On a busy machine, a child may not run for long while it holds a lock.
    let options = Options::new().size(4 << 20).lock_deadline(Duration::from_mins(1));
    let cache = match arguments[0] {
        "" => options.anonymous().unwrap(),
        path => options.open(path).unwrap(),
    };
    let board = Board::create(Path::new(arguments[1]), 8);
    for round in 0..soak(3, 40) {
        board.word(READY).store(0, SeqCst);
        serve(&cache, &board, round);
    }
    say("done");
}

const READY: usize = 0;

fn serve(cache: &Cache, board: &Board, round: u64) {
    for number in 0..12 {
        let key = held_key(number);
        // The large ones are long enough for a page of their own.
        cache.put(&key, value(&key, round as u32, 100 + number * 1500)).unwrap();
    }
    let mut hits: Vec<Hit<'_>> = (0..10).filter_map(|number| cache.get(held_key(number)).unwrap()).collect();
    let mut owned: Vec<OwnedHit> =
        (10..12).filter_map(|number| cache.get(held_key(number)).unwrap()).map(Hit::into_owned).collect();
    assert_eq!((hits.len(), owned.len()), (10, 2));
    assert!(hits.iter().all(|hit| !hit.is_copy()));
    let mut children: Vec<(usize, Forked)> = Vec::new();
    for child in 0..CHILDREN {
        let forked = fork(|| {
            match child % 4 {
                0 => {}
                1 => (hits.clear(), owned.clear()).0,
                2 => hits.iter().for_each(assert_unreadable),
                _ => work_forever(cache, child as u64, board.word(READY)),
            }
            work(cache, child as u64, 2000);
        });
        children.push((child, forked));
    }
    while board.word(READY).load(SeqCst) < CHILDREN as u64 / 4 {
        std::thread::yield_now();
    }
    for (child, forked) in children {
        if child % 4 == 3 { forked.kill() } else { forked.finish() }
    }
    for hit in &hits {
        assert_eq!(version_of(hit.key(), hit), round as u32);
    }
    for hit in &owned {
        assert_eq!(version_of(hit.key(), hit.value()), round as u32);
    }
    let counts = cache.stats().unwrap();
    assert_eq!((counts.processes, counts.pins, counts.threads), (1, 12, 2), "only the parent's: {counts:?}");
    hits.clear();
    owned.clear();
    let counts = cache.stats().unwrap();
    assert_eq!((counts.pins, counts.resets, counts.evictions_damaged), (0, 0, 0));
    assert!(cache.verify().unwrap().is_sound());
    work(cache, 99, 1000);
}

/// Reading it panics with the reason, and does no harm.
fn assert_unreadable(hit: &Hit<'_>) {
    std::panic::set_hook(Box::new(|_| {}));
    let panic = catch_unwind(AssertUnwindSafe(|| hit.len())).unwrap_err();
    let why = panic.downcast_ref::<&str>().map(ToString::to_string).or(panic.downcast_ref().cloned());
    assert!(why.is_some_and(|why: String| why.contains("inherited through fork; get it again")));
    drop(std::panic::take_hook());
}

fn work_forever(cache: &Cache, seed: u64, ready: &AtomicU64) {
    work(cache, seed, 500);
    ready.fetch_add(1, SeqCst);
    loop {
        work(cache, seed, 1000);
    }
}

/// Writes about as much as the volume holds, and checks what it reads.
fn work(cache: &Cache, seed: u64, operations: u64) {
    let mut random = Random(seed);
    let own = format!("only {} {seed}", std::process::id());
    cache.put(&own, value(own.as_bytes(), 1, 100)).unwrap();
    for _ in 0..operations {
        let key = key(random.below(4000));
        if random.below(3) == 0 {
            cache.put(&key, value(&key, 1, 10 + random.below(4000) as usize)).unwrap();
        } else if let Some(hit) = cache.get(&key).unwrap() {
            version_of(&key, &hit);
        }
    }
    let updated = cache.update(&own, &PutOptions::new(), |_| Change::Remove).unwrap();
    assert_eq!(updated, Updated::Removed);
}

fn run(path: &str, board: &Path) {
    let mut server = Child::start("server", &[path, board.to_str().unwrap()]);
    server.expect("done");
    server.finish();
}

#[test]
fn hits_of_the_parent_survive_its_children() {
    let folder = fast_folder();
    run(folder.path().join("volume").to_str().unwrap(), &folder.path().join("board"));
}

#[test]
fn an_anonymous_volume_is_shared_by_parent_and_children() {
    let folder = fast_folder();
    run("", &folder.path().join("board"));
}
