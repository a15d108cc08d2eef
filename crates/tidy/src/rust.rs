//! The part of Rust's grammar that the checks need: comments, strings, and the ends of functions.

/// Replaces every character of a comment in `text` by a blank, and every character of a literal by a quotation
/// mark; keeps line breaks.
pub(crate) fn code_of(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut code = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        let (end, cover) = match chars[at] {
            '/' if chars.get(at + 1) == Some(&'/') => (line_end(&chars, at), Some(' ')),
            '/' if chars.get(at + 1) == Some(&'*') => (block_comment_end(&chars, at), Some(' ')),
            '"' => (string_end(&chars, at + 1), Some('"')),
            'r' if !is_in_word(&chars, at) => match raw_string_end(&chars, at) {
                Some(end) => (end, Some('"')),
                None => (at + 1, None),
            },
            '\'' => (character_end(&chars, at), Some('"')),
            _ => (at + 1, None),
        };
        code.extend(chars[at..end].iter().map(|&char| match cover {
            Some(cover) if char != '\n' => cover,
            _ => char,
        }));
        at = end;
    }
    code
}

fn line_end(chars: &[char], at: usize) -> usize {
    chars[at..].iter().position(|&char| char == '\n').map_or(chars.len(), |length| at + length)
}

fn block_comment_end(chars: &[char], at: usize) -> usize {
    let (mut depth, mut next) = (0_usize, at);
    while next < chars.len() {
        match (chars[next], chars.get(next + 1)) {
            ('/', Some('*')) => (depth, next) = (depth + 1, next + 2),
            ('*', Some('/')) => (depth, next) = (depth - 1, next + 2),
            _ => next += 1,
        }
        if depth == 0 {
            return next;
        }
    }
    chars.len()
}

/// The end of the string whose first character after the quotation mark is at `at`.
fn string_end(chars: &[char], mut at: usize) -> usize {
    while at < chars.len() {
        match chars[at] {
            '\\' => at += 2,
            '"' => return at + 1,
            _ => at += 1,
        }
    }
    chars.len()
}

/// The end of the raw string whose `r` is at `at`, if it is one: `r"…"`, `r#"…"#` and so on.
fn raw_string_end(chars: &[char], at: usize) -> Option<usize> {
    let hashes = chars[at + 1..].iter().take_while(|&&char| char == '#').count();
    let body = at + 1 + hashes;
    if chars.get(body) != Some(&'"') {
        return None;
    }
    let closes = |&start: &usize| {
        chars[start] == '"' && chars[start + 1..].iter().take_while(|&&char| char == '#').count() >= hashes
    };
    Some((body + 1..chars.len()).find(closes).map_or(chars.len(), |end| end + 1 + hashes))
}

/// The end of the character literal at `at`; for a lifetime, the end of its mark.
fn character_end(chars: &[char], at: usize) -> usize {
    match (chars.get(at + 1), chars.get(at + 2)) {
        (Some('\\'), _) => {
            let close = (at + 3..chars.len()).find(|&end| chars[end] == '\'');
            close.map_or(chars.len(), |end| end + 1)
        }
        (Some(_), Some('\'')) => at + 3,
        _ => at + 1,
    }
}

/// Whether the character at `at` continues a word, except prefixes of byte and C strings.
fn is_in_word(chars: &[char], at: usize) -> bool {
    let word = |char: &char| char.is_alphanumeric() || *char == '_';
    match at.checked_sub(1).map(|before| chars[before]) {
        Some('b' | 'c') => at >= 2 && word(&chars[at - 2]),
        Some(before) => word(&before),
        None => false,
    }
}

/// The words of a line of code, or of any text: letters, digits and underscores.
pub(crate) fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|char: char| !char.is_alphanumeric() && char != '_').filter(|word| !word.is_empty())
}

/// A function that has a body.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) name: String,
    /// The line of its `fn`, counted from 1.
    pub(crate) line: usize,
    /// Its lines from `fn` to the closing brace that hold code: neither blank nor comment.
    pub(crate) code_lines: usize,
}

/// The functions in `code`, which comes from [`code_of`].
pub(crate) fn functions(code: &str) -> Vec<Function> {
    let mut functions = Vec::new();
    for (start, _) in code.match_indices("fn ") {
        let name: String =
            code[start + 3..].trim_start().chars().take_while(|char| char.is_alphanumeric() || *char == '_').collect();
        let opens_a_word = !code[..start].ends_with(|char: char| char.is_alphanumeric() || char == '_');
        if !opens_a_word || name.is_empty() {
            continue;
        }
        if let Some(length) = body_end(&code[start..]) {
            let line = code[..start].matches('\n').count() + 1;
            let code_lines = code[start..start + length].lines().filter(|line| !line.trim().is_empty()).count();
            functions.push(Function { name, line, code_lines });
        }
    }
    functions
}

/// The length of the function at the start of `code`, up to its closing brace; `None` for a declaration without a
/// body.
fn body_end(code: &str) -> Option<usize> {
    let (mut brackets, mut braces) = (0_i32, 0_i32);
    for (at, char) in code.char_indices() {
        match char {
            '(' | '[' => brackets += 1,
            ')' | ']' => brackets -= 1,
            ';' if brackets == 0 && braces == 0 => return None,
            '{' if brackets == 0 || braces > 0 => braces += 1,
            '}' if braces > 0 => {
                braces -= 1;
                if braces == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names_and_lengths(text: &str) -> Vec<(String, usize, usize)> {
        functions(&code_of(text))
            .into_iter()
            .map(|function| (function.name, function.line, function.code_lines))
            .collect()
    }

    #[test]
    fn comments_become_blank_and_literals_become_marks() {
        assert_eq!(code_of("a // b\nc /* d /* e */ f */ g"), format!("a     \nc{}g", " ".repeat(19)));
        assert_eq!(code_of(r#"x("a\"{", 'y', '\'', b"z")"#), r#"x("""""", """, """", b""")"#);
    }

    #[test]
    fn lifetimes_are_not_literals() {
        assert_eq!(code_of("fn f<'a>(x: &'a str) {}"), "fn f<\"a>(x: &\"a str) {}");
    }

    #[test]
    fn raw_strings_end_at_their_own_hashes() {
        assert_eq!(code_of("r#\"a\"{\"# b"), "\"\"\"\"\"\"\"\" b");
        assert_eq!(code_of("br\"{\" r#type"), "b\"\"\"\" r#type");
    }

    #[test]
    fn a_function_counts_its_lines_of_code_only() {
        let text = "\n/// Doc\npub fn one(\n    x: [u8; 4],\n) -> u8 {\n    // why\n\n    \"}\"; x[0]\n}\n";
        assert_eq!(names_and_lengths(text), [("one".to_owned(), 3, 5)]);
    }

    #[test]
    fn declarations_and_pointer_types_are_no_functions() {
        assert_eq!(names_and_lengths("trait T { fn f(&self); }\ntype P = fn (u8) -> u8;\n"), []);
    }

    #[test]
    fn functions_inside_functions_are_counted_in_both() {
        let text = "fn outer() {\n    fn inner() {\n    }\n}\n";
        assert_eq!(names_and_lengths(text), [("outer".to_owned(), 1, 4), ("inner".to_owned(), 2, 2)]);
    }
}
