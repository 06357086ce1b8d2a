//! Questions of the model: the user chooses an option or answers in their own words.

use std::collections::BTreeSet;

use crate::terminal::canvas::Canvas;
use crate::terminal::key::{KeyCode, KeyEvent, KeyModifiers};
use pixir_core::Input;
use pixir_core::agent::Asker;
use pixir_core::event::{Form, Question};
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::narrow::cut_word;
use super::{Outcome, Paint, Request, View, panel};
use crate::input::action::{Action, LayerAction, Scope};
use crate::render::agents::named;
use crate::render::text::{visible, width, wrap_lines};
use crate::theme::Theme;

/// Lines that PgUp and PgDn scroll.
const PAGE: usize = 5;

/// What gets the keys when a form appears.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keys {
    Form,
    /// The user is writing in the composer.
    Composer,
}

/// How the form is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// A box above the composer, with a cursor on its options.
    Panel,
    /// Lines that are printed once, and one line for the answer: for screen readers.
    Lines,
}

#[derive(Debug)]
pub(crate) struct FormView {
    form: Form,
    style: Style,
    /// Keys answer the form. Otherwise they go to the composer, where the user was writing when the form appeared.
    has_keys: bool,
    /// The user has turned to the form, so its keys are meant for it from the first on.
    is_chosen: bool,
    /// The question on the screen.
    at: usize,
    answers: Vec<Vec<String>>,
    /// The row with the cursor. The last row is the field for the user's own words.
    row: usize,
    marked: BTreeSet<usize>,
    own: String,
    /// The digit that chose the row. If the user types on, it was the start of their own words.
    digit: Option<char>,
    /// The first line on the screen, and whether it follows the cursor.
    top: usize,
    follows: bool,
    /// All lines were on the screen in the last frame.
    fits: bool,
    /// Other questions that wait until this one is answered.
    pub(crate) waiting: usize,
}

impl FormView {
    pub(crate) fn new(form: Form, keys: Keys, style: Style) -> FormView {
        FormView {
            form,
            style,
            has_keys: keys == Keys::Form,
            is_chosen: false,
            at: 0,
            answers: Vec::new(),
            row: 0,
            marked: BTreeSet::new(),
            own: String::new(),
            digit: None,
            top: 0,
            follows: false,
            fits: true,
            waiting: 0,
        }
    }

    fn question(&self) -> &Question {
        &self.form.questions[self.at.min(self.form.questions.len() - 1)]
    }

    fn is_own(&self) -> bool {
        self.row == self.question().options.len()
    }

    /// The row below the options, where the user writes an answer; without it the last option.
    fn last_row(&self) -> usize {
        let options = self.question().options.len();
        if self.question().only_options { options.saturating_sub(1) } else { options }
    }

    /// Letters are no answer, so what the user types is a message.
    pub(crate) fn leaves_letters(&self) -> bool {
        self.question().only_options
    }

    /// Whether this key chooses an option.
    pub(crate) fn takes(&self, letter: char) -> bool {
        (letter.is_ascii_digit() && letter != '0' && self.has_option(letter))
            || (letter == ' ' && self.question().multiple)
    }

    fn select(&mut self, by: isize) {
        self.row = self.row.saturating_add_signed(by).min(self.last_row());
        self.follows = true;
    }

    fn has_option(&self, digit: char) -> bool {
        (digit as usize - '1' as usize) < self.question().options.len()
    }

    /// The cursor is on an answer of which several can be chosen.
    pub(crate) fn can_mark(&self) -> bool {
        self.style == Style::Panel && self.question().multiple && !self.is_own()
    }

    fn mark(&mut self) {
        if !self.marked.remove(&self.row) {
            self.marked.insert(self.row);
        }
    }

    /// Goes back to the previous question, to answer it again.
    fn back(&mut self) {
        if self.answers.pop().is_some() {
            self.show(self.at - 1);
        }
    }

    fn show(&mut self, question: usize) {
        (self.at, self.row, self.top, self.follows) = (question, 0, 0, false);
        self.own.clear();
        self.marked.clear();
        self.digit = None;
    }

    fn answer(&mut self) -> Outcome {
        let question = self.question();
        let mut answer: Vec<String> =
            self.marked.iter().filter_map(|row| question.options.get(*row)).cloned().collect();
        // The user's own words count if the cursor is on them, or in addition to marked options.
        if self.is_own() || question.multiple {
            answer.extend(Some(self.own.trim().to_owned()).filter(|own| !own.is_empty()));
        }
        if answer.is_empty() {
            match question.options.get(self.row) {
                Some(option) => answer.push(option.clone()),
                None => return Outcome::Stay,
            }
        }
        self.give(answer)
    }

