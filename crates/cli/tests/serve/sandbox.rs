//! A server in its sandbox: it serves, reloads and is upgraded as without one, and what the sandbox keeps out is named.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, apply_filter};
use serde_json::Value;

use crate::common::admin::json;
use crate::common::authority::Authority;
use crate::common::client::{Reply, get};
use crate::common::command::{Ended, eyewall, run};
use crate::common::origin::Origin;
use crate::common::server::Site;
use crate::common::upgrading::Upgrading;

/// What the kernel says of each thread: no new privileges, the mode of seccomp, and the number of its filters.
fn restrictions(process: u32) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).unwrap();
    // A thread may end meanwhile.
    let texts = tasks.filter_map(|task| fs::read_to_string(task.unwrap().path().join("status")).ok());
    let is_wanted = |line: &&str| line.starts_with("NoNewPrivs:") || line.starts_with("Seccomp");
    texts.map(|text| text.lines().filter(is_wanted).collect::<Vec<_>>().join(" ").replace('\t', "")).collect()
}

fn status(upgrading: &Upgrading) -> Value {
    json(&upgrading.socket.ask("GET", "/status", &[], ""))["sandbox"].clone()
}

fn reload(upgrading: &Upgrading) -> Reply {
    upgrading.socket.ask("POST", "/reload", &[], "")
}

fn sandboxed(root: &Path) -> String {
    format!("sandbox = \"on\"\n[[site]]\nroot = {root:?}\n")
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_mins(1);
    while !is_so() {
        assert!(Instant::now() < deadline, "not {what}");
        std::thread::yield_now();
    }
}

/// Whether the kernel restricts files; if not, the rest of a test has nothing to show.
fn keeps_out(upgrading: &Upgrading) -> bool {
    let is_so = status(upgrading)["landlock"] != "none";
    if !is_so {
        println!("skipped: this kernel has no Landlock");
    }
    is_so
}

/// Runs in a thread to whose processes the kernel seems to lack a system call.
fn without<R: Send>(call: i64, work: impl FnOnce() -> R + Send) -> R {
    let architecture = std::env::consts::ARCH.try_into().unwrap();
    let calls = BTreeMap::from([(call, Vec::new())]);
    let missing = SeccompAction::Errno(libc::ENOSYS as u32);
    let filter = SeccompFilter::new(calls, SeccompAction::Allow, missing, architecture).unwrap();
    let program: BpfProgram = filter.try_into().unwrap();
    std::thread::scope(|scope| {
        let work = || {
            apply_filter(&program).unwrap();
            work()
        };
        scope.spawn(work).join().unwrap()
    })
}

/// `eyewall serve --sandbox strict` for a folder, which must end by itself.
fn strict(root: &Path) -> Ended {
    let words = ["serve", "--listen", "127.0.0.1:0", "--size", "1M", "--sandbox", "strict", "--root"];
    run(eyewall().args(words).arg(root), b"")
}

