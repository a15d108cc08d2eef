//! Small runs of the suite: it measures what a definition says, and the record has the results.

use std::fs;

use crate::folder::{Folder, invented};
use eyewall_bench::error::Error;
use eyewall_bench::peer::Peer;
use eyewall_bench::session::Ended;
use eyewall_bench::stores::{BARE_COPY, EYEWALL, EYEWALL_COPIED, EYEWALL_TAGGED, EYEWALL_TIER, FILES, PLAIN};
use eyewall_bench::suite::compare::compare;
use eyewall_bench::suite::definition::{self, Scale};
use eyewall_bench::suite::interrupt::Interrupt;
use eyewall_bench::suite::recorder::{self, Distribution, Sample};

/// A store that can't be opened.
const BROKEN: Peer = Peer { name: "broken", open: |_| Err(Error::Invalid("it never opens".to_owned())), ..EYEWALL };

const PEERS: &[Peer] = &[EYEWALL, EYEWALL_COPIED, EYEWALL_TIER, EYEWALL_TAGGED, FILES, BARE_COPY, PLAIN, BROKEN];

#[test]
fn what_is_defined_is_measured() {
    let folder = Folder::new(&[("small", &invented(&["eyewall", "file-per-entry"]))]);
    assert_eq!(folder.run(PEERS).unwrap(), Ended::Finished);
    let head = recorder::read_head(&folder.record()).unwrap();
    assert!(head.complete, "{:?}", head.notes);
    let samples: Vec<Sample> = recorder::read_lines(&folder.record().join("samples.jsonl")).unwrap();
    // Sizes, readers, stores, repetitions.
    assert_eq!(samples.len(), 2 * 2 * 2 * 2);
    assert!(samples.iter().all(|sample| sample.value > 0.0 && sample.unit == "1/s"));
    // Stores take turns, in alternating order.
    let turns: Vec<(&str, usize)> =
        samples.iter().take(4).map(|sample| (sample.store.as_str(), sample.repetition)).collect();
    assert_eq!(turns, [("eyewall", 1), ("file-per-entry", 1), ("file-per-entry", 2), ("eyewall", 2)]);
    folder.check();
}

#[test]
fn nothing_is_left_behind() {
    let folder = Folder::new(&[("small", &invented(&["eyewall", "file-per-entry"]))]);
    folder.run(PEERS).unwrap();
    assert_eq!(fs::read_dir(folder.scratch()).unwrap().count(), 0);
}

#[test]
fn a_store_that_fails_is_noted_and_the_others_go_on() {
    let folder = Folder::new(&[("small", &invented(&["eyewall", "broken"]))]);
    assert_eq!(folder.run(PEERS).unwrap(), Ended::Finished);
    let head = recorder::read_head(&folder.record()).unwrap();
    assert!(
        head.notes.iter().any(|note| note.contains("broken") && note.contains("it never opens")),
        "{:?}",
        head.notes
    );
    // Comparisons with it are left out, so that the record stays consistent.
    folder.check();
}

#[test]
fn a_comparison_goes_without_rivals_that_are_absent() {
    let text = invented(&["eyewall", "file-per-entry", "unheard of"]);
    let text = text.replace("to = [\"file-per-entry\"]", "to = [\"unheard of\", \"file-per-entry\"]");
    let folder = Folder::new(&[("small", &text)]);
    folder.run(PEERS).unwrap();
    let head = recorder::read_head(&folder.record()).unwrap();
    assert_eq!(head.workloads[0]["comparisons"][0]["to"], serde_json::json!(["file-per-entry"]));
    assert!(head.notes.iter().any(|note| note.contains("against unheard of, file-per-entry")), "{:?}", head.notes);
    // Only the record says what was measured.
    assert_eq!(head.workloads[0]["settings"]["set"], "64 KB");
    folder.check();
}

#[test]
fn a_store_that_nobody_has_is_absent() {
    let folder = Folder::new(&[("small", &invented(&["eyewall", "unheard of"]))]);
    folder.run(PEERS).unwrap();
    let head = recorder::read_head(&folder.record()).unwrap();
    assert!(head.stores["unheard of"].absent.is_some() && head.stores["eyewall"].absent.is_none());
    folder.check();
}

