//! Bars of block characters.

const EIGHTHS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];

/// A bar of up to `cells` characters, in steps of an eighth of one. Any part above 0 shows.
pub(crate) fn bar(part: u64, whole: u64, cells: usize) -> String {
    if part == 0 || whole == 0 {
        return String::new();
    }
    let eighths = (u128::from(part.min(whole)) * cells as u128 * 8 / u128::from(whole)).max(1) as usize;
    let mut bar = "█".repeat(eighths / 8);
    if !eighths.is_multiple_of(8) {
        bar.push(EIGHTHS[eighths % 8]);
    }
    bar
}

#[cfg(test)]
mod tests {
    use super::bar;

    #[test]
    fn the_length_of_a_bar_follows_its_part() {
        assert_eq!(bar(0, 10, 8), "");
        assert_eq!(bar(1, 1_000_000, 8), "▏");
        assert_eq!(bar(10, 10, 3), "███");
        assert_eq!(bar(5, 10, 3), "█▌");
        assert_eq!(bar(5, 0, 3), "");
    }
}
