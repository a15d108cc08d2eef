//! The log has the warnings of `eyewall check` when the server starts, and after each reload.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};

use crate::common::command::eyewall;
use crate::common::server::Server;

#[test]
fn a_start_and_a_reload_log_them() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("eyewall.toml");
    let rule = |condition: &str| {
        let server = "[server]\nlisten = [\"127.0.0.1:0\"]\n[cache]\nsize = \"8M\"\n";
        let site = "[[site]]\norigins = [\"http://127.0.0.1:1\"]\n[[site.rule]]\n";
        format!("{server}{site}{condition}\nset_request_headers = {{ X-Device = \"phone\" }}\n")
    };
    std::fs::write(&file, rule("cookie = [\"mode=edit\"]")).unwrap();
    let mut server = Server::spawn(eyewall().args(["serve", "--config"]).arg(&file).stderr(Stdio::piped()));
    let mut log = BufReader::new(server.child.stderr.take().unwrap()).lines();
    let mut line = move || log.next().unwrap().unwrap();
    let first = line();
    let words = "the configuration: line 8, column 10: this rule changes requests by the cookie `mode=edit`";
    assert!(first.contains(words) && first.contains("; add it to [site.key]"), "{first}");
    for (condition, expected) in [("header = { X-A = \"*\" }", Some("by the field `x-a`")), ("path = [\"/\"]", None)] {
        std::fs::write(&file, rule(condition)).unwrap();
        kill_process(Pid::from_child(&server.child), Signal::HUP).unwrap();
        if let Some(expected) = expected {
            let warning = line();
            assert!(warning.contains("WARN") && warning.contains(expected), "{warning}");
        }
        let reloaded = line();
        assert!(reloaded.contains("reloaded the configuration"), "{reloaded}");
    }
}
