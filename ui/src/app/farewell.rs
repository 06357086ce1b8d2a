//! The last answer as it was on the screen, to print when the interface has closed.

use ratatui::layout::Rect;
use ratatui::style::Style;

use crate::render::context::RenderContext;
use crate::render::markdown;
use crate::state::{State, text_columns};
use crate::terminal::canvas::Canvas;
use crate::terminal::to_printed;

/// The width where nothing was drawn.
const COLUMNS: usize = 80;
/// The most of an answer that is printed, bytes from its end. Laying out more would keep the leaving user waiting, and a terminal
/// keeps only so many lines.
const MOST: usize = 64 << 10;

/// The last answer as lines of text, laid out as on the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExitAnswer {
    /// With its colours, for a terminal.
    pub painted: String,
    /// Without them.
    pub plain: String,
}

/// The last answer of the Session, if there is one.
pub(super) fn answer(state: &State) -> Option<ExitAnswer> {
    let text = end_of(state.transcript.last_answer()?.trim());
    let columns = if state.layout.transcript.is_empty() { COLUMNS } else { text_columns(state.layout.transcript) };
    let rows = markdown::rows(text, &RenderContext::new(&state.look.theme, &state.look.highlighter, columns));
    let width = u16::try_from(columns).unwrap_or(u16::MAX);
    let mut canvas = Canvas::default();
    let height = u16::try_from(rows.len()).unwrap_or(u16::MAX);
    canvas.begin((width, height), Style::new());
    for (row, y) in rows[rows.len() - usize::from(height)..].iter().zip(0..height) {
        row.draw(&mut canvas, Rect { x: 0, y, width, height: 1 });
    }
    Some(ExitAnswer { painted: to_printed(&canvas), plain: canvas.to_text() })
}

/// The lines at the end of a text that are printed.
fn end_of(text: &str) -> &str {
    let Some(from) = text.len().checked_sub(MOST) else { return text };
    let from = text.ceil_char_boundary(from);
    let line = text[from..].find('\n').map_or(from, |at| from + at + 1);
    &text[line..]
}

#[cfg(test)]
mod tests {
    use super::{MOST, end_of};

    /// Broken builds: a long answer is laid out whole; the cut falls into a character; one long line leaves nothing.
    #[test]
    fn of_a_long_answer_whole_lines_at_its_end_are_printed() {
        assert_eq!(end_of("short\nanswer"), "short\nanswer");
        let long: String = (0..70_000).map(|n| format!("é{n}\n")).collect();
        let end = end_of(&long);
        assert!(end.len() <= MOST && long.ends_with(end) && end.starts_with('é'), "{}", &end[..20]);
        assert!(end.len() > MOST / 2);
        let one_line = "é".repeat(MOST);
        assert!(end_of(&one_line).len() > MOST / 2);
    }
}
