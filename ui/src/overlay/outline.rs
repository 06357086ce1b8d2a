//! The conversation, Turn by Turn: each prompt, with its calls, changes and errors.

use pixir_core::Fact;
use pixir_core::history::starts_turn;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};

use super::list::ListView;
use super::{Outcome, Paint, Press, Request, View, dialog, panel};
use crate::input::action::LayerAction;
use crate::render::markdown::first_line;
use crate::terminal::canvas::Canvas;
use crate::transcript::rows::target;
use crate::transcript::viewport::Viewport;
use crate::transcript::{Cell, Mark, Transcript};

/// A prompt, and what followed it.
#[derive(Debug)]
struct Turn {
    cell: usize,
    /// The number that the tree and /undo use.
    number: Option<u32>,
    text: String,
    calls: usize,
    changes: bool,
    errors: bool,
    compaction: bool,
}

#[derive(Debug)]
pub(crate) struct Outline {
    turns: Vec<Turn>,
    list: ListView,
}

impl Outline {
    pub(crate) fn new(transcript: &Transcript, viewport: &Viewport) -> Outline {
        let mut turns: Vec<Turn> = Vec::new();
        let begins = |cell, number, text: &str| {
            let text = first_line(text, 300);
            Turn { cell, number, text, calls: 0, changes: false, errors: false, compaction: false }
        };
        for (at, cell) in transcript.cells().iter().enumerate() {
            match cell {
                Cell::Recorded(entry) | Cell::Part(entry, _) => {
                    if let Fact::UserMessage(it) = &entry.fact
                        && transcript.has_mark(Mark::Prompt, at..at + 1)
                    {
                        turns.push(begins(at, entry.turn.filter(|_| starts_turn(&entry.fact)), &it.text));
                    }
                }
                Cell::Tool(tool) if tool.is_by_user() => {
                    let number = tool.entries().next().and_then(|entry| entry.turn);
                    turns.push(begins(at, number, &format!("{}{}", tool.call().name, target(tool))));
                }
                Cell::Tool(_) => turns.iter_mut().last().into_iter().for_each(|turn| turn.calls += 1),
                Cell::Drafted(_)
                | Cell::Tail
                | Cell::Thoughts(_)
                | Cell::Thinking(_)
                | Cell::Workflow(_)
                | Cell::Error(_)
                | Cell::Notice(..)
                | Cell::Gone => {}
            }
        }
        let ends: Vec<usize> = turns.iter().skip(1).map(|turn| turn.cell).chain([transcript.len()]).collect();
        for (turn, end) in turns.iter_mut().zip(ends) {
            turn.changes = transcript.has_mark(Mark::Change, turn.cell..end);
            turn.errors = transcript.has_mark(Mark::Error, turn.cell..end);
            turn.compaction = transcript.has_mark(Mark::Compaction, turn.cell..end);
        }
        let here = viewport.top().map_or(0, |top| top.cell);
        let chosen = turns.iter().rposition(|turn| turn.cell <= here).unwrap_or(0);
        Outline { turns, list: ListView::at(chosen) }
    }
}

impl View for Outline {
    fn title(&self) -> &'static str {
        "Outline"
    }

    fn act(&mut self, action: LayerAction) -> Outcome {
        match action {
            LayerAction::CloseOverlay => return Outcome::Close,
            LayerAction::Choose => {
                let Some(cell) = self.turns.get(self.list.chosen).map(|turn| turn.cell) else { return Outcome::Close };
                return Outcome::CloseAndAsk(Request::ShowCell(cell));
            }
            action => _ = self.list.act(action, self.turns.len()),
        }
        Outcome::Stay
    }

    fn press(&mut self, at: Position) -> Press {
        self.list.press(at)
    }

    fn scroll(&mut self, by: isize) {
        self.list.scroll(by, self.turns.len());
    }

    fn draw(&mut self, canvas: &mut Canvas, area: Rect, paint: Paint<'_>) {
        let theme = paint.theme;
        let keys = paint.hints_of(&[
            (!self.turns.is_empty(), LayerAction::Choose, "go there"),
            (true, LayerAction::CloseOverlay, "close"),
        ]);
        let inner = panel(canvas, dialog(area, 100, 42), "Outline", &keys, theme);
        if self.turns.is_empty() {
            canvas.line(Line::styled("No prompts yet. Each message that you send becomes one.", theme.dim()), inner);
            return;
        }
        let columns = usize::from(inner.width);
        let line = |row: usize| {
            let turn = &self.turns[row];
            let glyph = |there: bool, glyph: &'static str, colour| {
                Span::styled(if there { glyph } else { " " }, theme.fg(colour))
            };
            let calls = match turn.calls {
                0 => String::new(),
                1 => "1 call".to_owned(),
                calls => format!("{calls} calls"),
            };
            let calls = format!(" {calls:>9}");
            let text = first_line(&turn.text, columns.saturating_sub(23));
            let pad = " ".repeat(columns.saturating_sub(18 + crate::render::text::width(&text)));
            Line::from(vec![
                Span::styled(turn.number.map_or("   » ".to_owned(), |n| format!("{n:>4} ")), theme.dim()),
                Span::styled(text, theme.fg(theme.text)),
                Span::raw(pad),
                glyph(turn.changes, "±", theme.added),
                glyph(turn.errors, "✗", theme.error),
                glyph(turn.compaction, "◆", theme.warning),
                Span::styled(calls, theme.dim()),
            ])
        };
        self.list.draw(canvas, inner, self.turns.len(), theme, &|row| self.turns[row].text.clone(), &line);
    }
}
