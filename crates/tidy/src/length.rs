//! Files and functions that are too long to be read in one go.
//!
//! A file or function that is better long says why in a comment with the words of `WAIVER`, at the top of the file or right above the
//! function. The check reports a waiver that is no longer needed.

use crate::config::Config;
use crate::files::{File, Finding};
use crate::rust;

const WAIVER: &str = "tidy: long because";

/// Files with handwritten code. Prose, data and generated files may have any length.
const CODE: [&str; 13] = ["rs", "c", "h", "go", "sh", "py", "pl", "pm", "xs", "php", "js", "ts", "css"];

pub(crate) fn check(file: &File, config: &Config) -> Vec<Finding> {
    let mut findings = Vec::new();
    if CODE.contains(&file.extension()) {
        findings.extend(check_file(file, config.length.file_lines_max));
    }
    if file.is_rust() {
        findings.extend(check_functions(file, config.length.function_lines_max));
    }
    findings
}

fn check_file(file: &File, lines_max: usize) -> Option<Finding> {
    let lines = file.text.lines().count();
    let what = format!("{lines} lines, the most is {lines_max}");
    let mut top = file.text.lines().take_while(|line| is_comment(line));
    let waiver = top.position(|line| line.contains(WAIVER));
    verdict(file, 1, lines > lines_max, waiver.map(|index| index + 1), &what, "split the file by its nouns")
}

fn check_functions(file: &File, lines_max: usize) -> Vec<Finding> {
    let lines: Vec<&str> = file.text.lines().collect();
    let too_long = |function: rust::Function| {
        let what = format!("`{}` has {} lines of code, the most is {lines_max}", function.name, function.code_lines);
        let above = lines[..function.line - 1].iter().rev().take_while(|line| is_comment_or_attribute(line));
        let waiver =
            above.enumerate().find(|(_, line)| line.contains(WAIVER)).map(|(index, _)| function.line - 1 - index);
        verdict(file, function.line, function.code_lines > lines_max, waiver, &what, "split the function")
    };
    rust::functions(&rust::code_of(&file.text)).into_iter().filter_map(too_long).collect()
}

/// The finding about something that is or isn't too long, with or without a waiver.
fn verdict(file: &File, line: usize, is_long: bool, waiver: Option<usize>, what: &str, mend: &str) -> Option<Finding> {
    match (is_long, waiver) {
        (true, None) => Some(file.finding(line, format!("{what}; {mend}, or say in a comment `{WAIVER} …`"))),
        (false, Some(line)) => Some(file.finding(line, format!("{what}; drop `{WAIVER} …`, it is not needed"))),
        (true, Some(_)) | (false, None) => None,
    }
}

/// A line of a comment, or the one that PHP has before its first comment.
fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with(['/', '#', '*']) || line == "<?php"
}

fn is_comment_or_attribute(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("//") || line.starts_with("#[")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::{file, lines};

    const BODY: &str = "    call();\n    call();\n";

    #[test]
    fn a_long_file_is_found_unless_it_says_why() {
        let text = "a\nb\nc\n";
        assert_eq!(lines(check_file(&file("a.rs", text), 3)), []);
        assert_eq!(lines(check_file(&file("a.rs", text), 2)), [1]);
        assert_eq!(lines(check_file(&file("a.rs", &format!("// {WAIVER} a table\n{text}")), 2)), []);
        assert_eq!(lines(check_file(&file("a.php", &format!("<?php\n// {WAIVER} a table\n{text}")), 2)), []);
    }

    #[test]
    fn a_long_function_is_found_unless_it_says_why() {
        let text = format!("// x\n#[inline]\nfn f() {{\n{BODY}}}\n");
        assert_eq!(lines(check_functions(&file("a.rs", &text), 4)), []);
        assert_eq!(lines(check_functions(&file("a.rs", &text), 3)), [3]);
        assert_eq!(lines(check_functions(&file("a.rs", &text.replace("// x", &format!("// {WAIVER} of x"))), 3)), []);
    }

    #[test]
    fn a_reason_that_is_not_needed_is_found() {
        let text = format!("//! Story.\n// {WAIVER} a table\n");
        assert_eq!(lines(check_file(&file("a.rs", &text), 9)), [2]);
        let text = format!("// {WAIVER} of x\nfn f() {{\n{BODY}}}\n");
        assert_eq!(lines(check_functions(&file("a.rs", &text), 9)), [1]);
    }

    #[test]
    fn the_reason_of_the_first_function_is_not_one_of_the_file() {
        let text = file("a.rs", &format!("//! Story.\n\n// {WAIVER} of x\nfn f() {{\n{BODY}}}\n"));
        assert_eq!(lines(check_functions(&text, 3)), []);
        assert_eq!(lines(check_file(&text, 3)), [1]);
    }
}
