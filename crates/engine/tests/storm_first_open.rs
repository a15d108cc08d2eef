//! The processes of a server start together, and the volume doesn't exist yet. All of them open the same new file,
//! each finds what the others put, and the folder contains only the volume. Some are killed meanwhile.

#![cfg(test)]

mod common;

use std::path::Path;
use std::sync::atomic::Ordering::SeqCst;

use common::{Board, Child, disk_folder, fast_folder, fork, play, say, soak, value, version_of};
use eyewall::Options;

const PROCESSES: usize = 8;

#[test]
fn child() {
    play(&[("opens at once", opens_at_once), ("is killed", is_killed)]);
}

const READY: usize = 0;
const ROUND: usize = 1;
const PUT: usize = 2;
const DONE: usize = 3;

/// As close together as possible: all spin until the word is given.
fn wait_for(board: &Board, word: usize, least: u64) {
    while board.word(word).load(SeqCst) < least {
        std::thread::yield_now();
    }
}

fn key(round: u64, process: usize) -> Vec<u8> {
    format!("round {round} process {process}").into_bytes()
}

/// Forks eight processes that play all rounds together.
fn opens_at_once(arguments: &[&str]) {
    let (folder, rounds): (&Path, u64) = (Path::new(arguments[0]), arguments[1].parse().unwrap());
    let board = Board::create(&folder.join("board"), 8);
    std::fs::create_dir(folder.join("volumes")).unwrap();
    let path = folder.join("volumes").join("volume");
    let processes: Vec<_> =
        (0..PROCESSES).map(|process| fork(|| play_all_rounds(process, rounds, &path, &board))).collect();
    for round in 1..=rounds {
        let everybody = round * PROCESSES as u64;
        wait_for(&board, READY, everybody);
        board.word(ROUND).store(round, SeqCst);
        wait_for(&board, DONE, everybody);
        let names: Vec<_> =
            path.parent().unwrap().read_dir().unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["volume"], "round {round}");
        // When they are gone, the volume is clean, complete and in order.
        let cache = Options::new().create(false).open(&path).unwrap();
        assert_eq!(cache.stats().unwrap().entries, PROCESSES as u64);
        assert_eq!(cache.stats().unwrap().unclean_drops, 0);
        assert!(cache.verify().unwrap().is_sound());
        drop(cache);
        std::fs::remove_file(&path).unwrap();
    }
    processes.into_iter().for_each(common::Forked::finish);
    say("done");
}

fn play_all_rounds(process: usize, rounds: u64, path: &Path, board: &Board) {
    for round in 1..=rounds {
        board.word(READY).fetch_add(1, SeqCst);
        wait_for(board, ROUND, round);
        let cache = Options::new().size(1 << 20).open(path).unwrap();
        let own = key(round, process);
        cache.put(&own, value(&own, process as u32, 3000)).unwrap();
        board.word(PUT).fetch_add(1, SeqCst);
        wait_for(board, PUT, round * PROCESSES as u64);
        for other in 0..PROCESSES {
            let key = key(round, other);
            let hit = cache.get(&key).unwrap().unwrap();
            assert_eq!(version_of(&key, &hit), other as u32);
        }
        assert_eq!(cache.stats().unwrap().attachments, 1, "nobody came first twice");
        drop(cache);
        board.word(DONE).fetch_add(1, SeqCst);
    }
}

fn run(folder: &Path, rounds: u64) {
    let mut child = Child::start("opens at once", &[folder.to_str().unwrap(), &rounds.to_string()]);
    child.expect("done");
    child.finish();
}

#[test]
fn eight_processes_that_create_one_volume_all_get_the_same() {
    run(fast_folder().path(), soak(40, 350));
    run(disk_folder().path(), soak(10, 150));
}

/// Creates volumes until it is killed.
fn is_killed(arguments: &[&str]) {
    let path = Path::new(arguments[0]);
    say("creating");
    loop {
        drop(Options::new().size(1 << 20).open(path).unwrap());
        let _ = std::fs::remove_file(path);
    }
}

#[test]
fn a_creator_that_is_killed_leaves_a_whole_volume_or_nothing() {
    for folder in [fast_folder(), disk_folder()] {
        let path = folder.path().join("volume");
        for round in 0..soak(20_u64, 200) {
            let mut creator = Child::start("is killed", &[path.to_str().unwrap()]);
            creator.expect("creating");
            // Not needed for correctness; it catches the process at work.
            std::thread::sleep(std::time::Duration::from_micros(round * 37 % 3000));
            creator.kill();
            assert!(folder.path().read_dir().unwrap().all(|entry| entry.unwrap().file_name() == "volume"));
            let cache = Options::new().size(1 << 20).open(&path).unwrap();
            cache.put("key", "value").unwrap();
            assert_eq!(cache.stats().unwrap().processes, 1);
        }
    }
}
