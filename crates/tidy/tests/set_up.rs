//! Nothing is installed unless somebody asks for it: `make packages` and `make tools` install, every other target names what is missing.

#![cfg(test)]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A machine that has nothing but a shell's tools, an `apt-get` and a `cargo` that write down how they were called, and an `id`
/// that names the user.
struct Machine {
    folder: TempDir,
}

impl Machine {
    fn new(user: u32) -> Self {
        let machine = Self { folder: TempDir::new().unwrap() };
        for tool in ["sh", "tr", "sed", "mktemp", "mkdir", "rm", "mv"] {
            let there = ["/usr/bin", "/bin"].map(|folder| Path::new(folder).join(tool));
            symlink(there.iter().find(|path| path.exists()).unwrap(), machine.folder.path().join(tool)).unwrap();
        }
        machine.add("id", &format!("echo {user}"));
        for program in ["apt-get", "cargo"] {
            machine.add(program, &format!("echo {program} \"$@\" >> {}", machine.called().display()));
        }
        machine
    }

    fn add(&self, name: &str, script: &str) {
        let path = self.folder.path().join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn called(&self) -> PathBuf {
        self.folder.path().join("called")
    }

    /// The calls that install, a line each.
    fn calls(&self) -> String {
        fs::read_to_string(self.called()).unwrap_or_default()
    }

    fn run(&self, script: &str, arguments: &[&str]) -> Output {
        Command::new("/bin/sh")
            .arg(root().join("scripts").join(script))
            .args(arguments)
            .env_clear()
            .env("PATH", self.folder.path())
            .env("EYEWALL_TOOLS", self.folder.path().join("tools"))
            .output()
            .unwrap()
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn missing_packages_are_named_and_not_installed() {
    for user in [0, 1000] {
        let machine = Machine::new(user);
        let output = machine.run("packages", &["cache-tests", "soak"]);
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(
            said(&output),
            "Missing packages: nodejs npm g++ valgrind. To install them, as root: make packages ARGS=\"cache-tests soak\"\n"
        );
        assert_eq!(machine.calls(), "");
    }
}

#[test]
fn packages_that_are_there_are_not_named() {
    let machine = Machine::new(0);
    machine.add("node", "");
    let output = machine.run("packages", &["cache-tests"]);
    assert!(said(&output).starts_with("Missing packages: npm. "), "{}", said(&output));
    machine.add("npm", "");
    let output = machine.run("packages", &["cache-tests"]);
    assert!(output.status.success());
    assert_eq!(said(&output), "");
}

#[test]
fn only_root_installs_packages_and_only_if_asked() {
    let machine = Machine::new(1000);
    let output = machine.run("packages", &["--install", "cache-tests"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("    apt-get install --no-install-recommends nodejs npm\n"), "{}", said(&output));
    assert_eq!(machine.calls(), "");

    let machine = Machine::new(0);
    assert!(machine.run("packages", &["--install", "cache-tests"]).status.success());
    assert!(machine.calls().ends_with("install --yes --no-install-recommends nodejs npm\n"), "{}", machine.calls());
}

#[test]
fn servers_are_never_installed() {
    let machine = Machine::new(0);
    let output = machine.run("packages", &["--install", "bench-services"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("systemctl disable --now memcached"), "{}", said(&output));
    assert_eq!(machine.calls(), "");
}

#[test]
fn packages_says_what_it_does_not_know() {
    let machine = Machine::new(0);
    for (arguments, what) in
        [(&["fruit"][..], "no group fruit"), (&["--fruit", "build"], "no option --fruit"), (&[], "name a group")]
    {
        let output = machine.run("packages", arguments);
        assert!(!output.status.success());
        assert!(said(&output).contains(what), "{}", said(&output));
    }
}

#[test]
fn a_tool_is_built_only_if_asked() {
    let machine = Machine::new(1000);
    let output = machine.run("tool", &["cbindgen"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(said(&output), "cbindgen 0.29.0 is missing. To build it: make tools ARGS=cbindgen\n");
    assert_eq!(machine.calls(), "");

    // The cargo of this machine builds nothing: that is a failure, and nothing is left of it.
    assert!(!machine.run("tool", &["--build", "cbindgen"]).status.success());
    assert!(machine.calls().starts_with("cargo install "), "{}", machine.calls());
    assert!(machine.calls().ends_with(" cbindgen@0.29.0\n"), "{}", machine.calls());
    assert_eq!(fs::read_dir(machine.folder.path().join("tools")).unwrap().count(), 0);

    let folder = machine.folder.path().join("tools/cbindgen-0.29.0/bin");
    fs::create_dir_all(&folder).unwrap();
    machine.add("tools/cbindgen-0.29.0/bin/cbindgen", "");
    let output = machine.run("tool", &["cbindgen"]);
    assert_eq!(said(&output), format!("{}\n", folder.join("cbindgen").display()));
}

#[test]
fn a_tool_that_is_unknown_is_named() {
    let machine = Machine::new(1000);
    for arguments in [&["fruit"][..], &["--build", "fruit"]] {
        let output = machine.run("tool", arguments);
        assert!(!output.status.success());
        assert!(said(&output).contains("no tool fruit"), "{}", said(&output));
    }
    assert!(said(&machine.run("tool", &[])).starts_with("usage: "));
}

#[test]
fn only_the_makefile_asks_to_install() {
    let asks = |path: &Path| {
        let text = fs::read_to_string(path).unwrap_or_default();
        text.contains("packages --install") || text.contains("tool --build") || text.contains("apt-get -qq install")
    };
    let scripts = fs::read_dir(root().join("scripts")).unwrap().map(|entry| entry.unwrap().path());
    let mut asking: Vec<_> = scripts
        .chain([root().join("Makefile")])
        .filter(|path| path.is_file() && asks(path))
        .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
        .collect();
    asking.sort();
    // The two scripts that install, and the Makefile, which calls them.
    assert_eq!(asking, ["Makefile", "packages", "tool"]);
}

/// `scripts/bench`, with a `cargo` that builds nothing and a suite that says how it is called: what it says, and what was called.
fn bench(arguments: &[&str], stores: &str) -> (Output, String) {
    let machine = Machine::new(0);
    fs::create_dir_all(machine.folder.path().join("target/release")).unwrap();
    machine.add("target/release/eyewall-bench", "echo suite \"$@\"");
    let path = format!("{}:/usr/sbin:/usr/bin:/sbin:/bin", machine.folder.path().display());
    let output = Command::new("bash")
        .arg(root().join("scripts/bench"))
        .args(arguments)
        .env("PATH", path)
        .env("CARGO_TARGET_DIR", machine.folder.path().join("target"))
        .env("STORES", stores)
        .output()
        .unwrap();
    (output, machine.calls())
}

const SUITE: &str = "cargo build --release -p eyewall-bench-compare --bin eyewall-bench";

#[test]
fn a_first_look_builds_what_is_cheap_installs_nothing_and_says_what_it_leaves_out() {
    let (output, calls) = bench(&["--quick"], "");
    let said = said(&output);
    assert!(output.status.success(), "{said}");
    assert_eq!(calls, format!("{SUITE}\n"));
    let [left_out, suite] = said.lines().collect::<Vec<_>>()[..] else { panic!("two lines, not: {said}") };
    for words in
        ["http-slow", "modules", "ARGS=\"NAME...\"", "foyer-hybrid redb rocksdb sqlite", "STORES=all", "make bench"]
    {
        assert!(left_out.contains(words), "{words} is missing: {left_out}");
    }
    assert!(suite.starts_with("suite run --quick concurrency "), "{suite}");
    for name in ["http", "modules", "storage"] {
        assert!(!suite.split(' ').any(|word| word == name), "{name} is run: {suite}");
    }
}

#[test]
fn a_first_look_builds_the_programs_and_stores_that_are_named() {
    let (output, calls) = bench(&["--quick", "http"], "sqlite,redb");
    assert_eq!(output.stdout, b"suite run --quick http\n", "{}", said(&output));
    let server = "cargo build --release --quiet -p eyewall-cli -p eyewall-bench-http --bin eyewall --bin bench-http";
    assert_eq!(calls, format!("{server}\n{SUITE} --features sqlite,redb\n"));
}

#[test]
fn a_whole_run_builds_everything_and_installs_nothing() {
    let (output, calls) = bench(&[], "");
    assert_eq!(output.stdout, b"suite run\n", "{}", said(&output));
    for words in ["bench-http", "-p eyewall-bench-frameworks", "--features foyer-hybrid,redb,sqlite"] {
        assert!(calls.contains(words), "{words} is missing: {calls}");
    }
    assert!(!calls.contains("apt-get"), "{calls}");
}

#[test]
fn a_heavy_store_that_is_unknown_is_refused_before_anything_is_built() {
    let (output, calls) = bench(&["--quick"], "fruit");
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        said(&output),
        "bench: no heavy store fruit; STORES names some of foyer-hybrid redb rocksdb sqlite, or all\n"
    );
    assert_eq!(calls, "");
}
