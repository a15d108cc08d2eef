//! The expected bodies of responses: one for all, or one for each number.

use std::fs;
use std::path::PathBuf;

use super::request::NUMBER;
use crate::error::{Error, Result};

/// The maximum number of files; without `--names` they would have no end.
const NAMES_MAX: u64 = 100_000;

/// The expected bodies.
#[derive(Debug)]
pub(crate) struct References {
    /// The name of the file, with a placeholder for the number if there are several.
    file: String,
    /// The lengths by number; only one if there is a single body.
    lengths: Vec<u64>,
    /// The last body and its number.
    last: Option<(u64, Vec<u8>)>,
}

impl References {
    /// Reads a file; or, if its name contains {}, the files of the numbers below `names`.
    pub(crate) fn read(file: &str, names: u64) -> Result<Self> {
        let count = match (file.contains(NUMBER), names) {
            (false, _) => 1,
            (true, ..=NAMES_MAX) => names,
            (true, _) => return Err(Error::Names { file: file.to_owned(), most: NAMES_MAX }),
        };
        let length = |number| {
            let path = path(file, number);
            let found = fs::metadata(&path).map_err(Error::io(format!("reading {}", path.display())))?;
            Ok(found.len())
        };
        let lengths = (0..count).map(length).collect::<Result<_>>()?;
        Ok(Self { file: file.to_owned(), lengths, last: None })
    }

    /// The length of a number's body.
    pub(crate) fn length(&self, number: u64) -> u64 {
        self.lengths[self.place(number)]
    }

    /// The body of a number.
    pub(crate) fn body(&mut self, number: u64) -> Result<&[u8]> {
        let number = self.place(number) as u64;
        let body = if let Some((_, body)) = self.last.take().filter(|(of, _)| *of == number) {
            body
        } else {
            let path = path(&self.file, number);
            fs::read(&path).map_err(Error::io(format!("reading {}", path.display())))?
        };
        Ok(&self.last.insert((number, body)).1)
    }

    /// A single body serves all numbers.
    fn place(&self, number: u64) -> usize {
        if self.lengths.len() == 1 { 0 } else { number as usize }
    }
}

fn path(file: &str, number: u64) -> PathBuf {
    file.replacen(NUMBER, &number.to_string(), 1).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_body_is_that_of_all_numbers() -> Result<()> {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("body");
        fs::write(&file, b"hello").expect("a file");
        let mut references = References::read(file.to_str().expect("UTF-8"), u64::MAX)?;
        for number in [0, 7] {
            assert_eq!((references.length(number), references.body(number)?), (5, &b"hello"[..]));
        }
        Ok(())
    }

    #[test]
    fn or_each_number_has_its_own() -> Result<()> {
        let folder = tempfile::tempdir().expect("a folder");
        for (number, body) in ["a", "bc"].iter().enumerate() {
            fs::write(folder.path().join(format!("{number}.txt")), body).expect("a file");
        }
        let files = folder.path().join("{}.txt");
        let files = files.to_str().expect("UTF-8");
        let mut references = References::read(files, 2)?;
        for (number, body) in [(0, "a"), (1, "bc"), (1, "bc"), (0, "a")] {
            assert_eq!((references.length(number), references.body(number)?), (body.len() as u64, body.as_bytes()));
        }
        let missing = References::read(files, 3).expect_err("there are two").to_string();
        assert!(missing.contains("2.txt"), "{missing}");
        let endless = References::read(files, u64::MAX).expect_err("nobody has so many").to_string();
        assert!(endless.contains("--names"), "{endless}");
        Ok(())
    }
}