    /// Takes the answer to this question, and goes to the next one.
    fn give(&mut self, answer: Vec<String>) -> Outcome {
        self.answers.push(answer);
        self.show(self.at + 1);
        if self.at < self.form.questions.len() {
            return Outcome::Stay;
        }
        let answers = std::mem::take(&mut self.answers);
        self.close(Some(answers))
    }

    /// Takes the typed line as the answer: the numbers of options, or the user's own words.
    fn answer_line(&mut self) -> Outcome {
        let question = self.question();
        let typed = self.own.trim();
        let option = |word: &str| question.options.get(word.parse::<usize>().ok()?.checked_sub(1)?).cloned();
        let chosen: Option<Vec<String>> = if question.multiple {
            typed.split([' ', ',']).filter(|word| !word.is_empty()).map(option).collect()
        } else {
            option(typed).map(|option| vec![option])
        };
        let own = || if question.only_options { Vec::new() } else { vec![typed.to_owned()] };
        match chosen.unwrap_or_else(own) {
            answer if typed.is_empty() || answer.is_empty() => Outcome::Stay,
            answer => self.give(answer),
        }
    }

    fn close(&self, answers: Option<Vec<Vec<String>>>) -> Outcome {
        let answer = Input::Answer { call_id: self.form.call_id.clone(), answers };
        Outcome::close_and_send(answer.for_asker(self.form.agent.as_ref()))
    }

    /// All lines, and the range of them that belongs to the row with the cursor.
    fn lines(&self, columns: usize, theme: &Theme) -> (Vec<Line<'static>>, std::ops::Range<usize>) {
        let question = self.question();
        // What stands before the last paragraph is what the question is about.
        let (about, asked) = question.question.rsplit_once("\n\n").unwrap_or(("", &question.question));
        let mut lines = Vec::new();
        if !about.is_empty() {
            lines.extend(wrap_lines(&[Span::styled(visible(about), theme.fg(theme.text))], columns, &[], &[]));
            lines.push(Line::default());
        }
        lines.extend(wrap_lines(&[Span::styled(visible(asked), theme.bold())], columns, &[], &[]));
        lines.push(Line::default());
        let mut cursor = 0..0;
        let rows = question.options.iter().enumerate().map(|(row, option)| {
            let mark = match (question.multiple, self.marked.contains(&row)) {
                (false, _) => format!("{} ", row + 1),
                (true, true) => "[x] ".to_owned(),
                (true, false) => "[ ] ".to_owned(),
            };
            (mark, theme.dim(), visible(option), theme.fg(theme.text))
        });
        let own =
            if self.own.is_empty() && !self.is_own() { "your own words…".to_owned() } else { visible(&self.own) };
        let style = if self.is_own() { theme.fg(theme.text) } else { theme.dim() };
        let own = ("› ".to_owned(), theme.fg(theme.accent), own, style);
        let own = (!question.only_options).then_some(own);
        for (row, (mark, marked, text, style)) in rows.chain(own).enumerate() {
            let indent = Span::raw(" ".repeat(width(&mark)));
            // An empty line would lose its mark in wrapping.
            let text = if text.is_empty() { "\u{a0}".to_owned() } else { text };
            let wrapped = wrap_lines(&[Span::styled(text, style)], columns, &[Span::styled(mark, marked)], &[indent]);
            let chosen = row == self.row && self.has_keys;
            if row == self.row {
                cursor = lines.len()..lines.len() + wrapped.len();
            }
            let row_style = if chosen { theme.selected() } else { theme.base() };
            lines.extend(wrapped.into_iter().map(|line| line.style(row_style)));
        }
        (lines, cursor)
    }
}

impl FormView {
    pub(crate) fn form(&self) -> &Form {
        &self.form
    }

    /// `Question 1 of 2 · reviewer-2 ‹ worker-1 asks · 3 more wait`
    fn heading(&self) -> String {
        let mut title = match self.form.questions.len() {
            1 => "Question".to_owned(),
            n => format!("Question {} of {n}", self.at + 1),
        };
        if let Some(agent) = &self.form.agent {
            title.push_str(&format!(" · {} asks", visible(&named(&agent.path))));
        }
        match self.waiting {
            0 => {}
            1 => title.push_str(" · 1 more waits"),
            n => title.push_str(&format!(" · {n} more wait")),
        }
        title
    }

    pub(crate) fn has_keys(&self) -> bool {
        self.has_keys
    }

    /// Gives the keys to the form, because the user has turned to it.
    pub(crate) fn focus(&mut self) {
        (self.has_keys, self.is_chosen) = (true, true);
    }