#[test]
fn files_misses_logs_reloads_and_upgrades_work_inside() {
    let (site, authority) = (Site::new(), Authority::new());
    site.write("a.txt", "one");
    site.write("below/b.txt", "two");
    let origin = Origin::counting("Cache-Control: max-age=60");
    // The resolver reads its files inside.
    let url = origin.url().replace("127.0.0.1", "localhost");
    let logs = tempfile::tempdir().unwrap();
    let (log, socket) = (logs.path().join("access.log"), logs.path().join("https.sock"));
    let state = authority.path("later/state");
    let configuration = |root: &Path| {
        format!(
            "listen_tls = [\"127.0.0.1:0\", \"unix:{}\"]\nsandbox = \"on\"\naccess_log = {{ path = {log:?} }}\n\
             [server.tls]\nstate = {state:?}\n[[site]]\nhosts = [\"test\"]\nroot = {root:?}\norigins = [{url:?}]\n{}",
            socket.display(),
            authority.site("tls.test", &url, ""),
        )
    };
    let mut upgrading = Upgrading::start(&configuration(site.path()));
    assert_eq!(get(upgrading.address, "/a.txt").text(), "one");
    site.write("new.txt", "three");
    assert_eq!(get(upgrading.address, "/new.txt").text(), "three");
    while !get(upgrading.address, "/page").is_hit() {}
    assert_eq!(authority.get(upgrading.tls_address.unwrap(), "tls.test", "/other").status, 200);
    assert!(socket.exists() && state.join("tickets").exists());

    let closed = status(&upgrading);
    assert_eq!(closed["seccomp"], "whole");
    let threads = restrictions(upgrading.process());
    assert!(threads.len() > 3 && threads.iter().all(|thread| *thread == threads[0]), "{threads:?}");
    assert!(threads[0].contains("NoNewPrivs:1") && threads[0].contains("Seccomp:2"), "{threads:?}");

    fs::rename(&log, logs.path().join("access.log.1")).unwrap();
    upgrading.signal(Signal::USR1);
    wait_until("reopened", || log.exists());

    upgrading.write(&configuration(&site.path().join("below")));
    assert_eq!(reload(&upgrading).status, 200);
    assert_eq!(get(upgrading.address, "/b.txt").text(), "two");

    for _ in 0..2 {
        upgrading.upgrade();
        assert!(get(upgrading.address, "/page").is_hit());
        assert_eq!(get(upgrading.address, "/b.txt").text(), "two");
        assert_eq!(authority.get(upgrading.tls_address.unwrap(), "tls.test", "/other").status, 200);
        assert_eq!(status(&upgrading), closed);
        let inside = restrictions(upgrading.process());
        assert!(inside.iter().all(|thread| *thread == threads[0]), "one sandbox is enough: {inside:?}");
    }
    assert!(upgrading.first_ends().success());

    let volume = upgrading.folder.path().join("site.eye");
    let ended = run(eyewall().arg("resize").arg("--cache").arg(&volume).args(["--size", "12M"]), b"");
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(get(upgrading.address, "/page").is_hit());
    let volume = &json(&upgrading.socket.ask("GET", "/status", &[], ""))["volume"];
    assert_eq!(volume["size_bytes"], 12 << 20);
}

#[test]
fn a_script_in_the_place_of_the_program_runs_inside() {
    let site = Site::new();
    site.write("a.txt", "one");
    let mut upgrading = Upgrading::start(&sandboxed(site.path()));
    let program = upgrading.program();
    let target = fs::read_link(&program).unwrap();
    fs::remove_file(&program).unwrap();
    fs::write(&program, format!("#!/bin/sh\ntrue > /dev/null\nexec {target:?} \"$@\"\n")).unwrap();
    fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    upgrading.upgrade();
    assert_eq!(get(upgrading.address, "/a.txt").text(), "one");
}

#[test]
fn what_is_outside_is_named_and_changes_nothing() {
    let (inside, outside) = (Site::new(), Site::new());
    inside.write("a.txt", "one");
    outside.write("b.txt", "two");
    let mut upgrading = Upgrading::start(&sandboxed(inside.path()));
    if !keeps_out(&upgrading) {
        return;
    }
    upgrading.write(&sandboxed(outside.path()));
    let reply = reload(&upgrading);
    assert_eq!(reply.status, 422);
    let says = |text: &str| text.contains("sandbox") && text.contains("restart the server");
    assert!(says(reply.text()) && reply.text().contains(outside.path().to_str().unwrap()), "{}", reply.text());
    let ended = upgrading.try_upgrade();
    assert!(ended.code == 3 && says(&ended.stderr), "{}", ended.stderr);

    // The check of a configuration can't see that nothing may be created there.
    let socket = outside.path().join("http.sock");
    upgrading.write(&sandboxed(inside.path()));
    let file = upgrading.folder.path().join("eyewall.toml");
    let listening = |text: &str| text.replace(":0\"]", &format!(":0\", \"unix:{}\"]", socket.display()));
    fs::write(&file, listening(&fs::read_to_string(&file).unwrap())).unwrap();
    let text = reload(&upgrading).text().to_owned();
    assert!(says(&text) && text.contains("server.listen") && text.contains(socket.to_str().unwrap()), "{text}");

    upgrading.write(&sandboxed(inside.path()));
    let (program, elsewhere) = (upgrading.program(), outside.path().join("eyewall"));
    let target = fs::read_link(&program).unwrap();
    outside.write("eyewall", "#!/bin/sh\n");
    fs::set_permissions(&elsewhere, Permissions::from_mode(0o755)).unwrap();
    fs::remove_file(&program).unwrap();
    symlink(&elsewhere, &program).unwrap();
    let ended = upgrading.try_upgrade();
    assert!(ended.code == 3 && says(&ended.stderr), "{}", ended.stderr);
    fs::remove_file(&program).unwrap();
    symlink(target, &program).unwrap();
    upgrading.upgrade();
    assert_eq!(get(upgrading.address, "/a.txt").text(), "one");
}

