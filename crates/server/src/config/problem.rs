//! The mistakes in a configuration, with their places.

use std::fmt;
use std::ops::Range;

use serde::Serialize;

/// One mistake in a configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// Its place; `None` for mistakes of the whole file, or of the command line.
    #[serde(flatten)]
    pub place: Option<Place>,
    /// The mistake.
    pub message: String,
    /// How to fix it.
    pub hint: Option<String>,
    /// Whether a running server logs it by itself, by its own clock.
    #[serde(skip)]
    pub(crate) is_logged: bool,
}

/// A place in the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Place {
    /// The number of the line, from 1.
    pub line: usize,
    /// The number of the first character of the mistake, from 1.
    pub column: usize,
    /// The line itself, with blanks instead of tabs.
    pub text: String,
    /// The number of characters of the mistake, at least 1.
    #[serde(skip)]
    pub length: usize,
}

impl Place {
    /// The place of a range of bytes.
    fn of(file: &str, span: &Range<usize>) -> Self {
        let start = file.floor_char_boundary(span.start.min(file.len()));
        let line_start = file[..start].rfind('\n').map_or(0, |at| at + 1);
        let line_end = file[start..].find('\n').map_or(file.len(), |at| start + at);
        let end = file.floor_char_boundary(span.end.clamp(start, line_end));
        Self {
            line: file[..start].matches('\n').count() + 1,
            column: file[line_start..start].chars().count() + 1,
            text: file[line_start..line_end].trim_end().replace(|letter: char| letter.is_control(), " "),
            length: file[start..end].chars().count().max(1),
        }
    }
}

impl Problem {
    /// Its words and its place in one line.
    pub(crate) fn line(&self) -> String {
        let place = self.place.as_ref().map(|Place { line, column, .. }| format!("line {line}, column {column}: "));
        let hint = self.hint.as_ref().map(|hint| format!("; {hint}"));
        [place.as_deref().unwrap_or_default(), &self.message, hint.as_deref().unwrap_or_default()].concat()
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Some(Place { line, column, text, length }) => {
                writeln!(formatter, "line {line}, column {column}: {}", self.message)?;
                let gutter = line.to_string().len();
                writeln!(formatter, "  {line} | {text}")?;
                // A range over several lines is shown up to the end of its first line.
                let carets = (*length).min(text.chars().count().saturating_sub(column - 1)).max(1);
                writeln!(formatter, "  {:gutter$} | {:indent$}{}", "", "", "^".repeat(carets), indent = column - 1)?;
            }
            None => writeln!(formatter, "{}", self.message)?,
        }
        match &self.hint {
            Some(hint) => writeln!(formatter, "  hint: {hint}"),
            None => Ok(()),
        }
    }
}

/// A problem whose place is still a range of bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    /// The bytes of the file; `0..0` for a mistake without a place.
    pub(super) span: Range<usize>,
    pub(super) message: String,
    pub(super) hint: Option<String>,
    /// Whether the mistake is that something is missing. It isn't reported if parts of the file couldn't be read.
    pub(super) is_absence: bool,
    /// Whether the server works with it, but probably not as the operator means.
    pub(super) is_warning: bool,
    /// Whether a running server logs the warning by itself.
    pub(super) is_logged: bool,
}

impl Fault {
    pub(super) fn new(span: Range<usize>, message: impl Into<String>, hint: impl Into<String>) -> Self {
        let (message, hint) = (message.into(), Some(hint.into()));
        Self { span, message, hint, is_absence: false, is_warning: false, is_logged: false }
    }

    pub(super) fn absence(span: Range<usize>, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { is_absence: true, ..Self::new(span, message, hint) }
    }

    pub(super) fn warning(span: Range<usize>, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { is_warning: true, ..Self::new(span, message, hint) }
    }

    /// With its place in `file`; settings of the command line have no file.
    pub(super) fn into_problem(self, file: Option<&str>) -> Problem {
        let place = file.filter(|_| !self.span.is_empty()).map(|file| Place::of(file, &self.span));
        Problem { place, message: self.message, hint: self.hint, is_logged: self.is_logged }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_counts_letters_from_one() {
        let place = Place::of("a = 1\n\tb = \"\u{fc}\" # c\n", &(9..14));
        assert_eq!((place.line, place.column, place.length), (2, 4, 4));
        assert_eq!(place.text, " b = \"\u{fc}\" # c");
    }

    #[test]
    fn a_range_over_many_lines_is_shown_on_its_first() {
        let place = Place::of("a = [\n1,\n2]", &(4..11));
        assert_eq!((place.line, place.column, place.length, place.text.as_str()), (1, 5, 1, "a = ["));
    }

    #[test]
    fn a_range_past_the_end_is_shown_at_the_end() {
        let place = Place::of("a = ", &(4..9));
        assert_eq!((place.line, place.column, place.length), (1, 5, 1));
        assert_eq!(Place::of("", &(0..1)).line, 1);
    }

    #[test]
    fn a_warning_fits_in_a_line_of_the_log() {
        let problem = Fault::warning(6..10, "odd", "do this").into_problem(Some("x = 1\nport = 2"));
        assert_eq!(problem.line(), "line 2, column 1: odd; do this");
        assert_eq!(Fault::warning(0..0, "odd", "do this").into_problem(None).line(), "odd; do this");
    }

    #[test]
    fn carets_mark_the_mistake() {
        let problem = Fault::new(6..10, "wrong", "right").into_problem(Some("x = 1\nport = 2"));
        assert_eq!(problem.to_string(), "line 2, column 1: wrong\n  2 | port = 2\n    | ^^^^\n  hint: right\n");
    }
}
