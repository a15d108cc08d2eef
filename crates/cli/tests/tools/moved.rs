//! A cache moves to another volume, through a file or a pipe.

use std::process::Stdio;

use crate::command::{Volume, run};

fn some() -> Volume {
    let volume = Volume::new();
    for number in 0..50 {
        assert_eq!(run(&mut volume.command(["put", &format!("key {number}"), "--tag", "all"]), b"value").code, 0);
    }
    assert_eq!(volume.run(["put", "gone", "--negative", "404", "--ttl", "1h"]).code, 0);
    volume
}

fn keys(volume: &Volume) -> usize {
    volume.run(["ls", "--json"]).text().lines().count()
}

#[test]
fn through_a_file() {
    let (old, new) = (some(), Volume::sized("1M"));
    let file = old.folder().join("entries");
    let exported = run(old.command(["export"]).arg(&file), b"");
    assert_eq!((exported.code, exported.stderr.as_str()), (0, ""));
    let size = std::fs::metadata(&file).unwrap().len();
    assert!(exported.text().starts_with("51 entries, "), "{}", exported.text());
    let imported = run(new.command(["import", "--json"]).arg(&file), b"");
    assert_eq!(
        imported.text(),
        format!("{{\"entries\":51,\"kept\":0,\"too_large\":0,\"expired\":0,\"bytes\":{size}}}\n")
    );
    assert_eq!((keys(&new), new.run(["get", "key 7"]).text(), new.run(["get", "gone"]).code), (51, "value", 5));
    let kept = run(new.command(["import", "--keep"]).arg(&file), b"");
    assert!(kept.text().ends_with("; 50 kept as they were in the volume\n"), "{}", kept.text());
    assert_eq!((new.run(["purge", "--tag", "all"]).code, keys(&new)), (0, 1));
}

#[test]
fn through_a_pipe() {
    let (old, new) = (some(), Volume::sized("1M"));
    let mut export =
        old.command(["export", "-", "--json"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let stream = export.stdout.take().unwrap();
    let import = new.command(["import"]).stdin(stream).stdout(Stdio::piped()).spawn().unwrap();
    let import = import.wait_with_output().unwrap();
    let export = export.wait_with_output().unwrap();
    assert!(export.status.success() && import.status.success());
    let told: serde_json::Value = serde_json::from_slice(&export.stderr).unwrap();
    assert_eq!(told["entries"], 51);
    assert!(import.stdout.starts_with(b"51 entries, ") && keys(&new) == 51);
}

#[test]
fn half_a_stream_is_reported_and_its_entries_stay() {
    let (old, new) = (some(), Volume::sized("1M"));
    let stream = run(&mut old.command(["export"]), b"").stdout;
    let half = run(&mut new.command(["import"]), &stream[..stream.len() / 2]);
    assert_eq!((half.code, half.text()), (3, ""));
    assert!(
        half.stderr.contains("cut off") && half.stderr.contains("entries before that were imported"),
        "{}",
        half.stderr
    );
    assert!((20..30).contains(&keys(&new)), "{}", keys(&new));
    let other = run(&mut new.command(["import"]), b"once upon a time");
    assert!(other.code == 3 && other.stderr.contains("not the stream of an export"), "{}", other.stderr);
    let absent = new.run(["import", "/nowhere"]);
    assert!(absent.code == 3 && absent.stderr.contains("can't read the stream from /nowhere"), "{}", absent.stderr);
}
