//! Mistakes of newcomers: each message says what to write instead.

use crate::command::{Ended, Volume, eyewall, run};

/// The result of `eyewall check` for a configuration.
fn check(text: &str) -> Ended {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("eyewall.toml");
    std::fs::write(&file, text).unwrap();
    run(eyewall().arg("check").arg(&file), b"")
}

#[track_caller]
fn is_told(ended: &Ended, all: &[&str]) {
    assert_eq!((ended.code, ended.text()), (2, ""), "{}", ended.stderr);
    for words in all {
        assert!(ended.stderr.contains(words), "`{words}` in {}", ended.stderr);
    }
    assert!(!ended.stderr.contains("struct ") && !ended.stderr.contains("invalid type"), "{}", ended.stderr);
}

const SITE: &str = "[[site]]\norigins = [\"http://a\"]\n";

#[test]
fn a_mistyped_word_is_not_a_host() {
    for (wrong, right) in [("orign", "origin"), ("Origin", "origin"), ("clients", "client")] {
        let ended = check(&format!("{SITE}[site.origin]\nhost_header = \"{wrong}\"\n"));
        is_told(&ended, &[&format!("write \"{right}\""), &format!("\"{wrong}:80\"")]);
    }
    for host in ["orign:80", "origin.internal", "app", "client", "origin"] {
        let ended = check(&format!("{SITE}[site.origin]\nhost_header = \"{host}\"\n"));
        assert_eq!(ended.code, 0, "{host}: {}", ended.stderr);
    }
    is_told(
        &run(eyewall().args(["serve", "--origin", "http://a", "--origin-host", "orign"]), b""),
        &["write \"origin\""],
    );
}

#[test]
fn yes_and_no_are_true_and_false() {
    for (written, right) in [
        ("yes", "true"),
        ("\"yes\"", "true"),
        ("\"true\"", "true"),
        ("1", "true"),
        ("off", "false"),
        ("\"no\"", "false"),
    ] {
        let ended = check(&format!("{SITE}[[site.rule]]\npath = [\"/a\"]\nbypass = {written}\n"));
        is_told(&ended, &["line 5, column 10", &format!("hint: write `{right}`, without quotes")]);
    }
    let ended = check(&format!("{SITE}dotfiles = \"perhaps\"\n"));
    is_told(&ended, &["`dotfiles` is `true` or `false`, not text", "hint: write `true` or `false`, without quotes"]);
}

#[test]
fn text_in_the_place_of_a_table_gets_the_table_as_a_hint() {
    let origin = check("[[site]]\norigin = \"http://127.0.0.1:3000\"\n");
    is_told(
        &origin,
        &[
            "`origin` is a table, not text",
            "origins = [\"http://127.0.0.1:3000\"]",
            "[site.origin] has the settings for requests to them",
        ],
    );
    let log = check(&format!("[server]\naccess_log = \"/tmp/a.log\"\n{SITE}"));
    is_told(&log, &["`access_log` is a table, not text", "hint: write access_log = { path = \"/tmp/a.log\" }"]);
    let admin = check(&format!("[server]\nadmin = \"/run/a.sock\"\n{SITE}"));
    is_told(&admin, &["hint: write admin = { socket = \"/run/a.sock\" }"]);
    is_told(&check(&format!("{SITE}key = 5\n")), &["`key` is a table, not a number", "[site.key]"]);
}

#[test]
fn single_brackets_for_a_list_of_tables_get_a_hint() {
    is_told(
        &check("[site]\norigins = [\"http://a\"]\n"),
        &["`site` is a list, not a table", "hint: there can be several; write [[site]]"],
    );
    let rule = check(&format!("{SITE}[site.rule]\npath = [\"/a\"]\nbypass = true\n"));
    is_told(&rule, &["hint: there can be several; write [[site.rule]]"]);
}

#[test]
fn one_text_for_a_list_gets_brackets_as_a_hint() {
    is_told(
        &check("[[site]]\norigins = \"http://a\"\n"),
        &["`origins` is a list, not text", "origins = [\"http://a\"]"],
    );
    let listen = check(&format!("[server]\nlisten = \"127.0.0.1:80\"\n{SITE}"));
    is_told(&listen, &["hint: put it into brackets: listen = [\"127.0.0.1:80\"]"]);
    let path = check(&format!("{SITE}[[site.rule]]\npath = \"/a\"\nbypass = true\n"));
    is_told(&path, &["line 4, column 8", "path = [\"/a\"]"]);
}

#[test]
fn a_rule_pasted_from_a_preset_belongs_to_a_site() {
    let ended = check(&format!("{SITE}[[rule]]\npath = [\"/a\"]\nbypass = true\n"));
    is_told(&ended, &["unknown key `rule`", "hint: a rule belongs to a site; write [[site.rule]]"]);
    is_told(&check("origins = [\"http://a\"]\n"), &["hint: write it under [[site]]"]);
}

#[test]
fn an_address_to_listen_on_has_a_host_and_a_port() {
    for (written, port) in [("8080", "8080"), (":8081", "8081"), ("localhost:82", "82"), ("somewhere", "8080")] {
        let hint = format!("127.0.0.1:{port} for this machine alone");
        is_told(&run(eyewall().args(["serve", "--root", "/", "--listen", written]), b""), &[&hint]);
        is_told(&check(&format!("[server]\nlisten = [\"{written}\"]\n{SITE}")), &["line 2, column 11", &hint]);
    }
}

#[test]
fn an_argument_of_serve_without_a_flag_gets_the_flag_as_a_hint() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().display().to_string();
    for (word, flag) in [("blog.toml", "--config"), ("http://127.0.0.1:3000", "--origin"), (folder.as_str(), "--root")]
    {
        is_told(&run(eyewall().args(["serve", word]), b""), &[&format!("eyewall serve {flag} {word}")]);
    }
}

#[test]
fn verbs_of_other_tools_get_ours_as_a_hint() {
    for (word, verb) in [("delete", "rm"), ("start", "serve"), ("list", "ls"), ("flush", "purge"), ("init", "create")] {
        let ended = run(eyewall().arg(word), b"");
        is_told(&ended, &[&format!("'{verb}'")]);
        assert!(word != "start" || !ended.stderr.contains("stat'"), "{}", ended.stderr);
    }
}

#[test]
fn a_purge_of_one_key_gets_the_right_verb_as_a_hint() {
    let volume = Volume::new();
    volume.put("/index.html", b"page");
    let ended = volume.run(["purge", "/index.html"]);
    is_told(&ended, &["eyewall rm /index.html", "eyewall purge --prefix /index.html"]);
    assert_eq!(volume.run(["get", "/index.html"]).text(), "page");
}

#[test]
fn a_value_is_a_file_or_standard_input() {
    let ended = Volume::new().run(["put", "k", "hello"]);
    assert_eq!(ended.code, 3);
    for words in ["can't read the value from the file hello", "printf VALUE | eyewall put KEY -"] {
        assert!(ended.stderr.contains(words), "{}", ended.stderr);
    }
}

#[test]
fn a_size_that_is_too_large_is_refused_with_the_largest() {
    let ended = Volume::absent().run(["create", "--size", "10T"]);
    assert_eq!(ended.code, 2);
    assert!(ended.stderr.contains("--size 10 TiB is too large; the largest volume has"), "{}", ended.stderr);
    assert!(ended.stderr.trim_end().ends_with("TiB"), "{}", ended.stderr);
}
