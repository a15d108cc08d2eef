//! Plain English: phrases that a reader has to read twice, and pages whose sentences are too long.
//!
//! `tidy.toml` has the phrases, each with what to write instead. A phrase is words in a row. `^` stands for the beginning of
//! a sentence that isn't a heading or a cell, `a|b` for either word, `*` for any word, and `!a|b` for a word before, or none, that is neither. Questions are not
//! held against them, nor are words that a comma parts.

use crate::config::{Config, English};
use crate::files::{File, Finding};
use crate::prose::{self, Sentence, Word};

/// Pages with fewer sentences have no average worth the name.
const FEWEST_SENTENCES: usize = 8;

pub(crate) fn check(file: &File, config: &Config) -> Vec<Finding> {
    let rules = &config.english;
    if file.extension() == "md" && !Config::covers(&rules.exempt, &file.path) {
        let sentences = prose::of_markdown(&file.text);
        let mut findings = phrases(file, &sentences, rules);
        findings.extend(too_long(file, &sentences, rules.sentence_words_max));
        return findings;
    }
    if file.is_rust() && !Config::covers(&rules.comments_exempt, &file.path) {
        return phrases(file, &prose::of_comments(&file.text), rules);
    }
    Vec::new()
}

fn phrases(file: &File, sentences: &[Sentence], rules: &English) -> Vec<Finding> {
    let mut findings = Vec::new();
    for rule in &rules.phrases {
        let phrase = Phrase::parse(&rule.never);
        for sentence in sentences.iter().filter(|sentence| phrase.concerns(sentence)) {
            if let Some(found) = phrase.find(&sentence.words) {
                let said: Vec<&str> = found.iter().map(|word| word.text.as_str()).collect();
                let message = format!("`{}` is not plain English; {}", said.join(" "), rule.instead);
                findings.extend(found.first().map(|word| file.finding(word.line, message)));
            }
        }
    }
    findings
}

/// The longest sentence of a page whose sentences have more than `words_max` words on average.
fn too_long(file: &File, sentences: &[Sentence], words_max: usize) -> Option<Finding> {
    let running: Vec<&Sentence> = sentences.iter().filter(|sentence| sentence.is_running_text).collect();
    let words: usize = running.iter().map(|sentence| sentence.words.len()).sum();
    if running.len() < FEWEST_SENTENCES || words <= words_max * running.len() {
        return None;
    }
    let longest = running.iter().max_by_key(|sentence| sentence.words.len())?;
    let message = format!(
        "the sentences of this page have {} words on average, at most {words_max} are fine; begin with this one, which has {}",
        words.div_ceil(running.len()),
        longest.words.len()
    );
    Some(file.finding(longest.words.first()?.line, message))
}

/// Words in a row that nobody writes.
struct Phrase<'a> {
    starts_sentence: bool,
    not_before: Vec<&'a str>,
    words: Vec<Vec<&'a str>>,
}

impl<'a> Phrase<'a> {
    fn parse(text: &'a str) -> Self {
        let (starts_sentence, text) = text.strip_prefix('^').map_or((false, text), |rest| (true, rest));
        let mut phrase = Self { starts_sentence, not_before: Vec::new(), words: Vec::new() };
        for word in text.split_whitespace() {
            match word.strip_prefix('!') {
                Some(not) => phrase.not_before = not.split('|').collect(),
                None => phrase.words.push(word.split('|').collect()),
            }
        }
        phrase
    }

    fn concerns(&self, sentence: &Sentence) -> bool {
        !sentence.is_question && (sentence.is_running_text || !self.starts_sentence)
    }

    fn find<'w>(&self, words: &'w [Word]) -> Option<&'w [Word]> {
        let starts = if self.starts_sentence { 1 } else { words.len() };
        (0..starts).find_map(|start| {
            let found = words.get(start..start + self.words.len())?;
            let before = start.checked_sub(1).and_then(|at| words.get(at));
            let fits = found
                .iter()
                .zip(&self.words)
                .all(|(word, wanted)| wanted.iter().any(|wanted| *wanted == "*" || *wanted == word.text));
            let goes_on = found.iter().rev().skip(1).all(|word| !word.ends_phrase);
            let excused = before.is_some_and(|word| self.not_before.contains(&&*word.text));
            (fits && goes_on && !excused).then_some(found)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::NeverSaid;
    use crate::files::{file, lines};

    fn rules(never: &str) -> English {
        let phrase =
            NeverSaid { never: never.to_owned(), instead: "say it plainly".to_owned(), example: String::new() };
        English { sentence_words_max: 10, exempt: Vec::new(), comments_exempt: Vec::new(), phrases: vec![phrase] }
    }

    fn found(never: &str, text: &str) -> Vec<usize> {
        lines(phrases(&file("a.md", text), &prose::of_markdown(text), &rules(never)))
    }

    #[test]
    fn a_phrase_is_found_across_lines_and_not_across_commas() {
        assert_eq!(found("but for", "All of them but\nfor one.\n\nNot this, but, for once, that.\n"), [1]);
        assert_eq!(found("but for", "Is it but for you?\n"), []);
        assert_eq!(found("but for", "| a | none but for one |\n\n```\nbut for\n```\n"), [1]);
    }

    #[test]
    fn a_beginning_is_no_middle() {
        let text = "What who runs it wants.\n\nIt says what who wants.\n";
        assert_eq!(found("^what who", text), [1]);
        assert_eq!(found("what who", text), [1, 3]);
        assert_eq!(found("^who", "## Who may send it\n\n| who | what |\n\nWho sends it wins.\n"), [5]);
    }

    #[test]
    fn words_have_alternatives_and_words_before_that_excuse_them() {
        let text = "Below it may they listen.\n\nNor may it listen.\n\nMay they listen.\n";
        assert_eq!(found("!nor|neither may|can it|they", text), [1, 5]);
        assert_eq!(found("gone|over * is", "Gone it is.\n"), [1]);
    }

    #[test]
    fn each_phrase_of_ours_finds_its_example() {
        let config = Config::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tidy.toml")).unwrap();
        for phrase in &config.english.phrases {
            assert_eq!(found(&phrase.never, &phrase.example), [1], "`{}`: {}", phrase.never, phrase.example);
        }
        for fine in [
            "Nor may it listen.",
            "It may bind ports below 1024.",
            "Not this, but, for once, that.",
            "It says what isn't stored.",
        ] {
            for phrase in &config.english.phrases {
                assert_eq!(found(&phrase.never, fine), [], "`{}`: {fine}", phrase.never);
            }
        }
    }

    #[test]
    fn a_message_says_what_and_what_instead() {
        let text = "All but for one.\n";
        let messages: Vec<String> = phrases(&file("a.md", text), &prose::of_markdown(text), &rules("but for"))
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(messages, ["a.md:1: `but for` is not plain English; say it plainly"]);
    }

    #[test]
    fn long_sentences_are_told_by_their_average() {
        let (short, long) = ("One two three. ".repeat(8), format!("{}.\n", "word ".repeat(70)));
        let check = |text: &str| too_long(&file("a.md", text), &prose::of_markdown(text), 10).is_some();
        assert!(!check(&short));
        assert!(check(&format!("{short}\n\n{long}")));
        assert!(!check(&format!("{short}\n\n| {long} |\n")));
        assert!(!check(&long));
    }
}
