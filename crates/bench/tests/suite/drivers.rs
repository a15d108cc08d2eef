//! Drivers: programs in other languages, which list their stores and measure them.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use crate::folder::Folder;
use eyewall_bench::stores::EYEWALL;
use eyewall_bench::suite::driver::{Driver, Measure, Places, Request};
use eyewall_bench::suite::interrupt::Interrupt;
use eyewall_bench::suite::recorder::{self, Sample};
use eyewall_bench::suite::value::Case;

/// A driver that is a shell script: its answers to `list` and to `measure`.
fn script(folder: &Path, name: &str, list: &str, measure: &str) -> Vec<String> {
    let path = folder.join(name);
    let text = format!("read -r asked\ncase $asked in\n*'\"do\":\"list\"'*) {list} ;;\n*) {measure} ;;\nesac\n");
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    vec!["sh".to_owned(), path.to_str().unwrap().to_owned()]
}

/// A workload that a driver measures.
fn driven(command: &[String], turns: &str) -> String {
    format!(
        r#"title = "Driven"
about = "What a driver does."
order = 1
procedure = "counting"
drivers = [{command:?}]
turns = "{turns}"
seed = 7
repetitions = {{ whole = 3, quick = 2 }}
minutes = {{ whole = 1.0, quick = 0.1 }}
stores = ["one", "two", "gone"]
[parameters.size]
title = "size"
values = ["100 B", "1 KB"]
[measures.counts]
title = "counts"
unit = "1/s"
better = "higher"
[[views]]
name = "table"
title = "Counts"
kind = "table"
measures = ["counts"]
"#
    )
}

const LIST: &str = r#"echo '{"store":"one","version":"1.0"}'; echo '{"store":"two","kind":"reference"}'
    echo '{"store":"gone","absent":"nobody packs it"}'"#;

fn run(list: &str, measure: &str, turns: &str) -> (Folder, Vec<Sample>) {
    let folder = Folder::new(&[]);
    let command = script(folder.path(), "driver", list, measure);
    fs::write(folder.workloads().join("driven.toml"), driven(&command, turns)).unwrap();
    folder.run(&[EYEWALL]).unwrap();
    let samples = recorder::read_lines(&folder.record().join("samples.jsonl")).unwrap();
    (folder, samples)
}

