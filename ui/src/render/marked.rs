//! Text with the letters marked that a search has found.

use nucleo_matcher::pattern::{CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};
use ratatui::style::Style;
use ratatui::text::Span;

/// The text with the matching letters in another style.
pub(crate) fn spans(letters: &str, text: &str, style: Style, marked: Style) -> Vec<Span<'static>> {
    let marks = marks(letters, text);
    if marks.is_empty() {
        return vec![Span::styled(text.to_owned(), style)];
    }
    let mut spans: Vec<Span<'static>> = Vec::new();
    let mut run = String::new();
    let mut is_marked = false;
    for (at, c) in text.chars().enumerate() {
        let marks_this = marks.binary_search(&at).is_ok();
        if marks_this != is_marked && !run.is_empty() {
            spans.push(Span::styled(std::mem::take(&mut run), if is_marked { marked } else { style }));
        }
        is_marked = marks_this;
        run.push(c);
    }
    spans.push(Span::styled(run, if is_marked { marked } else { style }));
    spans
}

/// The characters of a text that fuzzy matching has found, in order.
fn marks(letters: &str, text: &str) -> Vec<usize> {
    if letters.trim().is_empty() {
        return Vec::new();
    }
    let mut matcher = Matcher::new(Config::DEFAULT);
    let pattern = Pattern::parse(letters, CaseMatching::Ignore, Normalization::Smart);
    let mut buffer = Vec::new();
    let mut indices = Vec::new();
    if pattern.indices(Utf32Str::new(text, &mut buffer), &mut matcher, &mut indices).is_none() {
        return Vec::new();
    }
    // A matcher counts graphemes. Where these are not single characters, nothing is marked.
    if buffer.len() != text.chars().count() && !text.is_ascii() {
        return Vec::new();
    }
    let mut marks: Vec<usize> = indices.into_iter().filter_map(|at| usize::try_from(at).ok()).collect();
    marks.sort_unstable();
    marks.dedup();
    marks
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::style::Modifier;

    #[test]
    fn the_letters_that_matched_are_marked() {
        let bold = Style::new().add_modifier(Modifier::BOLD);
        let shown = |letters: &str| {
            let spans = spans(letters, "/export", Style::new(), bold);
            let mark =
                |it: &Span<'_>| if it.style == bold { format!("[{}]", it.content) } else { it.content.to_string() };
            spans.iter().map(mark).collect::<String>()
        };
        assert_eq!(shown("ep"), "/[e]x[p]ort");
        assert_eq!(shown("exp"), "/[exp]ort");
        assert_eq!(shown(""), "/export");
        assert_eq!(shown("zz"), "/export");
    }
}