    /// Gives the keys back to the composer, because the user was writing there when the form appeared.
    pub(crate) fn yield_keys(&mut self) {
        self.has_keys = false;
    }

    /// The question as lines, with what to type; and its number, which changes when the next question appears.
    pub(crate) fn as_lines(&self, columns: usize, theme: &Theme) -> (Vec<Line<'static>>, usize) {
        let question = self.question();
        let text = Span::styled(format!("{}: {}", self.heading(), visible(&question.question)), theme.bold());
        let mut lines = wrap_lines(&[text], columns, &[], &[]);
        for (row, option) in question.options.iter().enumerate() {
            let text = Span::styled(format!("{}. {}", row + 1, visible(option)), theme.fg(theme.text));
            lines.extend(wrap_lines(&[text], columns, &[], &[]));
        }
        let hint = match (question.options.is_empty(), question.multiple) {
            (true, _) => "Type your answer, then press Enter. Esc gives no answer.",
            (false, false) if question.only_options => "Type a number, then press Enter. Esc gives no answer.",
            (false, false) => "Type a number or your own words, then press Enter. Esc gives no answer.",
            (false, true) => "Type one or more numbers or your own words, then press Enter. Esc gives no answer.",
        };
        lines.extend(wrap_lines(&[Span::styled(hint, theme.dim())], columns, &[], &[]));
        lines.push(Line::default());
        (lines, self.at)
    }

    /// The line that the user has typed as the answer.
    pub(crate) fn typed(&self) -> &str {
        &self.own
    }

    /// A key for a form of lines: one line is edited.
    fn line_key(&mut self, key: KeyEvent) -> Option<Outcome> {
        match key.code {
            KeyCode::Esc if !self.own.is_empty() => self.own.clear(),
            KeyCode::Char('u') if key.modifiers == KeyModifiers::CONTROL => self.own.clear(),
            KeyCode::Char('w') if key.modifiers == KeyModifiers::CONTROL => cut_word(&mut self.own),
            KeyCode::Backspace => drop(self.own.pop()),
            KeyCode::Char(c) if key.modifiers.is_typing() => self.own.push(c),
            _ => return None,
        }
        Some(Outcome::Stay)
    }

    /// The rows of the form with its frame, on a screen of this width.
    pub(crate) fn rows(&self, width: u16, theme: &Theme) -> u16 {
        let (lines, _) = self.lines(usize::from(width.saturating_sub(4)).max(1), theme);
        u16::try_from(lines.len() + 2).unwrap_or(u16::MAX)
    }
}

