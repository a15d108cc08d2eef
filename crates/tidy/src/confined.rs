//! Words of Rust code that are allowed only in some places, such as `unsafe` and the calls that map memory.

use crate::config::{Config, Confined};
use crate::files::{File, Finding};
use crate::rust;

pub(crate) fn check(file: &File, config: &Config) -> Vec<Finding> {
    if !file.is_rust() {
        return Vec::new();
    }
    let code = rust::code_of(&file.text);
    let elsewhere = config.confined.iter().filter(|rule| !Config::covers(&rule.places, &file.path));
    elsewhere.flat_map(|rule| broken(file, &code, rule)).collect()
}

fn broken(file: &File, code: &str, rule: &Confined) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in code.lines().enumerate() {
        if let Some(word) = rust::words(line).find(|word| rule.words.contains(*word)) {
            let message = format!("`{word}` may not stand here; {} (tidy.toml names its places)", rule.instead);
            findings.push(file.finding(index + 1, message));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::{file, lines};

    #[test]
    fn a_confined_word_is_found_in_code_outside_its_places() {
        let rule = Confined {
            words: ["unsafe".to_owned()].into(),
            places: vec!["crates/region/".to_owned(), "crates/engine/src/pin.rs".to_owned()],
            instead: "move it".to_owned(),
        };
        let text = "// unsafe in words\n#![forbid(unsafe_code)]\nunsafe { f() }\n";
        let found = |path| {
            let file = file(path, text);
            if Config::covers(&rule.places, path) {
                Vec::new()
            } else {
                lines(broken(&file, &rust::code_of(text), &rule))
            }
        };
        assert_eq!(found("crates/region/src/lib.rs"), []);
        assert_eq!(found("crates/engine/src/pin.rs"), []);
        assert_eq!(found("crates/engine/src/cache.rs"), [3]);
    }

    #[test]
    fn words_in_strings_and_comments_are_no_code() {
        let rule = Confined { words: ["unsafe".to_owned()].into(), places: Vec::new(), instead: String::new() };
        for (text, wanted) in [
            ("let text = \"unsafe { f() }\";\n", &[][..]),
            ("let text = \"one\n unsafe \\\" unsafe\";\n", &[]),
            ("let text = [r\"unsafe\", r#\"a\" unsafe \"#, b\"unsafe\", br#\"unsafe\"#, c\"unsafe\"];\n", &[]),
            ("/* unsafe /* unsafe */\n unsafe */ /// unsafe\n//! unsafe\n", &[]),
            ("let quote = '\"'; unsafe { f() }\nlet quote = b'\\''; unsafe { f() }\n", &[1, 2]),
            ("fn f<'a>() {}\nunsafe fn g() {} // \"\nunsafe fn h() {}\n", &[2, 3]),
        ] {
            assert_eq!(lines(broken(&file("a.rs", text), &rust::code_of(text), &rule)), wanted, "{text}");
        }
    }
}
