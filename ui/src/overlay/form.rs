//! Questions of the model: choose, or answer in own words.

use std::collections::BTreeSet;

use pixir_core::event::{Form, Question};
use ratatui::Frame;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::{Reply, centred, panel};
use crate::action::Action;
use crate::render::text::{fit, visible, width, wrap};
use crate::theme::Theme;

/// The layer.
#[derive(Debug)]
pub(crate) struct FormView {
    pub(crate) form: Form,
    /// The question that is asked now.
    at: usize,
    answers: Vec<Vec<String>>,
    /// The row with the cursor; the last one is for own words.
    row: usize,
    marked: BTreeSet<usize>,
    own: String,
    /// It was chosen by its number, and that may have been the start of own words.
    digit: Option<char>,
}

impl FormView {
    pub(crate) fn new(form: Form) -> FormView {
        FormView { form, at: 0, answers: Vec::new(), row: 0, marked: BTreeSet::new(), own: String::new(), digit: None }
    }

    fn question(&self) -> &Question {
        &self.form.questions[self.at.min(self.form.questions.len() - 1)]
    }

    fn is_own(&self) -> bool {
        self.row == self.question().options.len()
    }

    pub(crate) fn select(&mut self, by: isize) {
        self.row = self.row.saturating_add_signed(by).min(self.question().options.len());
    }

    pub(crate) fn key(&mut self, key: KeyEvent) -> Reply {
        let plain = key.modifiers.difference(KeyModifiers::SHIFT).is_empty();
        match key.code {
            KeyCode::Esc => return self.close(None),
            KeyCode::Up => self.select(-1),
            KeyCode::Down => self.select(1),
            KeyCode::Enter => return self.answer(),
            KeyCode::Backspace if self.is_own() => drop(self.own.pop()),
            KeyCode::Char(c) if plain && self.is_own() => self.own.push(c),
            KeyCode::Char(' ') if self.question().multiple => self.mark(),
            KeyCode::Char(c @ '1'..='9') if plain && self.digit.is_none() && self.has_option(c) => {
                self.row = c as usize - '1' as usize;
                self.digit = Some(c);
                return Reply::Stay;
            }
            // Whoever begins to type has an answer that is not listed; a digit before it belongs to it.
            KeyCode::Char(c) if plain => {
                self.row = self.question().options.len();
                self.own.extend(self.digit.take());
                self.own.push(c);
            }
            _ => {}
        }
        self.digit = None;
        Reply::Stay
    }

    /// Text that was pasted.
    pub(crate) fn paste(&mut self, text: &str) {
        self.row = self.question().options.len();
        self.own.push_str(&text.split_whitespace().collect::<Vec<_>>().join(" "));
    }

    fn has_option(&self, digit: char) -> bool {
        (digit as usize - '1' as usize) < self.question().options.len()
    }

    fn mark(&mut self) {
        if !self.marked.remove(&self.row) {
            self.marked.insert(self.row);
        }
    }

    fn answer(&mut self) -> Reply {
        let question = self.question();
        let mut answer: Vec<String> =
            self.marked.iter().filter_map(|row| question.options.get(*row)).cloned().collect();
        // In own words, when the cursor is on them, or beside what is marked.
        if self.is_own() || question.multiple {
            answer.extend(Some(self.own.trim().to_owned()).filter(|own| !own.is_empty()));
        }
        if answer.is_empty() {
            match question.options.get(self.row) {
                Some(option) => answer.push(option.clone()),
                None => return Reply::Stay,
            }
        }
        self.answers.push(answer);
        (self.row, self.own, self.digit) = (0, String::new(), None);
        self.marked.clear();
        self.at += 1;
        if self.at < self.form.questions.len() {
            return Reply::Stay;
        }
        let answers = std::mem::take(&mut self.answers);
        self.close(Some(answers))
    }

    fn close(&self, answers: Option<Vec<Vec<String>>>) -> Reply {
        Reply::CloseAndAct(Action::Answer { call_id: self.form.call_id.clone(), answers })
    }

    pub(crate) fn draw(&mut self, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
        let columns = usize::from(area.width.min(84).saturating_sub(4)).max(1);
        let question = self.question();
        let asked = wrap(&[Span::styled(visible(&question.question), theme.bold())], columns, &[], &[]);
        let rows = asked.len() + question.options.len() + 2;
        let title = match self.form.questions.len() {
            1 => "A question".to_owned(),
            n => format!("Question {} of {n}", self.at + 1),
        };
        let keys = if question.multiple {
            "Enter answer · Space mark · ↑↓ · type your own · Esc no answer"
        } else {
            "Enter answer · ↑↓ · type your own · Esc no answer"
        };
        let height = u16::try_from(rows + 2).unwrap_or(u16::MAX);
        let inner = panel(frame, centred(area, 84, height), &title, keys, theme);
        let mut lines = asked;
        lines.push(Line::default());
        let first = lines.len();
        for (row, option) in question.options.iter().enumerate() {
            let mark = match (question.multiple, self.marked.contains(&row)) {
                (false, _) => format!("{} ", row + 1),
                (true, true) => "[x] ".to_owned(),
                (true, false) => "[ ] ".to_owned(),
            };
            let text = fit(&visible(option), columns.saturating_sub(width(&mark) + 2));
            let line = Line::from(vec![Span::styled(mark, theme.dim()), Span::styled(text, theme.fg(theme.text))]);
            lines.push(line.style(if row == self.row { theme.selected() } else { theme.base() }));
        }
        let own = if self.own.is_empty() && !self.is_own() { "own words…".to_owned() } else { visible(&self.own) };
        let style = if self.is_own() { theme.fg(theme.text) } else { theme.dim() };
        // The end of what is typed stays in sight.
        let room = columns.saturating_sub(4);
        let tail: String = {
            let mut shown: Vec<char> = own.chars().collect();
            while width(&shown.iter().collect::<String>()) > room {
                shown.remove(0);
            }
            shown.into_iter().collect()
        };
        let line = Line::from(vec![Span::styled("› ", theme.fg(theme.accent)), Span::styled(tail.clone(), style)]);
        lines.push(line.style(if self.is_own() { theme.selected() } else { theme.base() }));
        // What the cursor is on is in sight, also when there is little room.
        let cursor = first + self.row;
        let top = (cursor + 1).saturating_sub(usize::from(inner.height));
        for (y, line) in (inner.y..inner.bottom()).zip(lines.into_iter().skip(top)) {
            let at = Rect { y, height: 1, ..inner };
            frame.buffer_mut().set_style(at, line.style);
            frame.render_widget(line, at);
        }
        if self.is_own()
            && let (Ok(y), Ok(x)) = (u16::try_from(cursor - top), u16::try_from(width(&tail)))
        {
            frame.set_cursor_position((inner.x + 2 + x, inner.y + y));
        }
    }
}