impl View for FormView {
    fn title(&self) -> &'static str {
        "Question of the model"
    }

    fn scopes(&self) -> &'static [Scope] {
        &[Scope::Form, Scope::Overlay]
    }

    fn is_typing(&self) -> bool {
        true
    }

    /// The agent that asks; `None` if the Session itself does.
    fn asker(&self) -> Option<&Asker> {
        self.form.agent.as_ref()
    }

    fn call_id(&self) -> Option<&str> {
        Some(&self.form.call_id)
    }

    /// Keys that the user was typing when the form appeared could answer it.
    fn is_guarded(&self) -> bool {
        self.has_keys && !self.is_chosen
    }

    fn leaves_to_actions(&self, key: KeyEvent) -> bool {
        self.can_mark() && key.code == KeyCode::Char(' ')
    }

    /// The user leaves the form without answers.
    fn leave(self) -> Option<Request> {
        let answer = Input::Answer { call_id: self.form.call_id, answers: None };
        Some(Request::Send(vec![answer.for_asker(self.form.agent.as_ref())]))
    }

    fn scroll(&mut self, by: isize) {
        self.select(by);
    }

    fn key(&mut self, key: KeyEvent) -> Option<Outcome> {
        if self.style == Style::Lines {
            return self.line_key(key);
        }
        let plain = key.modifiers.is_typing();
        match key.code {
            // The first Esc clears what the user typed, the second leaves the form.
            KeyCode::Esc if !self.own.is_empty() => {
                self.own.clear();
                (self.row, self.follows) = (0, true);
            }
            KeyCode::Char('u') if key.modifiers == KeyModifiers::CONTROL => self.own.clear(),
            KeyCode::Backspace if self.is_own() => drop(self.own.pop()),
            KeyCode::Char(c) if plain && self.is_own() => self.own.push(c),
            // On an option, Space marks it.
            KeyCode::Char(' ') if plain && self.can_mark() => return None,
            KeyCode::Char(c @ '1'..='9') if plain && self.digit.is_none() && self.has_option(c) => {
                self.row = c as usize - '1' as usize;
                (self.digit, self.follows) = (Some(c), true);
                return Some(Outcome::Stay);
            }
            // A user who begins to type has an answer that is not listed. A digit typed before belongs to it.
            KeyCode::Char(_) if plain && self.question().only_options => return Some(Outcome::Stay),
            KeyCode::Char(c) if plain => {
                self.row = self.question().options.len();
                self.follows = true;
                self.own.extend(self.digit.take());
                self.own.push(c);
            }
            _ => return None,
        }
        self.digit = None;
        Some(Outcome::Stay)
    }

    fn act(&mut self, action: LayerAction) -> Outcome {
        match (action, self.style) {
            (LayerAction::CloseOverlay, _) => return self.close(None),
            (LayerAction::PreviousQuestion, _) => self.back(),
            (LayerAction::MarkOption, Style::Panel) if self.can_mark() => self.mark(),
            (LayerAction::Choose, Style::Lines) => return self.answer_line(),
            (LayerAction::Choose, Style::Panel) => return self.answer(),
            (LayerAction::OverlayUp, Style::Panel) => self.select(-1),
            (LayerAction::OverlayDown, Style::Panel) => self.select(1),
            // The conversation that the question is about scrolls, where the question needs no scrolling.
            (LayerAction::OverlayPageUp, Style::Panel) if self.fits => {
                return Outcome::Ask(Request::Perform(Action::PageUp));
            }
            (LayerAction::OverlayPageDown, Style::Panel) if self.fits => {
                return Outcome::Ask(Request::Perform(Action::PageDown));
            }
            (LayerAction::OverlayPageUp, Style::Panel) => {
                (self.top, self.follows) = (self.top.saturating_sub(PAGE), false)
            }
            (LayerAction::OverlayPageDown, Style::Panel) => (self.top, self.follows) = (self.top + PAGE, false),
            _ => {}
        }
        self.digit = None;
        Outcome::Stay
    }

    fn paste(&mut self, text: &str) {
        if self.question().only_options {
            return;
        }
        (self.row, self.follows) = (self.question().options.len(), true);
        self.own.push_str(&text.split_whitespace().collect::<Vec<_>>().join(" "));
    }

    fn draw(&mut self, canvas: &mut Canvas, area: Rect, paint: Paint<'_>) {
        let theme = paint.theme;
        let columns = usize::from(area.width.saturating_sub(4)).max(1);
        let (lines, cursor) = self.lines(columns, theme);
        let title = self.heading();
        let height = u16::try_from(lines.len() + 2).unwrap_or(u16::MAX);
        let fits = height <= area.height;
        self.fits = fits;
        let answer = paint.hints(&[(LayerAction::Choose, "answer")]);
        let mark = paint.keys.and_hints(&[(LayerAction::MarkOption, "mark")]);
        let close = paint.hints(&[(LayerAction::CloseOverlay, "no answer")]);
        let read = paint.hints(&[(LayerAction::OverlayPageUp, "page up"), (LayerAction::OverlayPageDown, "page down")]);
        let own = if self.question().only_options { "" } else { " · type your own" };
        let keys = match (self.has_keys, self.question().multiple, fits) {
            (false, ..) => "Tab answer · keep typing to continue your draft".to_owned(),
            (true, true, true) => format!("{answer}{mark} · {close}{own}"),
            (true, false, true) => format!("{answer} · {close}{own}"),
            (true, true, false) => format!("{answer}{mark} · {close} · {read}"),
            (true, false, false) => format!("{answer} · {close} · {read}"),
        };
        let inner = panel(canvas, Rect { height: height.min(area.height), ..area }, &title, &keys, theme);
        let rows = usize::from(inner.height);
        if self.follows {
            // The row with the cursor is visible. Of a long row it is the end, where the user writes.
            self.top = self.top.min(cursor.start).max(cursor.end.saturating_sub(rows));
        }
        self.top = self.top.min(lines.len().saturating_sub(rows));
        for (y, line) in (inner.y..inner.bottom()).zip(lines.iter().skip(self.top)) {
            let at = Rect { y, height: 1, ..inner };
            canvas.tint(at, line.style);
            canvas.line(line, at);
        }
        let last = cursor.end.saturating_sub(1);
        if self.has_keys && self.is_own() && (self.top..self.top + rows).contains(&last) {
            let end = lines[last].width().min(usize::from(inner.width.saturating_sub(1)));
            let end = if self.own.is_empty() { 2 } else { end };
            if let (Ok(y), Ok(x)) = (u16::try_from(last - self.top), u16::try_from(end)) {
                canvas.set_cursor_position((inner.x + x, inner.y + y));
            }
        }
    }
}
