//! One word per concept: the synonyms that the glossary forbids.
//!
//! The glossary is the single source. A table with a column `never` lists there, separated by commas, the words that nobody uses
//! for the concept. A row with another number of cells than its header is an error. The check looks for them in prose, in code and inside names: `shard` also finds `ShardCount` and
//! `shards_max`. A line that needs such a word carries `tidy: word`.

use crate::config::Config;
use crate::files::{File, Finding};

const WAIVER: &str = "tidy: word";

/// The files that speak to a reader.
const CHECKED: [&str; 9] = ["rs", "md", "c", "h", "py", "pm", "php", "js", "html"];

/// A forbidden word or sequence of words, in lower case, and the word to use.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Synonym {
    never: Vec<String>,
    instead: String,
}

/// Reads the forbidden words from the glossary at `path`.
pub(crate) fn read(files: &[File], path: &str) -> Result<Vec<Synonym>, String> {
    let glossary = files.iter().find(|file| file.path == path).ok_or_else(|| format!("{path} is missing"))?;
    let synonyms =
        parse(&glossary.text).map_err(|line| format!("{path}:{line}: this row has not as many cells as its header"))?;
    if synonyms.is_empty() { Err(format!("{path} has no table with a column `never`")) } else { Ok(synonyms) }
}

/// The number of a line is the error, if its row doesn't fit its header.
fn parse(text: &str) -> Result<Vec<Synonym>, usize> {
    let mut synonyms = Vec::new();
    let mut header = None;
    for (index, line) in text.lines().enumerate() {
        let Some(row) = line.trim().strip_prefix('|') else {
            header = None;
            continue;
        };
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let Some((column, count)) = header else {
            header = cells.iter().position(|cell| *cell == "never").map(|column| (column, cells.len()));
            continue;
        };
        if cells.len() != count {
            return Err(index + 1);
        }
        let instead = cells[0].trim_matches('*').to_owned();
        let phrases = cells.get(column).into_iter().flat_map(|cell| cell.split(',')).map(parts);
        synonyms
            .extend(phrases.filter(|never| !never.is_empty()).map(|never| Synonym { never, instead: instead.clone() }));
    }
    Ok(synonyms)
}

pub(crate) fn check(file: &File, synonyms: &[Synonym], config: &Config) -> Vec<Finding> {
    if !CHECKED.contains(&file.extension()) || Config::covers(&config.glossary.exempt, &file.path) {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for (index, line) in file.text.lines().enumerate().filter(|(_, line)| !line.contains(WAIVER)) {
        let mut ours = String::with_capacity(line.len());
        // A foreign name leaves a full stop, so that the words around it don't form a sequence.
        for piece in line.split_inclusive(|char: char| !char.is_alphanumeric() && char != '_') {
            let name = piece.trim_end_matches(|char: char| !char.is_alphanumeric() && char != '_');
            ours.push_str(if config.glossary.foreign.contains(name) { ". " } else { piece });
        }
        let said = parts(&ours);
        for synonym in synonyms.iter().filter(|synonym| says(&said, &synonym.never)) {
            let message =
                format!("`{}` is not a word of the glossary; say `{}`", synonym.never.join(" "), synonym.instead);
            findings.push(file.finding(index + 1, message));
        }
    }
    findings
}

/// Whether `said` contains `phrase`, with its last word in the singular or the plural.
fn says(said: &[String], phrase: &[String]) -> bool {
    said.windows(phrase.len()).any(|window| {
        window.iter().zip(phrase).enumerate().all(|(index, (said, word))| {
            said == word || (index + 1 == phrase.len() && said.strip_suffix('s') == Some(word.as_str()))
        })
    })
}

/// The words of a text in lower case, with names split: `ShardCount` and `shard_count` both give `shard`,
/// `count`. Punctuation marks are words of their own.
fn parts(text: &str) -> Vec<String> {
    let mut spaced = String::with_capacity(2 * text.len());
    let mut previous = ' ';
    for char in text.chars() {
        match char {
            '.' | ';' | ':' | ',' | '(' | ')' => spaced.extend([' ', char, ' ']),
            _ if !char.is_alphanumeric() => spaced.push(' '),
            _ => {
                if char.is_uppercase() && !previous.is_uppercase() {
                    spaced.push(' ');
                }
                spaced.extend(char.to_lowercase());
            }
        }
        previous = char;
    }
    spaced.split_whitespace().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{English, Glossary, Length};
    use crate::files::{file, lines};

    const GLOSSARY: &str = "# Words\n\n| word | meaning | elsewhere | never |\n|---|---|---|---|\n\
        | **stripe** | a part | Guava: segment | shard |\n| **slot** | 8 bytes | | index entry, cell |\n| **key** | bytes | | |\n";

    fn found(path: &str, text: &str) -> Vec<usize> {
        let config = Config {
            not_ours: Vec::new(),
            length: Length { file_lines_max: 1, function_lines_max: 1 },
            glossary: Glossary {
                file: String::new(),
                exempt: vec!["notes/".to_owned()],
                foreign: ["Shards".to_owned(), "cell".to_owned(), "Cell".to_owned()].into(),
            },
            english: English {
                sentence_words_max: 1,
                exempt: Vec::new(),
                comments_exempt: Vec::new(),
                phrases: Vec::new(),
            },
            decisions: String::new(),
            manual: String::new(),
            direction: [].into(),
            confined: Vec::new(),
        };
        lines(check(&file(path, text), &parse(GLOSSARY).unwrap(), &config))
    }

    #[test]
    fn the_glossary_is_read_from_its_tables() {
        let words: Vec<String> = parse(GLOSSARY).unwrap().iter().map(|synonym| synonym.never.join(" ")).collect();
        assert_eq!(words, ["shard", "index entry", "cell"]);
        assert_eq!(parse("| word | meaning |\n|---|---|\n| a | b |\n").unwrap(), []);
        assert_eq!(parse("| word | meaning | never |\n|---|---|---|\n| a | b |\n").unwrap_err(), 3);
    }

    #[test]
    fn synonyms_are_found_in_prose_and_inside_names() {
        assert_eq!(
            found("a.rs", "// One shard.\nlet shards_max = 1;\nstruct ShardCount;\nlet sharded = 2;\n"),
            [1, 2, 3]
        );
        assert_eq!(found("a.md", "An index entry\nindexes entry\nindex. Entry\nindex entries\nIndexEntry\n"), [1, 5]);
    }

    #[test]
    fn foreign_names_exempt_places_and_marked_lines_pass() {
        assert_eq!(found("a.rs", "Shards::new(); Cell::new(3)\nmap.shard() // tidy: word, a method of the map\n"), []);
        assert_eq!(found("notes/a.md", "shard"), []);
        assert_eq!(found("a.rs", "index Cell entry"), []);
    }
}
