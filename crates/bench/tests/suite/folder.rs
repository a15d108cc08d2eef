//! Definitions and records in a folder, which is removed at the end.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use eyewall_bench::child;
use eyewall_bench::error::Result;
use eyewall_bench::peer::Peer;
use eyewall_bench::scratch::Scratch;
use eyewall_bench::session::{Ended, Session, Setting};
use eyewall_bench::suite::definition::{self, Definition, Scale};
use eyewall_bench::suite::interrupt::Interrupt;
use tempfile::TempDir;
use toml::{Table, Value};

/// Workloads, and the directories in which they are measured.
pub(crate) struct Folder(TempDir);

impl Folder {
    /// A folder with these definitions, by name.
    pub(crate) fn new(definitions: &[(&str, &str)]) -> Self {
        let folder = Self(tempfile::tempdir().expect("a folder can be made"));
        for directory in [folder.workloads(), folder.scratch()] {
            fs::create_dir(directory).unwrap();
        }
        for (name, text) in definitions {
            fs::write(folder.workloads().join(format!("{name}.toml")), text).unwrap();
        }
        folder
    }

    /// A folder with the suite's own definitions that need no driver, at the smallest size.
    pub(crate) fn tiny() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/workloads");
        let mut tiny = Vec::new();
        for entry in fs::read_dir(root).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|extension| extension != "toml") {
                continue;
            }
            let mut table: Table = toml::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
            if !table.contains_key("drivers") {
                shrink(&mut table, &[]);
                tiny.push((path.file_stem().unwrap().to_str().unwrap().to_owned(), table.to_string()));
            }
        }
        let tiny: Vec<(&str, &str)> = tiny.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        Self::new(&tiny)
    }

    /// A folder with one of the suite's own definitions, at the smallest size, but with all values of these parameters.
    pub(crate) fn tiny_one(name: &str, whole: &[&str]) -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../bench/workloads/{name}.toml"));
        let mut table: Table = toml::from_str(&fs::read_to_string(path).unwrap()).unwrap();
        shrink(&mut table, whole);
        Self::new(&[(name, &table.to_string())])
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn workloads(&self) -> PathBuf {
        self.path().join("workloads")
    }

    pub(crate) fn scratch(&self) -> PathBuf {
        self.path().join("scratch")
    }

    pub(crate) fn record(&self) -> PathBuf {
        self.path().join("record")
    }

    pub(crate) fn run(&self, peers: &[Peer]) -> Result<Ended> {
        self.run_with(peers, Interrupt::default(), false)
    }

    pub(crate) fn run_with(&self, peers: &[Peer], interrupt: Interrupt, resume: bool) -> Result<Ended> {
        let definitions = definition::read_all(&self.workloads(), &[], Scale::Quick)?;
        self.run_these(definitions, peers, interrupt, resume)
    }

    /// Replays these traces, too.
    pub(crate) fn run_traces(&self, peers: &[Peer], traces: &[PathBuf]) -> Result<Ended> {
        let mut definitions = definition::read_all(&self.workloads(), &[], Scale::Quick)?;
        definitions.iter_mut().try_for_each(|definition| definition.give_traces(traces))?;
        self.run_these(definitions, peers, Interrupt::default(), false)
    }

    fn run_these(
        &self,
        definitions: Vec<Definition>,
        peers: &[Peer],
        interrupt: Interrupt,
        resume: bool,
    ) -> Result<Ended> {
        child::start_children_as(Path::new(env!("CARGO_BIN_EXE_bench-suite")));
        let setting = Setting {
            scale: Scale::Quick,
            folder: self.record(),
            resume,
            scratch: Scratch::new(Some(self.scratch()), self.scratch())?,
            commit: None,
        };
        Session::begin(definitions, peers, setting, interrupt)?.run()
    }

    /// Checks that the record has the form that the explorer reads. Without Python it checks nothing.
    pub(crate) fn check(&self) {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/records");
        let Ok(output) = Command::new("python3").arg(script).arg("check").arg(self.record()).output() else {
            eprintln!("skipped: no python3 to check the record's form with");
            return;
        };
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

/// A definition of gets, with two sizes and two numbers of readers.
pub(crate) fn invented(stores: &[&str]) -> String {
    let compared = match stores {
        [of, to, ..] => format!(
            "[[comparisons]]\nmeasure = \"gets\"\ncase = {{ size = \"100 B\", consume = \"pointer\", readers = 2 }}\n\
             of = \"{of}\"\nto = [\"{to}\"]\nhow = \"ratio\"\n"
        ),
        _ => String::new(),
    };
    format!(
        r#"title = "Small"
about = "Gets."
order = 1
procedure = "gets"
seed = 7
repetitions = {{ whole = 3, quick = 2 }}
minutes = {{ whole = 1.0, quick = 0.1 }}
stores = {stores:?}
[settings]
set = "64 KB"
objects_max = 50
keys = 64
milliseconds = 1
[parameters.size]
title = "size"
values = ["100 B", "1 KB"]
[parameters.consume]
title = "what is read"
values = ["pointer"]
[parameters.readers]
title = "readers"
values = [1, 2]
[measures.gets]
title = "gets"
unit = "1/s"
better = "higher"
[[views]]
name = "curve"
title = "Gets"
kind = "curve"
measure = "gets"
x = "readers"
{compared}"#
    )
}

/// One repetition of one case, or of the cases of some parameters, as short as possible.
fn shrink(table: &mut Table, whole: &[&str]) {
    // Parameters for which a procedure measures all values at once.
    const AT_ONCE: [&str; 4] = ["what", "window", "entries", "how"];

    let one = |value: i64| {
        Value::Table(
            [("whole", value), ("quick", value)]
                .map(|(name, it)| (name.to_owned(), Value::Integer(it)))
                .into_iter()
                .collect(),
        )
    };
    table.insert("repetitions".to_owned(), one(1));
    table.remove("comparisons");
    table.remove("first");
    for (name, parameter) in table.get_mut("parameters").and_then(Value::as_table_mut).into_iter().flatten() {
        let parameter = parameter.as_table_mut().unwrap();
        parameter.remove("quick");
        if !whole.contains(&name.as_str()) && !AT_ONCE.contains(&name.as_str()) {
            let values = parameter.get_mut("values").unwrap().as_array_mut().unwrap();
            values.truncate(1);
            for value in values.iter_mut().filter(|value| value.as_str() == Some("1 GB")) {
                *value = Value::String("1 MB".to_owned());
            }
        }
    }
    if let Some(settings) = table.get_mut("settings").and_then(Value::as_table_mut) {
        for (name, value) in settings.iter_mut() {
            if let Some(quick) = value.as_table().and_then(|scaled| scaled.get("quick")) {
                *value = quick.clone();
            }
            match name.as_str() {
                "milliseconds" | "writer_milliseconds" => *value = Value::Integer(1),
                "warm_up_operations" => *value = Value::Integer(400),
                "seconds" | "fill_seconds" => *value = Value::Float(0.02),
                "objects" | "objects_max" | "keys" | "purged" | "kept" => *value = Value::Integer(500),
                "entries" | "held_min" | "processes" => *value = Value::Integer(2),
                "batch" => *value = Value::Integer(100),
                "small_files" => *value = Value::Integer(5),
                "cap" | "volume" => *value = Value::String("8 MB".to_owned()),
                "file" | "set" | "filled" => *value = Value::String("1 MB".to_owned()),
                "value" if value.as_str().is_some_and(|size| size.ends_with(" MB")) => {
                    *value = Value::String("1 MB".to_owned());
                }
                _ => {}
            }
        }
    }
}
