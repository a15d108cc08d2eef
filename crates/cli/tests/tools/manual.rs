//! Manual pages and help texts are generated from the definition of the command line, so they are complete.

use crate::command::{Volume, eyewall, run};
use crate::expected::expect;

const VERBS: [&str; 20] = [
    "create",
    "put",
    "get",
    "rm",
    "ls",
    "stat",
    "top",
    "map",
    "purge",
    "sweep",
    "sync",
    "verify",
    "scrub",
    "export",
    "import",
    "serve",
    "check",
    "advise",
    "completions",
    "man",
];

#[test]
fn a_folder_gets_a_page_for_each_verb() {
    let volume = Volume::absent();
    let folder = volume.folder().join("share/man1");
    let ended = run(eyewall().arg("man").arg(&folder), b"");
    assert_eq!((ended.code, ended.text(), ended.stderr.as_str()), (0, "", ""));
    let whole = std::fs::read_to_string(folder.join("eyewall.1")).unwrap();
    for verb in VERBS {
        let page = std::fs::read_to_string(folder.join(format!("eyewall-{verb}.1"))).unwrap();
        assert!(page.starts_with(".ie") && page.contains(".SH SYNOPSIS"), "{page}");
        assert!(whole.contains(&format!("eyewall\\-{verb}(1)")), "{verb} in {whole}");
    }
    let advise = std::fs::read_to_string(folder.join("eyewall-advise.1")).unwrap();
    assert!(advise.contains("Waldspurger"), "what stands below the help: {advise}");
}

#[test]
fn without_a_folder_the_main_page_is_written() {
    let page = run(eyewall().arg("man"), b"");
    assert_eq!(page.code, 0);
    assert!(page.text().contains(".TH eyewall 1") && page.text().contains("Exit codes"), "{}", page.text());
}

#[test]
fn a_folder_that_cannot_be_created_is_reported() {
    let volume = Volume::absent();
    std::fs::write(volume.path(), b"a file").unwrap();
    let ended = run(eyewall().arg("man").arg(volume.path()), b"");
    assert_eq!(ended.code, 3);
    assert!(ended.stderr.contains("can't write") && ended.stderr.contains("site.eye"), "{}", ended.stderr);
}

#[test]
fn the_help_texts_are_as_expected() {
    for words in [&["--help"][..], &["ls", "--help"], &["advise", "--help"]] {
        let help = run(eyewall().args(words).env("COLUMNS", "100"), b"");
        assert_eq!(help.code, 0);
        let name = words.join("").replace("--", "-").trim_start_matches('-').to_owned();
        // Lines of blanks separate the paragraphs of an option.
        let lines = help.text().lines().map(|line| format!("{}\n", line.trim_end()));
        expect(&format!("{name}.txt"), &lines.collect::<String>());
    }
}