#[test]
fn an_interrupted_run_goes_on_where_it_was() {
    let folder = Folder::new(&[("small", &invented(&["eyewall", "stops"]))]);
    // It ends the run when a store is opened for the second size.
    let stops = Peer {
        name: "stops",
        open: |place| {
            if place.value_bytes > 100
                && !place.directory.ancestors().nth(2).is_some_and(|scratch| scratch.join("resumed").exists())
            {
                return Err(Error::Interrupted);
            }
            (EYEWALL.open)(place)
        },
        ..EYEWALL
    };
    let peers = [EYEWALL, stops];
    assert_eq!(folder.run_with(&peers, Interrupt::default(), false).unwrap(), Ended::Interrupted);
    let head = recorder::read_head(&folder.record()).unwrap();
    assert!(!head.complete);
    let before: Vec<Sample> = recorder::read_lines(&folder.record().join("samples.jsonl")).unwrap();
    assert!(!before.is_empty() && before.iter().all(|sample| sample.case.bytes("size").unwrap() == 100));
    // A line that a kill has cut off.
    let torn = fs::read_to_string(folder.record().join("samples.jsonl")).unwrap() + "{\"workload\":\"sm";
    fs::write(folder.record().join("samples.jsonl"), torn).unwrap();
    fs::write(folder.scratch().join("resumed"), "").unwrap();
    assert_eq!(folder.run_with(&peers, Interrupt::default(), true).unwrap(), Ended::Finished);
    let after: Vec<Sample> = recorder::read_lines(&folder.record().join("samples.jsonl")).unwrap();
    assert_eq!(after[..before.len()], before[..]);
    assert!(after.len() > before.len());
    folder.check();
    let refused = folder.run_with(&peers, Interrupt::default(), true).unwrap_err().to_string();
    assert!(refused.contains("complete"), "{refused}");
}

#[test]
fn a_run_does_not_go_on_with_another_version() {
    let folder = Folder::new(&[("small", &invented(&["eyewall"]))]);
    let interrupt = Interrupt::default();
    interrupt.raise();
    assert_eq!(folder.run_with(&[EYEWALL], interrupt, false).unwrap(), Ended::Interrupted);
    let newer = Peer { look: || Ok(Some("99.1".to_owned())), ..EYEWALL };
    let refused = folder.run_with(&[newer], Interrupt::default(), true).unwrap_err().to_string();
    assert!(refused.contains("eyewall") && refused.contains("99.1"), "{refused}");
}

#[test]
fn a_workload_for_which_there_is_no_room_is_skipped() {
    for (needs, said) in [
        ("memory = { whole = \"1 B\", quick = \"9,999,999 GB\" }", "MB of memory"),
        ("disk = { whole = \"1 B\", quick = \"9,999,999 GB\" }", "--disk-dir"),
        ("shm = { whole = \"1 B\", quick = \"9,999,999 GB\" }", "--shm-dir"),
    ] {
        let text = format!("{}\n[needs]\n{needs}\n", invented(&["eyewall"]));
        let folder = Folder::new(&[("small", &text)]);
        assert_eq!(folder.run(PEERS).unwrap(), Ended::Finished);
        let head = recorder::read_head(&folder.record()).unwrap();
        let skipped = head.workloads[0]["skipped"].as_str().unwrap();
        assert!(skipped.contains(said), "{skipped}");
        folder.check();
    }
}

#[test]
fn a_workload_of_which_there_is_no_store_is_skipped() {
    let folder = Folder::new(&[(
        "small",
        &invented(&["unheard of", "never seen"]).replace("of = \"eyewall\"", "of = \"never seen\""),
    )]);
    folder.run(PEERS).unwrap();
    let head = recorder::read_head(&folder.record()).unwrap();
    let skipped = head.workloads[0]["skipped"].as_str().unwrap();
    assert!(head.complete && skipped.contains("unheard of") && skipped.contains("never seen"), "{skipped}");
}

#[test]
fn a_run_in_which_a_cell_failed_is_incomplete() {
    let folder = Folder::new(&[("small", &invented(&["eyewall"]).replace("set = ", "unknown = 1\nset = "))]);
    assert_eq!(folder.run(PEERS).unwrap(), Ended::Incomplete);
    assert!(!recorder::read_head(&folder.record()).unwrap().complete);
}

#[test]
fn a_record_is_never_written_over() {
    let folder = Folder::new(&[("small", &invented(&["eyewall"]))]);
    folder.run(PEERS).unwrap();
    let refused = folder.run(PEERS).unwrap_err().to_string();
    assert!(refused.contains("--resume"), "{refused}");
}

#[test]
fn definitions_that_are_none_say_where() {
    for (from, to, word) in [
        ("title = \"Small\"", "", "title"),
        ("[measures.gets]", "[measures.puts]", "gets"),
        ("of = \"eyewall\"", "of = \"nobody\"", "nobody"),
        ("readers = 2 }", "readers = 3 }", "readers 3"),
        ("order = 1", "order = \"first\"", "order"),
        ("set = ", "unknown = 1\nset = ", "unknown"),
    ] {
        let text = invented(&["eyewall", "file-per-entry"]);
        let changed = text.replace(from, to);
        assert_ne!(text, changed, "{from}");
        let folder = Folder::new(&[("small", &changed)]);
        let failed = folder.run(PEERS).map_err(|failure| failure.to_string());
        // The procedure reads the settings. It reports a mistake when it begins.
        let said = match failed {
            Err(said) => said,
            Ok(_) => recorder::read_head(&folder.record()).unwrap().notes.join("\n"),
        };
        assert!(said.contains(word), "{said}");
    }
}

