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
    let text = state.transcript.last_answer()?.trim();
    let columns = if state.layout.transcript.is_empty() { COLUMNS } else { text_columns(state.layout.transcript) };
    let rows = markdown::rows(text, &RenderContext::new(&state.look.theme, &state.look.highlighter, columns));
    let width = u16::try_from(columns).unwrap_or(u16::MAX);
    let mut canvas = Canvas::default();
    canvas.begin((width, u16::try_from(rows.len()).unwrap_or(u16::MAX)), Style::new());
    for (row, y) in rows.iter().zip(0..) {
        row.draw(&mut canvas, Rect { x: 0, y, width, height: 1 });
    }
    Some(ExitAnswer { painted: to_printed(&canvas), plain: canvas.to_text() })
}
