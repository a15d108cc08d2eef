//! Stores that processes share, measured by the program itself; and how LMDB is shared.
#![cfg(test)]

use std::fs;
use std::process::Command;

use eyewall_bench::peer::Peer;
use eyewall_bench::store::Place;
use eyewall_bench::suite::recorder::{self, Sample};
use eyewall_bench_compare::{ALL, LMDB, LMDB_WRITE_MAP};

/// One size, three processes, as short as possible.
const DEFINITION: &str = r#"
title = "Small"
about = "Gets."
order = 1
procedure = "gets-by-processes"
seed = 7
repetitions = { whole = 1, quick = 1 }
minutes = { whole = 0.1, quick = 0.1 }
stores = ["eyewall", "LMDB", "LMDB, write map", "memcached", "redis-server", "quick_cache"]
[settings]
set = "64 KB"
objects_max = 50
keys = 64
milliseconds = 1
[parameters.size]
title = "size"
values = ["1 KB"]
[parameters.consume]
title = "what is read"
values = ["every byte"]
[parameters.readers]
title = "readers"
values = [3]
[measures.gets]
title = "gets"
unit = "1/s"
better = "higher"
[[views]]
name = "table"
title = "Gets"
kind = "table"
measures = ["gets"]
"#;

fn is_there(name: &str) -> bool {
    let peer: &Peer = ALL.iter().find(|peer| peer.name == name).unwrap();
    (peer.look)().inspect_err(|why| eprintln!("{name} skipped: {why}")).is_ok()
}

#[test]
fn processes_share_every_store_that_is_no_cache_of_one() {
    let folder = tempfile::tempdir().unwrap();
    let [workloads, record, scratch] = ["workloads", "record", "scratch"].map(|name| folder.path().join(name));
    for directory in [&workloads, &scratch] {
        fs::create_dir(directory).unwrap();
    }
    fs::write(workloads.join("small.toml"), DEFINITION).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_eyewall-bench"))
        .args(["run", "--quick", "--workloads"])
        .arg(&workloads)
        .arg("--out")
        .arg(&record)
        .arg("--disk-dir")
        .arg(&scratch)
        .arg("--shm-dir")
        .arg(&scratch)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let samples: Vec<Sample> = recorder::read_lines(&record.join("samples.jsonl")).unwrap();
    let notes = recorder::read_head(&record).unwrap().notes.join("\n");
    for name in ["eyewall", "LMDB", "LMDB, write map", "memcached", "redis-server"] {
        let count = samples.iter().filter(|sample| sample.store == name).count();
        assert_eq!(count, usize::from(is_there(name)), "{name}: {notes}");
    }
    assert!(notes.contains("quick_cache: processes can't share it"), "{notes}");
    assert_eq!(fs::read_dir(&scratch).unwrap().count(), 0);
}

#[test]
fn an_environment_is_opened_again_but_never_twice_by_one_process_nor_where_there_is_none() {
    for peer in [LMDB, LMDB_WRITE_MAP] {
        let directory = tempfile::tempdir().unwrap();
        let place = Place::new(directory.path(), 1 << 20, 100);
        let refused = peer.attach(&place).err().unwrap().to_string();
        assert!(refused.starts_with(&format!("{}: there is no environment in", peer.name)), "{refused}");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0, "a look makes nothing");
        let store = (peer.open)(&place).unwrap();
        store.put_one(b"key", b"value").unwrap();
        assert!(peer.attach(&place).is_err(), "{}", peer.name);
        drop(store);
        let again = peer.attach(&place).unwrap();
        assert_eq!(again.name(), peer.name);
        assert_eq!(again.get_one(b"key").unwrap().as_deref(), Some(&b"value"[..]));
        again.put_one(b"key", b"another").unwrap();
        assert_eq!(again.get_one(b"key").unwrap().as_deref(), Some(&b"another"[..]));
    }
}
