//! Permission bits, as people write them.

/// Reads permission bits in octal: `0600`, `660`.
///
/// # Errors
/// In words, for the user of a command line.
pub(super) fn parse_mode(text: &str) -> Result<u32, String> {
    u32::from_str_radix(text, 8)
        .ok()
        .filter(|mode| *mode <= 0o777)
        .ok_or_else(|| "a mode is up to 0777 in octal, such as 0600".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_octal_and_have_no_special_bits() {
        assert_eq!(parse_mode("0660"), Ok(0o660));
        for wrong in ["", "8", "4755", "rw"] {
            assert!(parse_mode(wrong).is_err(), "{wrong}");
        }
    }
}
