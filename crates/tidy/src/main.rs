//! The checks on Eyewall's own sources that rustfmt and Clippy do not make.
//!
//! `cargo run -p eyewall-tidy` reads every file that git tracks or would add, and prints one line per finding:
//! `path:line: what is wrong; what to do`. It exits with 0 if there are no findings, 1 if there are some, and 2 if it failed.
//! `tidy.toml` at the root of the repository has its settings, and `docs/glossary.md` the forbidden synonyms.

#![forbid(unsafe_code)]

mod config;
mod confined;
mod crates;
mod decisions;
mod english;
mod files;
mod glossary;
mod length;
mod links;
mod prose;
mod rust;
mod text;

use std::path::Path;
use std::process::ExitCode;

use config::Config;
use files::{File, Finding};

fn main() -> ExitCode {
    match look() {
        Ok((files, findings)) if findings.is_empty() => {
            println!("tidy: {files} files, nothing to mend");
            ExitCode::SUCCESS
        }
        Ok((files, findings)) => {
            for finding in &findings {
                println!("{finding}");
            }
            println!("tidy: {files} files, {} to mend", findings.len());
            ExitCode::FAILURE
        }
        Err(reason) => {
            eprintln!("tidy: {reason}");
            ExitCode::from(2)
        }
    }
}

/// Runs every check on the repository of the working directory, and returns the number of files and the findings.
fn look() -> Result<(usize, Vec<Finding>), String> {
    let root = files::git(Path::new("."), &["rev-parse", "--show-toplevel"])?;
    let root = Path::new(root.trim_end());
    let config = Config::read(&root.join("tidy.toml"))?;
    let files = files::read_all(root)?;
    let mut findings = all_checks(&files, &config, &text::paths_of_this_machine(root))?;
    findings.extend(links::check(&files, &files::paths(root)?, &config.manual));
    findings.sort();
    Ok((files.len(), findings))
}

/// Runs every check on every file.
fn all_checks(files: &[File], config: &Config, machine_paths: &[String]) -> Result<Vec<Finding>, String> {
    let mut findings = Vec::new();
    let synonyms = glossary::read(files, &config.glossary.file)?;
    for file in files.iter().filter(|file| !Config::covers(&config.not_ours, &file.path)) {
        findings.extend(length::check(file, config));
        findings.extend(text::check(file, machine_paths));
        findings.extend(glossary::check(file, &synonyms, config));
        findings.extend(confined::check(file, config));
        findings.extend(english::check(file, config));
    }
    findings.extend(crates::check(files, config)?);
    findings.extend(decisions::check(files, &config.decisions));
    Ok(findings)
}
