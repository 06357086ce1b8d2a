//! A part of a whole, as a percentage and as a bar.

use ratatui::text::Span;

use crate::theme::Theme;

/// The part of a whole, as a percentage: `<1 %`, `31 %`.
pub(crate) fn share(part: u64, whole: u64) -> String {
    match (part.saturating_mul(100)).checked_div(whole) {
        None => String::new(),
        Some(0) if part > 0 => "<1 %".to_owned(),
        Some(percent) => format!("{percent} %"),
    }
}

/// How many of `columns` cells a part of a whole fills. What is there fills at least one.
pub(crate) fn filled(part: u64, whole: u64, columns: usize) -> usize {
    let cells = u128::from(part) * columns as u128 / u128::from(whole.max(1));
    usize::try_from(cells).unwrap_or(columns).clamp(usize::from(part > 0 && columns > 0), columns)
}

/// A bar of a part of a whole. More than the whole is drawn as an error.
pub(crate) fn bar(part: u64, whole: u64, columns: usize, theme: &Theme) -> [Span<'static>; 2] {
    let filled = filled(part, whole, columns);
    let colour = match part {
        _ if part > whole => theme.error,
        _ if part.saturating_mul(100) > whole.saturating_mul(85) => theme.warning,
        _ => theme.accent,
    };
    [
        Span::styled("▰".repeat(filled), theme.fg(colour)),
        Span::styled("▱".repeat(columns - filled), theme.fg(theme.border)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_shows_the_least_part_and_ends_with_the_whole() {
        assert_eq!([filled(0, 9, 10), filled(1, 1_000, 10), filled(5, 10, 10), filled(11, 10, 10)], [0, 1, 5, 10]);
        assert_eq!([share(1, 1_000), share(62, 200), share(1, 0)].map(|it| it), ["<1 %", "31 %", ""]);
    }
}
