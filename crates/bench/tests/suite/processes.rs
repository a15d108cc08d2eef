//! Stores that processes of the suite share: a fault in one of the processes becomes a note.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal, kill_process};

use crate::folder::{Folder, invented};
use eyewall_bench::error::Result;
use eyewall_bench::peer::{Kind, Peer};
use eyewall_bench::session::Ended;
use eyewall_bench::store::{Place, Store};
use eyewall_bench::stores::{BARE_COPY, EYEWALL, EYEWALL_COPIED, FILES, Files};
use eyewall_bench::suite::recorder::{self, Sample};

/// Small gets, with one process and with two.
fn shared(stores: &[&str]) -> Folder {
    let text = invented(stores).replace("procedure = \"gets\"", "procedure = \"gets-by-processes\"");
    Folder::new(&[("small", &text)])
}

/// Runs it to its end. Returns the number of samples of a store, and all notes.
fn run(folder: &Folder, peers: &[Peer]) -> (impl Fn(&str) -> usize + use<>, String) {
    assert_eq!(folder.run(peers).unwrap(), Ended::Finished);
    folder.check();
    assert_eq!(fs::read_dir(folder.scratch()).unwrap().count(), 0, "something is left behind");
    let samples: Vec<Sample> = recorder::read_lines(&folder.record().join("samples.jsonl")).unwrap();
    let notes = recorder::read_head(&folder.record()).unwrap().notes.join("\n");
    (move |store: &str| samples.iter().filter(|sample| sample.store == store).count(), notes)
}

/// Sizes, readers, repetitions.
const ALL: usize = 2 * 2 * 2;

#[test]
fn processes_share_a_store() {
    let folder = shared(&["eyewall", "eyewall, copied", "file-per-entry"]);
    let (count, notes) = run(&folder, &[EYEWALL, EYEWALL_COPIED, FILES]);
    assert!(!notes.contains("failed"), "{notes}");
    assert_eq!(["eyewall", "eyewall, copied", "file-per-entry"].map(count), [ALL; 3]);
    assert!(recorder::read_head(&folder.record()).unwrap().complete, "{notes}");
}

/// A store whose volume is in another place than its processes expect.
const ELSEWHERE: Peer = Peer {
    open: |place| {
        let directory = place.directory.join("elsewhere");
        fs::create_dir(&directory).unwrap();
        (EYEWALL.open)(&Place { directory: &directory, ..*place })
    },
    ..EYEWALL
};

#[test]
fn who_can_not_attach_says_why_and_the_others_go_on() {
    let (count, notes) = run(&shared(&["eyewall", "file-per-entry"]), &[ELSEWHERE, FILES]);
    assert_eq!(["eyewall", "file-per-entry"].map(count), [0, ALL]);
    let note =
        notes.lines().find(|note| note.contains("eyewall failed in size 100 B")).unwrap_or_else(|| panic!("{notes}"));
    assert!(note.contains("a process started for it failed") && note.contains("volume"), "{note}");
}

#[test]
fn what_lives_in_one_process_can_not_be_attached_to() {
    let directory = tempfile::tempdir().unwrap();
    let refused = BARE_COPY.attach(&Place::new(directory.path(), 1 << 20, 100)).err().unwrap().to_string();
    assert!(refused.starts_with("bare copy: processes can't share it"), "{refused}");
}

/// file-per-entry under another name. When a turn is over, it kills the processes that read in its directory.
struct Deadly {
    name: &'static str,
    files: Files,
    directory: PathBuf,
}

impl Deadly {
    const fn peer(open: eyewall_bench::peer::Open) -> Peer {
        Peer { name: "file-per-entry", kind: Kind::Other, open, ..FILES }
    }

    fn open(name: &'static str, place: &Place<'_>) -> Result<Self> {
        let files = Files::create(place.directory, place.cap_bytes)?;
        Ok(Self { name, files, directory: place.directory.to_owned() })
    }
}

impl Store for Deadly {
    type Handle<'a> = <Files as Store>::Handle<'a>;

    fn name(&self) -> &'static str {
        self.name
    }

    fn handle(&self) -> Self::Handle<'_> {
        self.files.handle()
    }

    fn settle(&self) -> Result<()> {
        for process in processes_that_name(&self.directory) {
            // A process may have ended meanwhile.
            let _ = kill_process(process, Signal::KILL);
        }
        Ok(())
    }
}

/// The processes that have a path on their command line.
fn processes_that_name(path: &Path) -> Vec<Pid> {
    let names_it = |entry: &fs::DirEntry| {
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|word| word == path.as_os_str().as_bytes())
    };
    let entries = fs::read_dir("/proc").unwrap().flatten().filter(names_it);
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok().and_then(Pid::from_raw)).collect()
}

#[test]
fn a_process_that_dies_in_the_middle_is_noted_and_the_others_go_on() {
    let deadly = Deadly::peer(|place| Ok(Box::new(Deadly::open("file-per-entry", place)?)));
    let (count, notes) = run(&shared(&["eyewall", "file-per-entry"]), &[EYEWALL, deadly]);
    assert_eq!(["eyewall", "file-per-entry"].map(count), [ALL, 0]);
    for size in ["100 B", "1 KB"] {
        let begin = format!(
            "file-per-entry failed in size {size}: a process started for it failed: it ended early, by signal: 9"
        );
        // Once, not for each number of readers.
        assert_eq!(notes.matches(&begin).count(), 1, "{notes}");
    }
}

#[test]
fn a_store_that_the_children_do_not_have_is_noted() {
    let stranger = Peer { name: "stranger", ..Deadly::peer(|place| Ok(Box::new(Deadly::open("stranger", place)?))) };
    let (count, notes) = run(&shared(&["eyewall", "stranger"]), &[EYEWALL, stranger]);
    assert_eq!(["eyewall", "stranger"].map(count), [ALL, 0]);
    assert!(notes.contains("this program has no store of the name stranger"), "{notes}");
}
