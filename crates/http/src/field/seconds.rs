//! Whole seconds (RFC 9111, section 1.2.2).

/// The value of too large numbers of seconds: 68 years.
pub const SECONDS_MAX: u32 = 1 << 31;

/// `delta-seconds`: one or more digits. `None` for anything else: signs, fractions, letters, nothing.
///
/// A number above [`SECONDS_MAX`] counts as that.
pub fn parse(digits: &[u8]) -> Option<u32> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let seconds =
        digits.iter().fold(0_u32, |sum, digit| sum.saturating_mul(10).saturating_add(u32::from(digit - b'0')));
    Some(seconds.min(SECONDS_MAX))
}
