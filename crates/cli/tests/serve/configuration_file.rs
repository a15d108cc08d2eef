//! A configuration file that the server uses, or that has mistakes.

use crate::common::command::{eyewall, run};
use crate::common::server::Site;

#[test]
fn mistakes_in_a_file_are_reported() {
    let site = Site::new();
    site.write("wrong.toml", "[[site]]\norigins = [\"http://a\"]\npreset = \"blogg\"\n");
    let wrong = site.path().join("wrong.toml");
    let ended = run(eyewall().args(["serve", "--config"]).arg(&wrong), b"");
    assert_eq!((ended.code, ended.text()), (2, ""));
    assert!(ended.stderr.contains("wrong.toml") && ended.stderr.contains("line 3, column 10"), "{}", ended.stderr);
    let ended = run(eyewall().args(["serve", "--root", "/", "--config"]).arg(&wrong), b"");
    assert_eq!(ended.code, 2);
    assert!(ended.stderr.contains("cannot be used with"), "{}", ended.stderr);
}
