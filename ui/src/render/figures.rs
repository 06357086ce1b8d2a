//! Figures for people: counts, ages, percentiles.

use std::time::Duration;

use ratatui::text::Span;

use crate::theme::Theme;

/// `12.4k`
pub(crate) use pixir_core::text::human::human_count as short;

/// `now`, `5m`, `3h`, `2d`, `6w`
pub(crate) fn age(past: Duration) -> String {
    let seconds = past.as_secs();
    match seconds {
        0..60 => "now".to_owned(),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..86_400 => format!("{}h", seconds / 3_600),
        86_400..1_209_600 => format!("{}d", seconds / 86_400),
        1_209_600..31_536_000 => format!("{}w", seconds / 604_800),
        _ => format!("{}y", seconds / 31_536_000),
    }
}

/// `+40 −22`: changed lines. A side without lines is left out.
pub(crate) fn plus_minus(added: u64, removed: u64) -> String {
    match (added, removed) {
        (0, 0) => String::new(),
        (added, 0) => format!("+{added}"),
        (0, removed) => format!("−{removed}"),
        (added, removed) => format!("+{added} −{removed}"),
    }
}

/// The same in colours, after a gap.
pub(crate) fn plus_minus_spans(gap: &str, (added, removed): (u64, u64), theme: &Theme) -> Vec<Span<'static>> {
    let mut spans = Vec::new();
    if added > 0 {
        spans.push(Span::styled(format!("{gap}+{added}"), theme.fg(theme.added)));
    }
    if removed > 0 {
        let gap = if added > 0 { " " } else { gap };
        spans.push(Span::styled(format!("{gap}−{removed}"), theme.fg(theme.removed)));
    }
    spans
}

/// The value below which this share of the samples lies; 0 without samples.
pub(crate) fn percentile(samples: impl IntoIterator<Item = u32>, percent: usize) -> u32 {
    let mut all: Vec<u32> = samples.into_iter().collect();
    all.sort_unstable();
    let at = (all.len() * percent).div_ceil(100).saturating_sub(1);
    all.get(at).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short() {
        assert_eq!([999, 1_000, 12_430, 3_000_000].map(short), ["999", "1k", "12.4k", "3M"]);
        assert_eq!([(0, 0), (3, 0), (0, 2), (3, 2)].map(|(a, r)| plus_minus(a, r)), ["", "+3", "−2", "+3 −2"]);
        let ages = [5, 61, 7_300, 200_000, 2_000_000, 70_000_000].map(|it| age(Duration::from_secs(it)));
        assert_eq!(ages, ["now", "1m", "2h", "2d", "3w", "2y"]);
        assert_eq!((percentile(1..=100, 50), percentile(1..=100, 99), percentile([], 50)), (50, 99, 0));
    }
}
