//! The peer that works like most web caches. It must store and find values, and clean down to 75 % by access time.

use std::time::{Duration, SystemTime};

use eyewall_bench::error::Error;
use eyewall_bench::store::{Handle, Store};
use eyewall_bench::stores::Files;
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_OMIT, utimensat};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const BLOCK_BYTES: usize = 4096;

fn value(files: &Files, key: &[u8]) -> std::result::Result<Option<Vec<u8>>, Error> {
    let mut found = None;
    files.handle().get(key, |bytes| found = Some(bytes.to_vec()))?;
    Ok(found)
}

fn key(index: usize) -> [u8; 8] {
    (index as u64).to_be_bytes()
}

/// Sets a file's access time back by hours, newest for the highest index.
fn age(root: &std::path::Path, index: usize) -> Result<()> {
    let name = format!("{index:016x}");
    for directory in std::fs::read_dir(root)? {
        let path = directory?.path().join(&name);
        if path.exists() {
            let hour_ago = SystemTime::now() - Duration::from_secs(3600 - index as u64);
            let seconds = hour_ago.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
            let times = Timestamps {
                last_access: Timespec { tv_sec: seconds as _, tv_nsec: 0 },
                last_modification: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT as _ },
            };
            utimensat(CWD, &path, &times, AtFlags::empty())?;
        }
    }
    Ok(())
}

#[test]
fn what_was_put_is_found_and_nothing_else() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let files = Files::create(directory.path(), 1 << 20)?;
    let large: Vec<u8> = (0..200_000_u32).map(|number| number as u8).collect();
    files.handle().put(b"a/b?c", b"first")?;
    files.handle().put(b"large", &large)?;
    files.handle().put(b"a/b?c", b"second")?;
    assert_eq!(value(&files, b"a/b?c")?.as_deref(), Some(&b"second"[..]));
    assert_eq!(value(&files, b"large")?, Some(large));
    assert_eq!(value(&files, b"absent")?, None);
    assert!(files.handle().put(b"", b"no key").is_err());
    assert!(files.handle().put(&[b'x'; 121], b"too long a name").is_err());
    Ok(())
}

#[test]
fn above_the_cap_it_cleans_to_three_quarters_oldest_access_first() -> Result<()> {
    let directory = tempfile::tempdir()?;
    // The janitor's own check comes a second after the start. This test starts one at once.
    let files = Files::create(directory.path(), 40 * BLOCK_BYTES as u64)?;
    for index in 0..40 {
        files.handle().put(&key(index), &[7; 100])?;
    }
    for index in 0..40 {
        age(directory.path(), index)?;
    }
    assert_eq!(files.clean()?, 40 * BLOCK_BYTES as u64, "at the cap nothing is cleaned");
    // A get makes the oldest file the newest.
    assert!(value(&files, &key(0))?.is_some());
    files.handle().put(&key(40), &[7; 100])?;
    let remaining = files.clean()?;
    assert!(remaining <= 30 * BLOCK_BYTES as u64, "{remaining}");
    assert!(remaining > 28 * BLOCK_BYTES as u64, "no more than needed is cleaned: {remaining}");
    assert!(value(&files, &key(0))?.is_some(), "used last");
    assert!(value(&files, &key(40))?.is_some(), "put last");
    assert!(value(&files, &key(1))?.is_none(), "used longest ago");
    assert!(value(&files, &key(39))?.is_some(), "used lately");
    Ok(())
}
