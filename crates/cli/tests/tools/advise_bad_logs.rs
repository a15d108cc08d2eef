//! A log may have any bytes: `advise` counts unreadable lines, and reports a file that is not a log.

use crate::command::{Ended, Volume, eyewall, run};

fn advise(words: &[&str], log: &[u8]) -> Ended {
    run(eyewall().args(["advise", "-", "--size", "1M"]).args(words), log)
}

#[test]
fn bad_lines_are_counted_and_skipped() {
    let ended = advise(&[], b"key 100\n\nthree words here\n\xff\xfe\x00\nkey 100\nkey x\n");
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(ended.text().contains("5 lines: 2 requests of 200 B count, for 1 key\n"), "{}", ended.text());
    assert!(ended.text().contains("unreadable   3 lines\n"), "{}", ended.text());
}

#[test]
fn a_line_without_an_end_is_one_bad_line() {
    let log = [b"key 100\n", &vec![b'x'; 5 << 20][..], b"\nkey 100\n"].concat();
    let ended = advise(&["--json"], &log);
    let advice: serde_json::Value = serde_json::from_str(ended.text()).unwrap();
    assert_eq!((&advice["lines"], &advice["bad_lines"], &advice["requests"]), (&3.into(), &1.into(), &2.into()));
}

#[test]
fn a_file_that_is_not_a_log_is_a_usage_error() {
    let binary: Vec<u8> = (0..100_000_u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    for (log, words) in [
        (&b"Dear Sir,\nthis is a letter.\n"[..], "is not an access log"),
        (&binary, "is not an access log"),
        (b"", "no request to replay"),
        (b"\n\n", "no request to replay"),
        (b"h - - [t] \"POST / HTTP/1.1\" 200 5\n", "(1) is a successful GET"),
    ] {
        let ended = advise(&[], log);
        assert_eq!((ended.code, ended.text()), (2, ""), "{words}: {}", ended.stderr);
        assert!(ended.stderr.contains(words) && ended.stderr.contains("standard input"), "{}", ended.stderr);
    }
    let ended = advise(&["--format", "json"], b"key 100\n");
    assert_eq!(ended.code, 2, "a format that was named is not guessed: {}", ended.stderr);
}

#[test]
fn a_truncated_gzip_file_can_not_be_read() {
    let ended = advise(&[], b"\x1f\x8b\x08\x00\x00\x00");
    assert_eq!((ended.code, ended.text()), (3, ""));
    assert!(ended.stderr.contains("can't read the log from standard input"), "{}", ended.stderr);
}

#[test]
fn a_missing_log_is_reported() {
    let volume = Volume::absent();
    for path in [volume.path(), volume.folder().to_owned()] {
        let ended = run(eyewall().arg("advise").arg(&path), b"");
        assert_eq!(ended.code, 3);
        assert!(ended.stderr.contains(path.to_str().unwrap()), "{}", ended.stderr);
    }
}

#[test]
fn impossible_sizes_are_refused() {
    for words in [["--size", "4K"], ["--size", "0"], ["--size", "big"], ["--now", "1K"], ["--format", "xml"]] {
        let ended = advise(&words, b"key 100\n");
        assert_eq!((ended.code, ended.text()), (2, ""), "{words:?}: {}", ended.stderr);
    }
    let ended = advise(&["--exact", "--size", "1000T"], b"key 100\n");
    assert_eq!(ended.code, 2);
    assert!(ended.stderr.contains("--exact needs"), "{}", ended.stderr);
    // A sample fits into memory for any size.
    assert_eq!(advise(&["--size", "1T"], b"key 100\nkey 100\n").code, 0);
}
