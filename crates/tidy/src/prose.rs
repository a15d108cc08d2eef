//! The sentences of a Markdown page, and of the comments of a Rust file, which are Markdown, too.

/// A word in lower case, with its line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Word {
    pub(crate) line: usize,
    pub(crate) text: String,
    /// A comma or another mark follows, so that no phrase goes on behind it.
    pub(crate) ends_phrase: bool,
}

/// Words in a row up to a full stop, a question mark, or the end of a paragraph, a list item, a heading or a cell.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Sentence {
    pub(crate) words: Vec<Word>,
    pub(crate) is_question: bool,
    /// It stands in a paragraph or in a list, not in a heading or a table.
    pub(crate) is_running_text: bool,
}

/// The sentences of a Markdown page. Code, front matter and addresses of links are no words; a code span is one.
pub(crate) fn of_markdown(text: &str) -> Vec<Sentence> {
    let lines: Vec<&str> = text.lines().collect();
    let behind = match lines.first() {
        Some(&"---") => lines.iter().skip(1).position(|line| *line == "---").map_or(0, |at| at + 2),
        _ => 0,
    };
    of_lines(lines.into_iter().enumerate().skip(behind).map(|(index, line)| (index + 1, line)))
}

/// The sentences of the comments of a Rust file that have lines of their own.
pub(crate) fn of_comments(text: &str) -> Vec<Sentence> {
    of_lines(text.lines().enumerate().map(|(index, line)| {
        let comment = line.trim_start().strip_prefix("//").unwrap_or_default();
        (index + 1, comment.trim_start_matches(['/', '!']))
    }))
}

fn of_lines<'a>(lines: impl Iterator<Item = (usize, &'a str)>) -> Vec<Sentence> {
    let mut reading = Reading::default();
    let mut in_code = false;
    for (number, line) in lines {
        let text = line.trim();
        if text.starts_with("```") || text.starts_with("~~~") {
            in_code = !in_code;
            reading.end_block();
        } else if in_code || text.is_empty() {
            reading.end_block();
        } else if let Some(row) = text.strip_prefix('|') {
            reading.end_block();
            row.split('|').for_each(|cell| reading.take(&[(number, cell.to_owned())], false));
        } else if text.starts_with('#') {
            reading.end_block();
            reading.take(&[(number, text.trim_start_matches('#').to_owned())], false);
        } else {
            let text = text.trim_start_matches("> ");
            let item = item_text(text);
            if item.is_some() {
                reading.end_block();
            }
            reading.block.push((number, item.unwrap_or(text).to_owned()));
        }
    }
    reading.end_block();
    reading.sentences
}

/// What an item of a list says, if `text` begins one.
fn item_text(text: &str) -> Option<&str> {
    let numbered = text.trim_start_matches(|char: char| char.is_ascii_digit());
    let marks = if numbered.len() < text.len() { [". ", ") "] } else { ["- ", "* "] };
    marks.iter().find_map(|mark| numbered.strip_prefix(mark))
}

/// The sentences so far, and the lines of the paragraph that is being read.
#[derive(Default)]
struct Reading {
    sentences: Vec<Sentence>,
    block: Vec<(usize, String)>,
}

impl Reading {
    fn end_block(&mut self) {
        let block = std::mem::take(&mut self.block);
        self.take(&block, true);
    }

    fn take(&mut self, block: &[(usize, String)], is_running_text: bool) {
        let mut sentence = Sentence { is_running_text, ..Sentence::default() };
        let mut plain = Plain::default();
        for (line, text) in block {
            for piece in plain.line(text).split_whitespace() {
                let word = piece.trim_matches(|char: char| !char.is_alphanumeric() && char != '`');
                if !word.is_empty() {
                    let rest = piece.trim_end_matches(['*', '_', '"', '\'']);
                    sentence.words.push(Word {
                        line: *line,
                        text: word.to_lowercase(),
                        ends_phrase: rest.ends_with([',', ';', ':', '.', '!', '?', ')', '–', '—']),
                    });
                }
                let end = piece.trim_end_matches(['*', '_', '"', '\'', ')']);
                if end.ends_with(['.', '!', '?']) {
                    sentence.is_question = end.ends_with('?');
                    self.end_sentence(&mut sentence);
                }
            }
        }
        self.end_sentence(&mut sentence);
    }

    fn end_sentence(&mut self, sentence: &mut Sentence) {
        let next = Sentence { is_running_text: sentence.is_running_text, ..Sentence::default() };
        let ended = std::mem::replace(sentence, next);
        if !ended.words.is_empty() {
            self.sentences.push(ended);
        }
    }
}

/// Takes code spans, addresses of links and tags out of the lines of a paragraph.
#[derive(Default)]
struct Plain {
    in_code: bool,
}

impl Plain {
    /// `line` with a backtick for each code span that begins in it.
    fn line(&mut self, line: &str) -> String {
        let mut plain = String::with_capacity(line.len());
        let mut rest = line;
        while let Some(char) = rest.chars().next() {
            let covered = match char {
                '`' => {
                    self.in_code = !self.in_code;
                    plain.push_str(if self.in_code { "`" } else { "" });
                    rest.len() - rest.trim_start_matches('`').len()
                }
                ']' if !self.in_code && rest.starts_with("](") => rest.find(')').map_or(rest.len(), |at| at + 1),
                '<' if !self.in_code
                    && rest[1..].starts_with(|next: char| next.is_alphabetic() || "/!".contains(next)) =>
                {
                    rest.find('>').map_or(rest.len(), |at| at + 1)
                }
                _ => {
                    if !self.in_code && char != '[' {
                        plain.push(char);
                    }
                    char.len_utf8()
                }
            };
            rest = &rest[covered..];
        }
        plain
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(sentences: &[Sentence]) -> Vec<String> {
        let line = |sentence: &Sentence| sentence.words.first().map_or(0, |word| word.line);
        let words =
            |sentence: &Sentence| sentence.words.iter().map(|word| word.text.clone()).collect::<Vec<_>>().join(" ");
        sentences.iter().map(|sentence| format!("{} {}", line(sentence), words(sentence))).collect()
    }

    #[test]
    fn sentences_go_over_lines_and_end_at_stops_items_and_cells() {
        let text = "# A heading\n\nOne sentence\nover lines. Another, of 2.5 words?\n- an item\n  goes on\n2. next\n\n| a cell | b |\n";
        assert_eq!(
            said(&of_markdown(text)),
            [
                "1 a heading",
                "3 one sentence over lines",
                "4 another of 2.5 words",
                "5 an item goes on",
                "7 next",
                "9 a cell",
                "9 b"
            ]
        );
        let questions: Vec<bool> = of_markdown(text).iter().map(|sentence| sentence.is_question).collect();
        assert_eq!(questions, [false, false, true, false, false, false, false]);
    }

    #[test]
    fn code_addresses_tags_and_front_matter_are_no_words() {
        let text = "---\ntitle: no\n---\nRun `make. test` of [a page](https://example.org/a.b) <br>now.\n\n```sh\nnot this\n```\n";
        assert_eq!(said(&of_markdown(text)), ["4 run ` of a page now"]);
    }

    #[test]
    fn comments_are_read_and_code_is_not() {
        let text = "//! A module\n//! of words.\nlet not = 1; // nor this\n    /// A field\n    field: u8,\n";
        assert_eq!(said(&of_comments(text)), ["1 a module of words", "4 a field"]);
    }
}
