//! Texts that occur often, as numbers.

/// How many texts have a number of their own.
const NAMES_MAX: usize = 254;
/// The number of all further texts.
const OTHERS: u8 = 255;
/// Longer texts are cut off.
const NAME_BYTES_MAX: usize = 200;

/// The texts by their numbers. 0 is the empty text.
#[derive(Default)]
pub(super) struct Names(Vec<Box<str>>);

impl Names {
    pub(super) fn number(&mut self, name: &str) -> u8 {
        if name.is_empty() {
            return 0;
        }
        let name = cut(name, NAME_BYTES_MAX);
        match self.0.iter().position(|known| **known == *name) {
            Some(place) => place as u8 + 1,
            None if self.0.len() < NAMES_MAX => {
                self.0.push(name.into());
                self.0.len() as u8
            }
            None => OTHERS,
        }
    }

    pub(super) fn name(&self, number: u8) -> &str {
        match usize::from(number).checked_sub(1) {
            None => "",
            Some(place) => self.0.get(place).map_or("others", |name| name),
        }
    }
}

/// A text without what exceeds so many bytes.
pub(super) fn cut(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_texts_have_numbers_of_their_own() {
        let mut names = Names::default();
        assert_eq!([names.number("a"), names.number("b"), names.number("a"), names.number("")], [1, 2, 1, 0]);
        assert_eq!([names.name(0), names.name(2)], ["", "b"]);
        for number in 0..300 {
            names.number(&number.to_string());
        }
        assert_eq!((names.number("new"), names.name(OTHERS)), (OTHERS, "others"));
        assert_eq!(cut("a\u{e9}", 2), "a");
    }
}
