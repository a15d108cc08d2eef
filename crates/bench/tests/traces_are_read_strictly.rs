//! A damaged trace, or a file that isn't a trace, is refused, with the faulty line.

use std::io::Write;
use std::path::Path;

use eyewall_bench::trace::{Footprint, Request, parse, read, read_log};
use flate2::Compression;
use flate2::write::GzEncoder;

fn message(text: &str) -> String {
    match parse(Path::new("some.txt"), text.as_bytes()) {
        Ok(requests) => format!("parsed {requests:?}"),
        Err(failure) => failure.to_string(),
    }
}

#[test]
fn a_gzip_trace_is_read_in_order() -> Result<(), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("t.txt.gz");
    let mut encoder = GzEncoder::new(std::fs::File::create(&path)?, Compression::fast());
    encoder.write_all(b"7 100\n8 3\n7 100\n")?;
    encoder.finish()?;
    let requests = read(&path)?;
    let expected = [(7, 100), (8, 3), (7, 100)].map(|(key, bytes)| Request { key, bytes });
    assert_eq!(requests, expected);
    assert_eq!(Footprint::of(&requests), Footprint { bytes: 103, median_bytes: 3 });
    Ok(())
}

#[test]
fn bad_lines_are_named() {
    for (text, expected) in [
        ("1 2\n\n", "some.txt:2: no key"),
        ("1 2\n3\n", "some.txt:2: no size"),
        ("x 2\n", "some.txt:1: key \"x\" is no number"),
        ("1 -2\n", "some.txt:1: size \"-2\" is no number"),
        ("1 2 3\n", "some.txt:1: unexpected \"3\" after the size"),
        ("", "the trace is empty"),
    ] {
        let found = message(text);
        assert!(found.contains(expected), "{text:?}: {found}");
    }
}

#[test]
fn a_file_that_is_no_gzip_is_refused() -> Result<(), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("t.txt.gz");
    std::fs::write(&path, "1 2\n")?;
    assert!(read(&path).is_err());
    assert!(read(&directory.path().join("absent.txt.gz")).is_err());
    Ok(())
}

#[test]
fn access_logs_are_read_packed_or_not() -> Result<(), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("access.log");
    let text = "h - - [t] \"GET /a HTTP/1.1\" 200 500 \"-\" \"agent\"\n\
                h - - [t] \"GET /b?x=1 HTTP/1.1\" 304 -\n\
                h - - [t] \"POST /a HTTP/1.1\" 200 9\nno line at all\n\
                h - - [t] \"GET /a HTTP/1.1\" 206 100\n";
    let expected = [(0, 500), (1, 1), (0, 500)].map(|(key, bytes)| Request { key, bytes });
    std::fs::write(&path, text)?;
    assert_eq!(read_log(&path)?, expected);
    let mut encoder = GzEncoder::new(std::fs::File::create(&path)?, Compression::fast());
    encoder.write_all(text.as_bytes())?;
    encoder.finish()?;
    assert_eq!(read_log(&path)?, expected);
    std::fs::write(&path, "/page 7\nother 8\n/page 7\n")?;
    assert_eq!(read_log(&path)?.len(), 3);
    for (text, said) in [("nothing of\nthe kind\n", "no line"), ("h - - [t] \"PUT / HTTP/1.1\" 200 5\n", "no request")]
    {
        std::fs::write(&path, text)?;
        let refused = read_log(&path).expect_err("no log").to_string();
        assert!(refused.contains(said) && refused.contains("access.log"), "{refused}");
    }
    Ok(())
}