#[test]
fn a_folder_of_the_setting_is_inside_and_the_mode_needs_a_restart() {
    let (inside, later) = (Site::new(), Site::new());
    later.write("b.txt", "two");
    let folders = format!("sandbox_read = [{:?}]\n", later.path());
    let upgrading = Upgrading::start(&(folders.clone() + &sandboxed(inside.path())));
    upgrading.write(&(folders + &sandboxed(later.path()).replace("\"on\"", "\"off\"")));
    let reply = reload(&upgrading);
    assert_eq!((reply.status, json(&reply)["not_reloaded"][0].as_str()), (200, Some("server.sandbox")));
    let ended = run(eyewall().args(["reload", "--server"]).arg(upgrading.socket.path()), b"");
    assert!(ended.stderr.trim_end().ends_with("server.sandbox: restart the server"), "{}", ended.stderr);
    assert_eq!(get(upgrading.address, "/b.txt").text(), "two");
}

#[test]
fn a_root_that_is_a_link_can_be_switched() {
    let site = Site::new();
    for (release, text) in [("1", "one"), ("2", "two")] {
        site.write(&format!("releases/{release}/a.txt"), text);
    }
    let (current, next) = (site.path().join("current"), site.path().join("next"));
    symlink("releases/1", &current).unwrap();
    let upgrading = Upgrading::start(&sandboxed(&current));
    assert_eq!(get(upgrading.address, "/a.txt").text(), "one");
    symlink("releases/2", &next).unwrap();
    fs::rename(&next, &current).unwrap();
    wait_until("switched", || get(upgrading.address, "/a.txt").text() == "two");
}

#[test]
fn a_kernel_without_landlock_is_reported_or_refused() {
    let (first, second) = (Site::new(), Site::new());
    second.write("b.txt", "two");
    let ended = without(libc::SYS_landlock_create_ruleset, || strict(first.path()));
    assert!(ended.code == 3 && ended.stderr.contains("no Landlock"), "{}", ended.stderr);

    let upgrading = without(libc::SYS_landlock_create_ruleset, || Upgrading::start(&sandboxed(first.path())));
    let closed = status(&upgrading);
    assert_eq!((closed["landlock"].as_str(), closed["seccomp"].as_str()), (Some("none"), Some("whole")));
    upgrading.write(&sandboxed(second.path()));
    assert_eq!(reload(&upgrading).status, 200);
    assert_eq!(get(upgrading.address, "/b.txt").text(), "two");

    upgrading.write(&sandboxed(second.path()).replace("\"on\"", "\"strict\""));
    let ended = upgrading.try_upgrade();
    assert!(ended.code == 3 && ended.stderr.contains("sandbox is not whole"), "{}", ended.stderr);
}

#[test]
fn a_kernel_without_seccomp_is_reported_or_refused() {
    let site = Site::new();
    site.write("a.txt", "one");
    let ended = without(libc::SYS_seccomp, || strict(site.path()));
    assert!(ended.code == 3 && ended.stderr.contains("seccomp"), "{}", ended.stderr);
    let upgrading = without(libc::SYS_seccomp, || Upgrading::start(&sandboxed(site.path())));
    assert_eq!(status(&upgrading)["seccomp"], "none");
    assert_eq!(get(upgrading.address, "/a.txt").text(), "one");
}
