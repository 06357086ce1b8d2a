//! What a prompt template still needs: one field for each argument that the user has not typed.

use pixir_core::arguments;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::narrow::cut_word;
use super::{Outcome, Paint, Request, View, dialog, panel};
use crate::input::action::LayerAction;
use crate::render::text::{fit, visible, width};
use crate::terminal::canvas::{Canvas, RegionState};
use crate::terminal::key::{KeyCode, KeyEvent, KeyModifiers};

/// The widest dialog, in columns.
const WIDE: u16 = 80;
/// The widest name of a field, in columns.
const NAME: usize = 20;

/// One argument.
#[derive(Debug)]
struct Field {
    name: String,
    value: String,
}

#[derive(Debug)]
pub(crate) struct ArgumentsView {
    template: String,
    about: String,
    fields: Vec<Field>,
    /// The field with the caret.
    at: usize,
}

impl ArgumentsView {
    /// `None` where nothing is missing.
    pub(crate) fn new(template: &str, about: &str, parameters: &[String], args: &str) -> Option<ArgumentsView> {
        let mut words = arguments::split(args);
        if words.len() >= parameters.len() {
            return None;
        }
        let at = words.len();
        words.resize(parameters.len(), String::new());
        let fields = parameters.iter().zip(words).map(|(name, value)| Field { name: name.clone(), value }).collect();
        Some(ArgumentsView { template: template.to_owned(), about: about.to_owned(), fields, at })
    }

    /// The arguments as one line.
    fn line(&self) -> String {
        let last = self.fields.iter().rposition(|it| !it.value.is_empty()).map_or(0, |at| at + 1);
        self.fields[..last].iter().map(|it| arguments::quoted(&it.value)).collect::<Vec<_>>().join(" ")
    }

    fn step(&mut self, by: isize) {
        self.at = self.at.saturating_add_signed(by).min(self.fields.len().saturating_sub(1));
    }
}

impl View for ArgumentsView {
    fn title(&self) -> &'static str {
        "Prompt template"
    }

    fn is_typing(&self) -> bool {
        true
    }

    /// The user does not send it: what was typed goes back into the composer.
    fn leave(self) -> Option<Request> {
        let draft = format!("/{} {}", self.template, self.line());
        Some(Request::Complete { draft: draft.trim_end().to_owned(), hint: None })
    }

    fn scroll(&mut self, by: isize) {
        self.step(by.signum());
    }

    fn paste(&mut self, text: &str) {
        if let Some(field) = self.fields.get_mut(self.at) {
            field.value.push_str(text.trim_end());
        }
    }

    fn key(&mut self, key: KeyEvent) -> Option<Outcome> {
        let last = self.fields.len().saturating_sub(1);
        let value = &mut self.fields.get_mut(self.at)?.value;
        match key.code {
            KeyCode::Tab => self.at = if self.at == last { 0 } else { self.at + 1 },
            KeyCode::BackTab => self.at = self.at.checked_sub(1).unwrap_or(last),
            KeyCode::Char('u') if key.modifiers == KeyModifiers::CONTROL => value.clear(),
            KeyCode::Char('w') if key.modifiers == KeyModifiers::CONTROL => cut_word(value),
            KeyCode::Backspace => drop(value.pop()),
            KeyCode::Char(c) if key.modifiers.is_typing() => value.push(c),
            _ => return None,
        }
        Some(Outcome::Stay)
    }

    fn act(&mut self, action: LayerAction) -> Outcome {
        match action {
            LayerAction::CloseOverlay => return Outcome::Close,
            LayerAction::OverlayUp => self.step(-1),
            LayerAction::OverlayDown => self.step(1),
            LayerAction::Choose if self.at + 1 < self.fields.len() => self.at += 1,
            LayerAction::Choose => {
                let (name, args) = (self.template.clone(), self.line());
                return Outcome::CloseAndAsk(Request::UseTemplate { name, args });
            }
            _ => {}
        }
        Outcome::Stay
    }

    fn draw(&mut self, canvas: &mut Canvas, area: Rect, paint: Paint<'_>) {
        let theme = paint.theme;
        let is_last = self.at + 1 == self.fields.len();
        let keys = paint.hints(&[
            (LayerAction::Choose, if is_last { "send" } else { "next" }),
            (LayerAction::OverlayUp, "back"),
            (LayerAction::CloseOverlay, "back to the composer"),
        ]);
        let about = u16::from(!self.about.is_empty()) * 2;
        let height = u16::try_from(self.fields.len()).unwrap_or(u16::MAX).saturating_add(2 + about);
        let title = format!("/{}", self.template);
        let inner = panel(canvas, dialog(area, WIDE, height), &title, &keys, theme);
        let columns = usize::from(inner.width);
        let list = if inner.height > about {
            if about > 0 {
                let text = fit(&visible(&self.about), columns);
                canvas.line(Line::styled(text, theme.dim()), Rect { height: 1, ..inner });
            }
            Rect { y: inner.y + about, height: inner.height - about, ..inner }
        } else {
            inner
        };
        let longest = self.fields.iter().map(|it| width(&it.name)).max().unwrap_or(0).min(NAME);
        let top = (self.at + 1).saturating_sub(usize::from(list.height));
        for (y, (at, field)) in (list.y..list.bottom()).zip(self.fields.iter().enumerate().skip(top)) {
            let here = Rect { y, height: 1, ..list };
            let has_caret = at == self.at;
            let name = fit(&visible(&field.name), longest);
            let before = longest + 2;
            let room = columns.saturating_sub(before + 1).max(1);
            // Of a long value the end is visible, where the user writes.
            let shown = visible(&field.value);
            let skipped = shown.chars().count().saturating_sub(room);
            let shown: String = shown.chars().skip(skipped).collect();
            canvas.tint(here, if has_caret { theme.selected() } else { theme.base() });
            canvas.region("textbox", here, || format!("{}: {}", field.name, field.value));
            canvas.region_state(RegionState { focused: has_caret, selected: has_caret });
            let ink = if has_caret { theme.fg(theme.accent) } else { theme.dim() };
            let pad = " ".repeat(before - width(&name));
            let end = u16::try_from(before + width(&shown)).unwrap_or(u16::MAX);
            canvas.line(
                Line::from(vec![Span::styled(name, ink), Span::raw(pad), Span::styled(shown, theme.fg(theme.text))]),
                here,
            );
            if has_caret {
                canvas.set_cursor_position((here.x.saturating_add(end).min(here.right().saturating_sub(1)), y));
            }
        }
    }
}
