//! Permission bits in octal.

/// Reads permission bits in octal: `0600`, `660`.
///
/// # Errors
/// A message for the user of the command line.
pub(super) fn parse_mode(text: &str) -> Result<u32, String> {
    u32::from_str_radix(text, 8)
        .ok()
        .filter(|mode| *mode <= 0o777)
        .ok_or_else(|| "a mode is an octal number up to 0777, such as 0600".to_owned())
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