#[test]
fn a_workload_that_there_is_not_is_refused_by_its_name() {
    let folder = Folder::new(&[("small", &invented(&["eyewall"]))]);
    let refused = definition::read_all(&folder.workloads(), &["large".to_owned()], Scale::Quick).unwrap_err();
    assert!(refused.to_string().contains("large") && refused.to_string().contains("small"));
}

#[test]
fn two_records_are_compared_beyond_their_noise() {
    let folder = Folder::new(&[("small", &invented(&["eyewall"]))]);
    folder.run(PEERS).unwrap();
    let same = compare(&folder.record(), &folder.record(), 3.0).unwrap();
    assert!(same.changes.is_empty() && same.common == 4 && same.unmatched == 0);
    // One series is half as large in every repetition.
    let worse = folder.path().join("worse");
    fs::create_dir(&worse).unwrap();
    fs::copy(folder.record().join("record.json"), worse.join("record.json")).unwrap();
    let mut samples: Vec<Sample> = recorder::read_lines(&folder.record().join("samples.jsonl")).unwrap();
    for sample in &mut samples {
        if sample.case.count("readers").unwrap() == 2 && sample.case.bytes("size").unwrap() == 100 {
            sample.value /= 1e6;
        }
    }
    let lines: Vec<String> = samples.iter().map(|sample| serde_json::to_string(sample).unwrap() + "\n").collect();
    fs::write(worse.join("samples.jsonl"), lines.concat()).unwrap();
    let compared = compare(&folder.record(), &worse, 3.0).unwrap();
    assert_eq!((compared.changes.len(), compared.changes[0].is_better), (1, Some(false)));
    assert!(compared.warnings.is_empty(), "{:?}", compared.warnings);
    // A record of other work.
    let head = fs::read_to_string(worse.join("record.json")).unwrap().replace("64 KB", "65 KB");
    fs::write(worse.join("record.json"), head).unwrap();
    let warned = compare(&folder.record(), &worse, 3.0).unwrap().warnings;
    assert!(warned.len() == 1 && warned[0].contains("settings of small"), "{warned:?}");
    let text = compared.text();
    assert!(text.contains("worse") && text.contains("gets of eyewall") && text.contains("1 of 4"), "{text}");
}

#[test]
fn every_definition_of_the_suite_works_at_a_tiny_size() {
    let folder = Folder::tiny();
    assert_eq!(folder.run(PEERS).unwrap(), Ended::Finished);
    let head = recorder::read_head(&folder.record()).unwrap();
    let failed: Vec<&String> = head.notes.iter().filter(|note| note.contains("failed")).collect();
    assert!(failed.is_empty(), "{failed:?}");
    assert!(head.complete, "{:?}", head.notes);
    folder.check();
    let distributions: Vec<Distribution> = recorder::read_lines(&folder.record().join("histograms.jsonl")).unwrap();
    assert!(distributions.iter().any(|one| one.workload == "traffic" && one.measure == "get"));
}

#[test]
fn files_are_cached_warm_and_cold_alone_and_among_others() {
    let folder = Folder::tiny_one("file-cache", &["storage", "page_cache", "others"]);
    assert_eq!(folder.run(PEERS).unwrap(), Ended::Finished);
    let head = recorder::read_head(&folder.record()).unwrap();
    assert!(head.complete, "{:?}", head.notes);
    assert_eq!(head.notes.iter().filter(|note| note.contains("failed")).count(), 0, "{:?}", head.notes);
    assert!(head.notes.iter().any(|note| note.contains("nothing is cold")), "{:?}", head.notes);
    let samples: Vec<Sample> = recorder::read_lines(&folder.record().join("samples.jsonl")).unwrap();
    let count = |store: &str, measure: &str, page_cache: &str| {
        let is_it = |sample: &&Sample| {
            sample.store == store && sample.measure == measure && sample.case.text("page_cache").unwrap() == page_cache
        };
        samples.iter().filter(is_it).count()
    };
    // With and without other entries; warm on two storages.
    for store in ["eyewall", "eyewall, copied", "file-per-entry", "plain read"] {
        for measure in ["get", "miss", "first_store"] {
            assert_eq!([count(store, measure, "cold"), count(store, measure, "warm")], [2, 4], "{measure} of {store}");
        }
    }
    folder.check();
}

