//! `eyewall check` and the log warn of certificates that end soon, and of limits that keep an authority away.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use std::time::{Duration, SystemTime};

use crate::common::authority::Authority;
use crate::common::command::{eyewall, run};
use crate::common::server::Server;

const DAY: Duration = Duration::from_hours(24);

/// The text of a configuration whose certificate lives for so many days, and has so many left.
fn text(authority: &Authority, life: u32, left: u32) -> String {
    let site = authority.site("test", "http://127.0.0.1:1", "");
    authority.issue_with("test.pem", &["test"], |certificate| {
        let end = SystemTime::now() + DAY * left + DAY / 2;
        (certificate.not_before, certificate.not_after) = ((end - DAY * life).into(), end.into());
    });
    let state = authority.path("state");
    format!(
        "[server]\nlisten = [\"127.0.0.1:0\"]\nlisten_tls = [\"127.0.0.1:0\"]\n[cache]\nsize = \"8M\"\n\
         [server.tls]\nstate = '{}'\n{site}",
        state.display()
    )
}

#[test]
fn a_certificate_that_ends_soon_is_named() {
    let authority = Authority::new();
    let file = authority.path("eyewall.toml");
    for (life, left, words) in [
        (90, 13, Some("this certificate expires in 13 days")),
        (90, 0, Some("this certificate expires in less than a day")),
        (90, 15, None),
        (6, 1, Some("this certificate expires in 1 day")),
        (6, 3, None),
    ] {
        std::fs::write(&file, text(&authority, life, left)).unwrap();
        let ended = run(eyewall().arg("check").arg(&file), b"");
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        match words {
            Some(words) => assert!(ended.text().contains(words), "{words}: {}", ended.text()),
            None => assert!(!ended.text().contains("expires in"), "{left} of {life}: {}", ended.text()),
        }
    }
    std::fs::write(&file, text(&authority, 90, 5)).unwrap();
    let mut server = Server::spawn(eyewall().args(["serve", "--config"]).arg(&file).stderr(Stdio::piped()));
    let mut line = String::new();
    BufReader::new(server.child.stderr.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains("the certificate expires soon") && line.contains("days=5"), "{line}");
}

#[test]
fn an_authority_that_cannot_connect_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("eyewall.toml");
    let warns = |server: &str| {
        let site = "[[site]]\nhosts = [\"example.org\"]\norigins = [\"http://127.0.0.1:1\"]\ntls = \"auto\"\n";
        std::fs::write(&file, format!("{server}{site}")).unwrap();
        let ended = run(eyewall().arg("check").arg(&file), b"");
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        ended.text().contains("closes the connections by which an authority checks")
    };
    let allow = "[server.limits]\nallow = [\"10.0.0.0/8\"]\n";
    assert!(warns(allow));
    assert!(!warns(""));
    assert!(!warns(&format!("[server]\ntrusted_proxies = [\"10.0.0.1\"]\n{allow}")));
    let command = folder.path().join("dns");
    std::fs::write(&command, "").unwrap();
    assert!(!warns(&format!("{allow}[server.acme]\ndns_command = '{}'\n", command.display())));
}
