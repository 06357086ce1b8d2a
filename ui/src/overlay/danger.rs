//! The word that the user types before a call whose damage lasts, or of which the card cannot show everything.

use pixir_core::Decision;
use pixir_core::agent::Asker;
use pixir_core::event::{Approval, Confirmation};
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::{Outcome, Paint, Request, View, dialog, panel};
use crate::input::action::LayerAction;
use crate::render::text::{visible, wrap_lines};
use crate::terminal::canvas::Canvas;
use crate::terminal::key::{KeyCode, KeyEvent};

/// The size of the dialog.
const SIZE: (u16, u16) = (84, 11);

#[derive(Debug)]
pub(crate) struct DangerView {
    agent: Option<Asker>,
    call_id: String,
    command: String,
    /// What the user types before the call runs.
    word: String,
    title: &'static str,
    /// What it would destroy, and what is not shown of it, as clauses.
    dangers: Vec<String>,
    /// What the word does.
    deed: &'static str,
    typed: String,
}

impl DangerView {
    /// `None` for an everyday call.
    pub(crate) fn new(approval: &Approval) -> Option<DangerView> {
        let confirmation = approval.confirm.clone()?;
        let (title, is_lasting) = (confirmation.headline(), !confirmation.dangers.is_empty());
        let Confirmation { word, dangers, unseen } = confirmation;
        let counted = approval.preview.danger.clone();
        Some(DangerView {
            agent: approval.agent.clone(),
            call_id: approval.call_id.clone(),
            command: approval.preview.target.clone(),
            word,
            title,
            dangers: counted.into_iter().chain(dangers).chain(unseen).collect(),
            deed: if is_lasting { "run it once" } else { "make the change" },
            typed: String::new(),
        })
    }

    fn is_complete(&self) -> bool {
        self.typed.trim() == self.word
    }
}

impl View for DangerView {
    fn title(&self) -> &'static str {
        "Dangerous call"
    }

    fn is_guarded(&self) -> bool {
        true
    }

    fn is_typing(&self) -> bool {
        true
    }

    /// The agent that asks; `None` if the Session itself does.
    fn asker(&self) -> Option<&Asker> {
        self.agent.as_ref()
    }

    fn call_id(&self) -> Option<&str> {
        Some(&self.call_id)
    }

    fn scroll(&mut self, _by: isize) {}

    fn key(&mut self, key: KeyEvent) -> Option<Outcome> {
        match key.code {
            KeyCode::Backspace => drop(self.typed.pop()),
            KeyCode::Char(c) if key.modifiers.is_typing() => {
                if self.typed.chars().count() < 20 {
                    self.typed.push(c);
                }
            }
            _ => return None,
        }
        Some(Outcome::Stay)
    }

    fn act(&mut self, action: LayerAction) -> Outcome {
        match action {
            LayerAction::CloseOverlay => Outcome::Close,
            LayerAction::Choose if self.is_complete() => Outcome::CloseAndAsk(Request::Decide {
                agent: self.agent.clone(),
                call_id: self.call_id.clone(),
                decision: Decision::Allow,
                word: Some(self.word.clone()),
            }),
            _ => Outcome::Stay,
        }
    }

    fn draw(&mut self, canvas: &mut Canvas, area: Rect, paint: Paint<'_>) {
        let theme = paint.theme;
        let run = if self.is_complete() { self.deed.to_owned() } else { format!("{}, after the word", self.deed) };
        let keys = paint.hints(&[(LayerAction::Choose, run.as_str()), (LayerAction::CloseOverlay, "back")]);
        let inner = panel(canvas, dialog(area, SIZE.0, SIZE.1), self.title, &keys, theme);
        let columns = usize::from(inner.width).max(1);
        let mut below = Vec::new();
        for danger in &self.dangers {
            let text = format!("⚠ {}", visible(danger));
            below.extend(wrap_lines(
                &[Span::styled(text, theme.fg(theme.error).bold())],
                columns,
                &[],
                &[Span::raw("  ")],
            ));
        }
        below.push(Line::default());
        let ask = format!("Type \"{}\" to {}: ", visible(&self.word), self.deed);
        let caret = ask.chars().count() + self.typed.chars().count();
        below.push(Line::from(vec![
            Span::styled(ask, theme.fg(theme.text)),
            Span::styled(
                visible(&self.typed),
                theme.fg(if self.is_complete() { theme.success } else { theme.accent }).bold(),
            ),
        ]));
        // The command gives way before the question does.
        let room = usize::from(inner.height).saturating_sub(below.len() + 1).max(1);
        let command = [Span::styled(visible(&self.command), theme.fg(theme.code))];
        let mut lines = wrap_lines(&command, columns, &[], &[]);
        if lines.len() > room {
            lines.truncate(room.saturating_sub(1));
            lines.push(Line::styled("… the card shows all of it", theme.dim()));
        }
        if lines.len() + below.len() < usize::from(inner.height) {
            lines.push(Line::default());
        }
        lines.extend(below);
        let shown = usize::from(inner.height).min(lines.len());
        let skipped = lines.len() - shown;
        for (y, line) in (inner.y..inner.bottom()).zip(lines.into_iter().skip(skipped)) {
            canvas.line(line, Rect { y, height: 1, ..inner });
        }
        if let (Ok(x), Ok(y)) = (u16::try_from(caret), u16::try_from(shown.saturating_sub(1))) {
            canvas.set_cursor_position(((inner.x + x).min(inner.right().saturating_sub(1)), inner.y + y));
        }
    }
}
