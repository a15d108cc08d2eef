//! The record is what later readers and programs see of a run: its figures, verdicts and shape are kept.

use eyewall_bench::machine::Machine;
use eyewall_bench::record::{Ask, RECORD_SCHEMA, Record, Row, Spread};
use eyewall_bench::report;
use eyewall_bench::run::{Run, Settings};
use eyewall_bench::scratch::Storage;

fn record() -> Record {
    let row = Row::new("get", "100 B, 8 threads", "M/s")
        .series("eyewall", &[10.0, 14.0, 12.0])
        .series("peer", &[10.0, 10.0, 6.0])
        .ratio("eyewall", "peer", Ask::at_least(1.3).aim(2.0))
        .ratio("eyewall", "absent", Ask::at_least(1.0))
        .value("eyewall", Ask::at_most(11.0));
    Record {
        schema: RECORD_SCHEMA,
        date: "2026-01-02".to_owned(),
        machine: Machine {
            cpu: "Some CPU(R) @ 2 GHz".to_owned(),
            cores: 2,
            memory_mib: 1,
            kernel: "linux 6".to_owned(),
            disk_file_system: "ext4".to_owned(),
            shm_file_system: "tmpfs".to_owned(),
            optimised: true,
        },
        quick: false,
        repetitions: 3,
        seed: 1,
        rows: vec![row],
        notes: vec!["a note".to_owned()],
    }
}

#[test]
fn ratios_are_taken_repetition_by_repetition() {
    let record = record();
    let judged = &record.rows[0].judgements;
    assert_eq!(judged.len(), 2, "a peer that was not measured is not judged");
    assert_eq!(judged[0].spread, Spread { median: 1.4, min: 1.0, max: 2.0 });
    assert_eq!(judged[0].met, Some(true));
    assert_eq!(judged[1].met, Some(false));
    assert_eq!(report::tally(&record), (1, 2));
}

#[test]
fn the_json_keeps_its_shape() -> Result<(), serde_json::Error> {
    let json = serde_json::to_value(record())?;
    let row = &json["rows"][0];
    assert_eq!(json["schema"], 1);
    assert_eq!(json["machine"]["disk_file_system"], "ext4");
    assert_eq!(row["section"], "get");
    assert_eq!(row["series"][0]["store"], "eyewall");
    assert_eq!(row["series"][0]["samples"].as_array().map(Vec::len), Some(3));
    assert_eq!(row["series"][0]["median"], 12.0);
    assert_eq!(row["judgements"][0]["bar"]["at_least"], 1.3);
    assert_eq!(row["judgements"][0]["met"], true);
    assert_eq!(row["judgements"][1]["bar"]["at_most"], 11.0);
    Ok(())
}

#[test]
fn the_markdown_shows_figures_bars_and_verdicts() {
    let text = report::markdown(&record());
    assert!(text.contains("Bars met: 1 of 2."), "{text}");
    let figures = "| 100 B, 8 threads | M/s | eyewall 12.0 (10.0..14.0)<br>peer 10.0 (6..10.0) |";
    assert!(text.contains(figures), "{text}");
    assert!(text.contains("eyewall / peer: 1.40 (1..2), bar >= 1.30, aim 2: met"), "{text}");
    assert!(text.contains("**missed**"), "{text}");
}

#[test]
fn a_machine_is_named_by_processor_and_cores() {
    assert_eq!(record().machine.kind(), "some-2-ghz-2cores");
}

#[test]
fn an_even_number_of_samples_has_a_median_too() {
    let spread = Spread::of(&[4.0, 1.0, 3.0, 2.0]);
    assert_eq!(spread, Spread { median: 2.5, min: 1.0, max: 4.0 });
    assert_eq!(Spread::of(&[]), Spread { median: 0.0, min: 0.0, max: 0.0 });
}

#[test]
fn a_finished_run_leaves_json_and_markdown_without_paths_of_the_host() -> Result<(), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    let settings = Settings {
        quick: true,
        out: directory.path().join("results"),
        disk_dir: Some(directory.path().to_owned()),
        shm_dir: directory.path().to_owned(),
    };
    let out = settings.out.clone();
    let mut run = Run::start(settings)?;
    let scratch = run.scratch_until_end(Storage::Disk)?;
    std::fs::write(scratch.join("file"), "text")?;
    run.push(Row::new("get", "case", "M/s").series("eyewall", &[1.0]));
    run.finish(Some("get"))?;
    drop(run);
    assert!(!scratch.exists(), "scratch directories go with the run");
    let mut written = Vec::new();
    for entry in std::fs::read_dir(&out)? {
        let path = entry?.path();
        let text = std::fs::read_to_string(&path)?;
        assert!(!text.contains(&directory.path().display().to_string()), "{text}");
        assert!(path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("engine-get-quick-")));
        written.push(path.extension().unwrap_or_default().to_string_lossy().into_owned());
    }
    written.sort();
    assert_eq!(written, ["json", "md"]);
    Ok(())
}