#[test]
fn stores_of_a_driver_take_turns() {
    // The store and the repetition that the request names.
    let measure = r#"store=${asked##*'"stores":["'}; store=${store%%'"'*}
        repetition=${asked##*'"repetitions":['}; repetition=${repetition%%']'*}
        echo '{"progress":"under way"}'
        echo '{"sample":{"store":"'$store'","measure":"counts","repetition":'$repetition',"value":5.5}}'"#;
    let (folder, samples) = run(LIST, measure, "suite");
    let turns: Vec<(&str, usize, String)> =
        samples.iter().map(|one| (one.store.as_str(), one.repetition, one.case.to_string())).collect();
    let of = |size: &str, repetition| {
        let stores = if repetition == 1 { ["one", "two"] } else { ["two", "one"] };
        stores.map(|store| (store, size.to_owned()))
    };
    let wanted: Vec<(&str, usize, String)> = ["100 B", "1 KB"]
        .iter()
        .flat_map(|size| [1, 2].map(|repetition| (size, repetition)))
        .flat_map(|(size, repetition)| {
            of(size, repetition).map(|(store, size)| (store, repetition, format!("size {size}")))
        })
        .collect();
    assert_eq!(turns, wanted);
    let head = recorder::read_head(&folder.record()).unwrap();
    assert_eq!(head.stores["one"].version.as_deref(), Some("1.0"));
    assert_eq!(head.stores["gone"].absent.as_deref(), Some("nobody packs it"));
    folder.check();
}

#[test]
fn a_store_that_several_drivers_have_is_measured_by_the_workloads_own() {
    let folder = Folder::new(&[]);
    for (name, value) in [("driven", 1), ("guided", 2)] {
        let sample = format!(
            r#"echo '{{"sample":{{"store":"one","measure":"counts","case":{{"size":"100 B"}},"repetition":1,"value":{value}}}}}'"#
        );
        let text = driven(&script(folder.path(), name, LIST, &sample), "driver");
        fs::write(folder.workloads().join(format!("{name}.toml")), text.replace("\"1 KB\"", "")).unwrap();
    }
    folder.run(&[EYEWALL]).unwrap();
    let samples: Vec<Sample> = recorder::read_lines(&folder.record().join("samples.jsonl")).unwrap();
    let values: Vec<(&str, f64)> = samples.iter().map(|sample| (sample.workload.as_str(), sample.value)).collect();
    assert_eq!(values, [("driven", 1.0), ("guided", 2.0)]);
    folder.check();
}

#[test]
fn a_driver_that_lets_its_stores_take_turns_is_asked_once() {
    let measure = r#"for repetition in 1 2; do for size in '100 B' '1 KB'; do
        echo '{"sample":{"store":"one","measure":"counts","case":{"size":"'$size'"},"repetition":'$repetition',"value":1}}'
        done; done; echo '{"note":"a note of its own"}'"#;
    let (folder, samples) = run(LIST, measure, "driver");
    assert_eq!(samples.len(), 4);
    let head = recorder::read_head(&folder.record()).unwrap();
    assert!(head.notes.iter().any(|note| note.contains("a note of its own")), "{:?}", head.notes);
    folder.check();
}

#[test]
fn a_driver_is_asked_for_one_cell_at_a_time_where_the_workload_says_so() {
    let measure = r#"size=${asked##*'"case":{"size":"'}; size=${size%%'"'*}
        for repetition in 1 2; do
            echo '{"sample":{"store":"one","measure":"counts","repetition":'$repetition',"value":1}}'
        done; echo '{"note":"asked for '$size'"}'"#;
    let folder = Folder::new(&[]);
    let command = script(folder.path(), "driver", LIST, measure);
    let text = driven(&command, "driver").replace("seed = 7", "seed = 7\ncells = [\"size\"]");
    fs::write(folder.workloads().join("driven.toml"), text).unwrap();
    folder.run(&[EYEWALL]).unwrap();
    let samples: Vec<Sample> = recorder::read_lines(&folder.record().join("samples.jsonl")).unwrap();
    let sizes: Vec<String> = samples.iter().map(|sample| sample.case.to_string()).collect();
    assert_eq!(sizes, ["size 100 B", "size 100 B", "size 1 KB", "size 1 KB"]);
    let notes = recorder::read_head(&folder.record()).unwrap().notes.join("\n");
    assert!(notes.contains("asked for 100 B") && notes.contains("asked for 1 KB"), "{notes}");
    for (wrong, said) in [("cells = [\"colour\"]", "colour"), ("cells = [\"size\"]\nturns = \"suite\"", "cells is for")]
    {
        let text = driven(&command, "driver").replace("turns = \"driver\"", "");
        let turns = if wrong.contains("turns") { "" } else { "\nturns = \"driver\"" };
        let text = text.replace("seed = 7", &format!("seed = 7\n{wrong}{turns}"));
        fs::write(folder.workloads().join("driven.toml"), text).unwrap();
        let refused = folder.run(&[EYEWALL]).unwrap_err().to_string();
        assert!(refused.contains(said), "{refused}");
    }
}

#[test]
fn a_driver_that_says_nothing_is_not_waited_for() {
    let folder = Folder::new(&[]);
    let list = "exec sleep 600";
    let driver = Driver::new(&script(folder.path(), "driver", list, "true")).unwrap();
    let failed = driver.with_patience(Duration::from_millis(500)).list(&Interrupt::default()).unwrap_err().to_string();
    assert!(failed.contains("said nothing"), "{failed}");
}

#[test]
fn a_driver_that_fails_or_says_nonsense_is_noted() {
    for (measure, said) in
        [("exit 3", "exit status: 3"), ("echo nonsense", "nonsense"), ("echo '{\"sample\":{}}'", "sample")]
    {
        let (folder, samples) = run(LIST, measure, "suite");
        assert!(samples.is_empty());
        let notes = recorder::read_head(&folder.record()).unwrap().notes.join("\n");
        assert!(notes.contains(said), "{notes}");
    }
    let (folder, _) = run("exit 4", "exit 4", "suite");
    let head = recorder::read_head(&folder.record()).unwrap();
    assert!(head.notes.join("\n").contains("exit status: 4") && head.stores["one"].absent.is_some());
}

#[test]
fn a_driver_is_told_to_end_when_the_run_is() {
    let folder = Folder::new(&[]);
    // It reports that it waits. When it is told to end, it writes that into a file.
    let told = folder.path().join("told");
    let measure = format!(
        "trap 'echo told > {}; kill $!; exit 0' TERM; sleep 600 & echo '{{\"progress\":\"waits\"}}'; wait",
        told.display()
    );
    let driver = Driver::new(&script(folder.path(), "driver", "true", &measure)).unwrap();
    let interrupt = Interrupt::default();
    // Any request except `list`; its content doesn't matter.
    let (case, settings) = (Case::default(), toml::Table::new());
    let request = Request::Measure(Box::new(Measure {
        workload: "w",
        procedure: "p",
        case: &case,
        settings: &settings,
        parameters: BTreeMap::new(),
        stores: vec![],
        repetitions: vec![],
        seed: 1,
        quick: true,
        scratch: Places { disk: folder.scratch(), shm: folder.scratch() },
    }));
    let ended = driver.ask(&request, &interrupt, |_| {
        interrupt.raise();
        Ok(())
    });
    assert_eq!(ended.unwrap_err().to_string(), "interrupted");
    assert_eq!(fs::read_to_string(told).unwrap(), "told\n");
}

#[test]
fn a_driver_that_is_not_there_is_named() {
    let driver = Driver::new(&["/nowhere/driver".to_owned()]).unwrap();
    let failed = driver.list(&Interrupt::default()).unwrap_err().to_string();
    assert!(failed.contains("/nowhere/driver"), "{failed}");
    assert!(Driver::new(&[]).is_err());
}