#[test]
fn files_are_opened_by_their_paths_whether_a_volume_has_them_or_not() {
    let folder = Folder::tiny_one("files-lookup", &["storage", "consume"]);
    assert_eq!(folder.run(PEERS).unwrap(), Ended::Finished);
    let head = recorder::read_head(&folder.record()).unwrap();
    assert!(head.complete && head.notes.iter().all(|note| !note.contains("failed")), "{:?}", head.notes);
    let samples: Vec<Sample> = recorder::read_lines(&folder.record().join("samples.jsonl")).unwrap();
    let count = |store: &str, measure: &str| {
        samples.iter().filter(|sample| sample.store == store && sample.measure == measure && sample.value > 0.0).count()
    };
    // On two storages; a hit is read in three ways.
    for store in ["eyewall, files", "std::fs::read", "plain read"] {
        assert_eq!(["hit", "miss", "first"].map(|measure| count(store, measure)), [6, 2, 2], "{store}");
    }
    folder.check();
}

#[test]
fn files_that_do_not_fit_are_not_said_to_be_hits() {
    // A file of 10 MB doesn't fit into a volume of 8 MB.
    let folder = Folder::tiny_one("files-lookup", &["files"]);
    assert_eq!(folder.run(PEERS).unwrap(), Ended::Finished);
    let head = recorder::read_head(&folder.record()).unwrap();
    let refused = head.notes.iter().filter(|note| note.contains("eyewall, files doesn't keep")).count();
    assert_eq!(refused, 2, "{:?}", head.notes);
}

#[test]
fn files_that_compete_for_a_cache_hit_it_at_times() {
    let folder = Folder::tiny_one("file-pressure", &[]);
    folder.run(PEERS).unwrap();
    let samples: Vec<Sample> = recorder::read_lines(&folder.record().join("samples.jsonl")).unwrap();
    let hits: Vec<f64> = samples.iter().filter(|sample| sample.measure == "hits").map(|sample| sample.value).collect();
    // Eight files of 1 MB in 8 MB: every store with a cache has hits.
    assert!(hits.len() == 3 && hits.iter().all(|percent| *percent > 0.0), "{hits:?}");
    assert!(samples.iter().any(|sample| sample.measure == "time" && sample.store == "plain read"));
}

#[test]
fn a_trace_of_ones_own_is_replayed() {
    let folder = Folder::tiny_one("replay", &["percent"]);
    // 400 objects of 10 KB, of which the lower ones are more popular; and a log.
    let lines: Vec<String> =
        (0..4_000_u64).map(|at| format!("/page/{} 10240\n", (at * at + at / 7) % (at % 400 + 1))).collect();
    let traces = [folder.path().join("mine.txt"), folder.path().join("access.log")];
    fs::write(&traces[0], lines.concat()).unwrap();
    let log: Vec<String> =
        (0..900).map(|at| format!("h - - [t] \"GET /{} HTTP/1.1\" 200 {}\n", at % 300, 30_000 + at % 3)).collect();
    fs::write(&traces[1], log.concat()).unwrap();
    assert_eq!(folder.run_traces(PEERS, &traces).unwrap(), Ended::Finished);
    let head = recorder::read_head(&folder.record()).unwrap();
    assert_eq!(head.notes.iter().filter(|note| note.contains("failed")).count(), 0, "{:?}", head.notes);
    folder.check();
    let samples: Vec<Sample> = recorder::read_lines(&folder.record().join("samples.jsonl")).unwrap();
    let hits = |trace: &str, percent: i64, store: &str| -> Vec<f64> {
        let is_it = |sample: &&Sample| {
            let case = &sample.case;
            sample.store == store
                && sample.measure == "hits"
                && case.text("trace").unwrap() == trace
                && case.count("percent").unwrap() as i64 == percent
        };
        samples.iter().filter(is_it).map(|sample| sample.value).collect()
    };
    for store in ["eyewall", "eyewall, tier", "eyewall, tags", "file-per-entry"] {
        let found = hits("mine.txt", 30, store);
        let best = hits("mine.txt", 30, "offline optimum");
        assert!(
            found.len() == 1 && best.len() == 1 && found[0] > 5.0 && found[0] <= best[0],
            "{store}: {found:?} {best:?}"
        );
    }
    // A loop: a policy that drops the entry used longest ago never hits. A policy that knows the future does.
    assert_eq!(hits("access.log", 30, "LRU, simulated"), [0.0]);
    assert!(hits("access.log", 30, "offline optimum")[0] > 10.0);

    let refused = folder.run_traces(PEERS, &[folder.path().join("none.log")]).unwrap_err().to_string();
    assert!(refused.contains("none.log"), "{refused}");
}
