//! Every setting in one list: its value, where it comes from, what it does. A change is seen at once, and saved where the
//! user chooses.

use std::collections::BTreeMap;

use pixir_core::edit;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};

use super::list::ListView;
use super::narrow::{Narrow, cut_word};
use super::save_for::SaveFor;
use super::{Effect, Outcome, Paint, Press, Request, View, dialog, panel};
use crate::input::action::{LayerAction, Scope};
use crate::input::keymap::Keymap;
use crate::input::keys::{Chord, Key, chord_name};
use crate::input::slash::{Matching, found};
use crate::render::text::{fit, visible, width, wrap_lines};
use crate::terminal::canvas::Canvas;
use crate::terminal::key::{KeyCode, KeyEvent, KeyModifiers};
use crate::theme::Theme;

/// The size of the dialog: it keeps its place, whatever the list shows.
const SIZE: (u16, u16) = (140, 40);
/// Rows below the list, for what the chosen setting does.
const DETAIL: u16 = 3;

/// One setting as the list shows it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SettingRow {
    /// Its key in the configuration.
    pub(crate) key: String,
    pub(crate) group: &'static str,
    pub(crate) title: String,
    pub(crate) about: String,
    pub(crate) value: String,
    /// Where the value comes from.
    pub(crate) origin: String,
    pub(crate) form: RowForm,
    /// A change takes effect when pixir starts the next time.
    pub(crate) is_later: bool,
}

/// How a setting is changed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum RowForm {
    /// One of these values.
    Choice(Vec<String>),
    /// On, or off.
    Switch(bool),
    /// Typed; the text is the value so far.
    Field(String),
    /// Press a key for the action of this name. It has these keys, as the configuration writes them.
    Press { action: &'static str, keys: Vec<String> },
    /// This command opens a dialog of its own.
    Dialog(&'static str),
}

/// The change that the user is making.
#[derive(Debug, Clone, PartialEq)]
enum Edit {
    None,
    Choosing(usize),
    Typing { text: String, error: Option<String> },
    Pressing { chord: Chord, error: Option<String> },
}

#[derive(Debug)]
pub(crate) struct SettingsView {
    rows: Vec<SettingRow>,
    /// Keys that the user has bound, to tell a conflict before it is saved.
    own_keys: BTreeMap<String, Vec<String>>,
    narrow: Narrow,
    is_filtering: bool,
    edit: Edit,
    save: SaveFor,
    /// The rows of the list in the last frame.
    page: usize,
    /// The values of the setting that is being chosen.
    options: ListView,
}

impl SettingsView {
    /// The list before its rows are there, with this filter.
    pub(crate) fn new(filter: &str) -> SettingsView {
        SettingsView {
            rows: Vec::new(),
            own_keys: BTreeMap::new(),
            narrow: Narrow { letters: filter.to_owned(), ..Narrow::default() },
            is_filtering: false,
            edit: Edit::None,
            save: SaveFor::You,
            page: 10,
            options: ListView::default(),
        }
    }

    pub(crate) fn show(&mut self, rows: Vec<SettingRow>, own_keys: BTreeMap<String, Vec<String>>) {
        let chosen = self.chosen().map(|row| row.key.clone());
        (self.rows, self.own_keys) = (rows, own_keys);
        // The cursor stays on its setting.
        let at = self.shown().iter().position(|at| Some(&self.rows[*at].key) == chosen.as_ref());
        self.narrow.list.chosen = at.unwrap_or(self.narrow.list.chosen);
    }

    /// The rows that match the filter.
    fn shown(&self) -> Vec<usize> {
        let all = (0..self.rows.len()).collect();
        let text = |at: &usize| {
            let row = &self.rows[*at];
            format!("{} {} {} {}", row.title, row.key, row.about, row.value)
        };
        let mut shown = found(Matching::Words, &self.narrow.letters, all, text);
        if shown.is_empty() {
            shown = found(Matching::Letters, &self.narrow.letters, (0..self.rows.len()).collect(), text);
        }
        // What the letters begin or name comes before what only contains them somewhere.
        let letters = self.narrow.letters.to_lowercase();
        if !letters.is_empty() {
            shown.sort_by_key(|at| {
                let row = &self.rows[*at];
                let (title, key) = (row.title.to_lowercase(), &row.key);
                let is_it = title == letters || *key == letters;
                (!is_it, !title.starts_with(&letters), !(title.contains(&letters) || key.contains(&letters)))
            });
        }
        shown
    }

    fn chosen(&self) -> Option<&SettingRow> {
        self.shown().get(self.narrow.list.chosen).map(|at| &self.rows[*at])
    }

    /// A setting that takes effect at the next start does not change this Session.
    fn save_for(&self, row: &SettingRow) -> SaveFor {
        if row.is_later && self.save == SaveFor::Session { SaveFor::You } else { self.save }
    }

    fn change(&mut self, value: String) -> Outcome {
        let Some(row) = self.chosen() else { return Outcome::Stay };
        let change = Request::Change { key: row.key.clone(), value, save: self.save_for(row) };
        self.edit = Edit::None;
        Outcome::Ask(change)
    }

    /// Begins to change the chosen setting, or takes the change over.
    fn choose(&mut self) -> Outcome {
        let Some(row) = self.chosen().cloned() else { return Outcome::Stay };
        match (self.edit.clone(), &row.form) {
            (Edit::None, RowForm::Switch(is_on)) => return self.change((!is_on).to_string()),
            (Edit::None, RowForm::Choice(options)) => {
                let at = options.iter().position(|it| *it == row.value).unwrap_or(0);
                self.edit = Edit::Choosing(at);
            }
            (Edit::None, RowForm::Field(text)) => self.edit = Edit::Typing { text: text.clone(), error: None },
            (Edit::None, RowForm::Press { .. }) => self.edit = Edit::Pressing { chord: Vec::new(), error: None },
            (Edit::None, RowForm::Dialog(command)) => return Outcome::Ask(Request::Command((*command).to_owned())),
            (Edit::Choosing(at), RowForm::Choice(options)) => {
                let value = options.get(at).cloned().unwrap_or_default();
                return self.change(value);
            }
            (Edit::Typing { text, .. }, _) => return self.take(text),
            (Edit::Choosing(_) | Edit::Pressing { .. }, _) => {}
        }
        Outcome::Stay
    }

    /// Takes the typed value, unless the setting cannot have it.
    fn take(&mut self, text: String) -> Outcome {
        let Some(row) = self.chosen() else { return Outcome::Stay };
        if text.trim().is_empty() {
            self.edit = Edit::Typing { text, error: Some("type a value, or leave it with Esc".into()) };
            return Outcome::Stay;
        }
        match edit::setting(&row.key, text.trim()) {
            Ok(_) => self.change(text.trim().to_owned()),
            Err(e) => {
                self.edit = Edit::Typing { text, error: Some(format!("{}: {}", e.message, e.remedy.plain())) };
                Outcome::Stay
            }
        }
    }

    /// Takes a pressed key: the only one, or the second one of a chord. Enter binds what was pressed, Tab binds it in addition
    /// to the keys that the action has.
    fn press_key(&mut self, key: KeyEvent) -> Outcome {
        let Edit::Pressing { chord, error } = self.edit.clone() else { return Outcome::Stay };
        let is_bare = key.modifiers.is_empty();
        match key.code {
            KeyCode::Esc if is_bare && chord.is_empty() => return self.back(),
            KeyCode::Esc if is_bare => self.edit = Edit::Pressing { chord: Vec::new(), error: None },
            KeyCode::Backspace if is_bare && chord.is_empty() => return self.change("none".to_owned()),
            KeyCode::Enter | KeyCode::Tab if is_bare && !chord.is_empty() => {
                if error.is_none() {
                    return self.bind(&chord, key.code == KeyCode::Tab);
                }
            }
            _ => {
                let pressed = Key::of(key);
                let longer: Chord = chord.iter().take(1).copied().chain([pressed]).collect();
                // A second key makes a chord, unless only the new one alone is free.
                let is_longer = chord.len() == 1 && self.fault(&longer).is_none();
                let chord = if is_longer || (chord.len() == 1 && error.is_none()) { longer } else { vec![pressed] };
                self.edit = Edit::Pressing { error: self.fault(&chord), chord };
            }
        }
        Outcome::Stay
    }

    /// Why the action of the chosen row cannot have this chord.
    fn fault(&self, chord: &Chord) -> Option<String> {
        let Some(SettingRow { form: RowForm::Press { action, .. }, .. }) = self.chosen() else { return None };
        let mut keys = self.own_keys.clone();
        keys.insert((*action).to_owned(), vec![written(chord)]);
        let error = Keymap::new(&keys).err()?;
        Some(error.message.strip_prefix("[keys]: ").unwrap_or(&error.message).to_owned())
    }

    fn bind(&mut self, chord: &Chord, in_addition: bool) -> Outcome {
        let Some(SettingRow { form: RowForm::Press { keys, .. }, .. }) = self.chosen() else { return Outcome::Stay };
        let new = written(chord);
        if !in_addition || keys.is_empty() {
            return self.change(new);
        }
        let all = keys.iter().filter(|it| **it != new && *it != "none").chain([&new]);
        let all = all.map(|it| toml::Value::from(it.as_str())).collect();
        self.change(toml::Value::Array(all).to_string())
    }

    /// Takes the value of the chosen setting out of where it stands.
    fn unset(&self) -> Outcome {
        let Some(row) = self.chosen().filter(|_| self.edit == Edit::None) else { return Outcome::Stay };
        match unset_from(row) {
            Some(save) => Outcome::Ask(Request::Unset { key: row.key.clone(), save }),
            None => Outcome::Stay,
        }
    }

    /// Leaves the change, the filter, or the dialog.
    fn back(&mut self) -> Outcome {
        if self.edit != Edit::None {
            self.edit = Edit::None;
        } else if self.is_filtering || !self.narrow.letters.is_empty() {
            (self.is_filtering, self.narrow) = (false, Narrow::default());
        } else {
            return Outcome::Close;
        }
        Outcome::Stay
    }

    fn go(&mut self, by: isize) {
        match (&self.edit, self.chosen().map(|row| row.form.clone())) {
            (Edit::Choosing(at), Some(RowForm::Choice(options))) => {
                self.edit = Edit::Choosing(at.saturating_add_signed(by).min(options.len().saturating_sub(1)));
            }
            (Edit::None, _) => {
                let rows = self.shown().len();
                self.narrow.list.scroll(by, rows);
            }
            (Edit::Choosing(_) | Edit::Typing { .. } | Edit::Pressing { .. }, _) => {}
        }
    }

    /// Types into the field of the value. False if the key has no meaning there.
    fn type_into_field(&mut self, key: KeyEvent) -> bool {
        let Edit::Typing { text, error } = &mut self.edit else { return false };
        match key.code {
            KeyCode::Backspace => drop(text.pop()),
            KeyCode::Char('u') if key.modifiers == KeyModifiers::CONTROL => text.clear(),
            KeyCode::Char('w') if key.modifiers == KeyModifiers::CONTROL => cut_word(text),
            KeyCode::Char(c) if key.modifiers.is_typing() => text.push(c),
            _ => return false,
        }
        *error = None;
        true
    }
}

/// A chord as the configuration writes it.
fn written(chord: &Chord) -> String {
    chord.iter().map(|key| key.written()).collect::<Vec<_>>().join(" ")
}

/// Where the value of a setting stands, if it can be taken out there.
fn unset_from(row: &SettingRow) -> Option<SaveFor> {
    match row.origin.as_str() {
        "session" => Some(SaveFor::Session),
        "you" => Some(SaveFor::You),
        "project" => Some(SaveFor::Project),
        _ => None,
    }
}

// ─── Drawing ───

impl SettingsView {
    fn draw_filter(&self, canvas: &mut Canvas, area: Rect, count: usize, theme: &Theme) {
        let count = format!("{count} of {}", self.rows.len());
        let left = if self.is_filtering || !self.narrow.letters.is_empty() {
            Line::from(vec![
                Span::styled("/ ", theme.fg(theme.accent)),
                Span::styled(visible(&self.narrow.letters), theme.fg(theme.text)),
            ])
        } else {
            Line::styled("/ filter", theme.dim())
        };
        canvas.line(left, area);
        let wide = u16::try_from(width(&count)).unwrap_or(0).min(area.width);
        canvas.line(Line::styled(count, theme.dim()), Rect { x: area.right() - wide, width: wide, ..area });
        if self.is_filtering && self.edit == Edit::None {
            let x = area.x + 2 + u16::try_from(width(&self.narrow.letters)).unwrap_or(0);
            canvas.set_cursor_position((x.min(area.right().saturating_sub(1)), area.y));
        }
    }

    /// The lines of the list: headings where nothing is filtered, and rows by their place among the shown ones.
    fn lines(&self, shown: &[usize]) -> Vec<Option<usize>> {
        let mut lines = Vec::new();
        let mut group = "";
        for (number, at) in shown.iter().enumerate() {
            if self.narrow.letters.is_empty() && self.rows[*at].group != group {
                group = self.rows[*at].group;
                lines.push(None);
            }
            lines.push(Some(number));
            if let (Edit::Choosing(_), true) = (&self.edit, number == self.narrow.list.chosen) {
                let RowForm::Choice(options) = &self.rows[*at].form else { continue };
                lines.extend(options.iter().map(|_| Some(number)));
            }
        }
        lines
    }

    fn draw_list(&mut self, canvas: &mut Canvas, list: Rect, shown: &[usize], theme: &Theme) {
        self.narrow.list.begin();
        self.options.begin();
        if let Edit::Choosing(at) = &self.edit {
            self.options.chosen = *at;
        }
        let lines = self.lines(shown);
        let height = usize::from(list.height);
        self.page = height.saturating_sub(1).max(1);
        let of_chosen = lines.iter().rposition(|line| *line == Some(self.narrow.list.chosen)).unwrap_or(0);
        let first_of_chosen = lines.iter().position(|line| *line == Some(self.narrow.list.chosen)).unwrap_or(0);
        let top = (of_chosen + 2).saturating_sub(height).min(first_of_chosen);
        let columns = usize::from(list.width);
        // Where there is no room for what a setting is about, its value has that room.
        let (title, value, origin) = match columns {
            90.. => (26, 26, 14),
            50.. => (columns / 3, columns * 2 / 3 - 12, 10),
            _ => (columns / 3, columns * 2 / 3 - 2, 0),
        };
        let about = columns.saturating_sub(title + value + origin + 2);
        for (row, at) in (list.y..list.bottom()).zip(top..lines.len()) {
            let here = Rect { y: row, height: 1, ..list };
            let Some(number) = lines[at] else {
                let next = lines[at + 1].map_or("", |number| self.rows[shown[number]].group);
                canvas.line(Line::styled(next, theme.fg(theme.accent).bold()), here);
                continue;
            };
            let it = &self.rows[shown[number]];
            if at > 0 && lines[at - 1] == Some(number) {
                let nth = lines[..at].iter().rev().take_while(|line| **line == Some(number)).count() - 1;
                self.draw_option(canvas, here, it, nth, title, theme);
                continue;
            }
            let is_chosen = number == self.narrow.list.chosen;
            if is_chosen && self.edit == Edit::None && !self.is_filtering {
                canvas.follow(here);
            }
            let pad = |text: &str, columns: usize| {
                let text = fit(&visible(text), columns.saturating_sub(1));
                let gap = columns.saturating_sub(width(&text));
                text + &" ".repeat(gap)
            };
            let pressed = match &self.edit {
                Edit::Pressing { chord, .. } if !chord.is_empty() => format!("{} …", chord_name(chord)),
                Edit::Pressing { .. } | Edit::None | Edit::Choosing(_) | Edit::Typing { .. } => {
                    "press a key…".to_owned()
                }
            };
            let typed = match &self.edit {
                Edit::Typing { text, .. } if is_chosen => Some(text.as_str()),
                Edit::Pressing { .. } if is_chosen => Some(pressed.as_str()),
                Edit::None | Edit::Choosing(_) | Edit::Typing { .. } | Edit::Pressing { .. } => None,
            };
            let is_set = it.origin != "default";
            let (shown_value, style) = match typed {
                Some(text) => (text.to_owned(), theme.fg(theme.accent)),
                None if matches!(it.form, RowForm::Dialog(_)) && it.origin.is_empty() => {
                    (it.value.clone(), theme.dim())
                }
                None if is_set => (it.value.clone(), theme.bold()),
                None => (it.value.clone(), theme.fg(theme.text)),
            };
            let line = Line::from(vec![
                Span::styled(pad(&format!("  {}", self.name_of(it)), title + 2), theme.fg(theme.text)),
                Span::styled(pad(&shown_value, value), style),
                Span::styled(pad(&it.origin, origin), if is_set { theme.fg(theme.accent) } else { theme.dim() }),
                Span::styled(if about > 24 { fit(&it.about, about) } else { String::new() }, theme.dim()),
            ]);
            let name = || format!("{}: {} ({})", it.title, it.value, it.origin);
            self.narrow.list.row(canvas, here, number, theme, name, line);
            if let Some(text) = typed.filter(|_| matches!(self.edit, Edit::Typing { .. })) {
                let x = list.x + u16::try_from(title + 2 + width(text).min(value)).unwrap_or(0);
                canvas.set_cursor_position((x.min(list.right().saturating_sub(1)), row));
            }
        }
    }

    /// The title of a row. Without the headings, a title of a section says which one: `Keys: theme`.
    fn name_of(&self, row: &SettingRow) -> String {
        match row.group {
            "General" | "Screen" => row.title.clone(),
            _ if self.narrow.letters.is_empty() => row.title.clone(),
            group => format!("{group}: {}", row.title),
        }
    }

    /// One of the values that the chosen setting can have.
    fn draw_option(&self, canvas: &mut Canvas, here: Rect, it: &SettingRow, nth: usize, title: usize, theme: &Theme) {
        let (Edit::Choosing(_), RowForm::Choice(options)) = (&self.edit, &it.form) else { return };
        let Some(option) = options.get(nth) else { return };
        let mark = if *option == it.value { "●" } else { "○" };
        let text = format!("{}{mark} {option}", " ".repeat(title + 2));
        let line = Line::styled(fit(&text, usize::from(here.width)), theme.fg(theme.text));
        self.options.row(canvas, here, nth, theme, || option.clone(), line);
    }

    /// What the chosen setting does, its key, and what is wrong with a new value.
    fn draw_detail(&self, canvas: &mut Canvas, area: Rect, theme: &Theme) {
        let Some(row) = self.chosen() else { return };
        let columns = usize::from(area.width);
        let mut lines = vec![Line::styled("─".repeat(columns), theme.fg(theme.border))];
        let error = match &self.edit {
            Edit::Typing { error, .. } | Edit::Pressing { error, .. } => error.as_ref(),
            Edit::None | Edit::Choosing(_) => None,
        };
        if let Some(error) = error {
            lines.extend(wrap_lines(&[Span::styled(visible(error), theme.fg(theme.error))], columns, &[], &[]));
        } else {
            let later = if row.is_later { " · from the next start" } else { "" };
            lines.push(Line::styled(fit(&row.about, columns), theme.fg(theme.text)));
            lines.push(Line::styled(fit(&format!("{}{later}", row.key), columns), theme.dim()));
        }
        for (y, line) in (area.y..area.bottom()).zip(lines) {
            canvas.line(line, Rect { y, height: 1, ..area });
        }
    }
}

impl View for SettingsView {
    fn is_loading(&self) -> bool {
        self.rows.is_empty()
    }

    fn title(&self) -> &'static str {
        "Settings"
    }

    fn scopes(&self) -> &'static [Scope] {
        &[Scope::Settings, Scope::Saving, Scope::Overlay]
    }

    fn press(&mut self, at: Position) -> Press {
        if let (Edit::Choosing(_), Some(nth)) = (&self.edit, self.options.row_at(at)) {
            self.edit = Edit::Choosing(nth);
            // Values and settings are counted apart.
            return Press::OnRow(usize::MAX - nth);
        }
        match self.narrow.list.row_at(at) {
            Some(row) => {
                if row != self.narrow.list.chosen {
                    (self.edit, self.narrow.list.chosen) = (Edit::None, row);
                }
                Press::OnRow(row)
            }
            None => Press::Nowhere,
        }
    }

    /// Letters go into a field, or the next key is bound as it is.
    fn is_typing(&self) -> bool {
        self.is_filtering || matches!(self.edit, Edit::Typing { .. } | Edit::Pressing { .. })
    }

    fn paste(&mut self, pasted: &str) {
        if let Edit::Typing { text, error } = &mut self.edit {
            text.push_str(pasted.trim());
            *error = None;
        }
    }

    fn scroll(&mut self, by: isize) {
        self.go(by);
    }

    fn key(&mut self, key: KeyEvent) -> Option<Outcome> {
        match &self.edit {
            Edit::Pressing { .. } => Some(self.press_key(key)),
            Edit::Typing { .. } => self.type_into_field(key).then_some(Outcome::Stay),
            Edit::None | Edit::Choosing(_) => self.narrow.key(key).then_some(Outcome::Stay),
        }
    }

    fn opened(&mut self) -> Vec<Effect> {
        vec![Effect::LoadSettings]
    }

    fn act(&mut self, action: LayerAction) -> Outcome {
        let page = isize::try_from(self.page).unwrap_or(1);
        match action {
            LayerAction::CloseOverlay => return self.back(),
            LayerAction::Choose => return self.choose(),
            LayerAction::SaveFor => self.save = self.save.next(),
            LayerAction::UnsetSetting => return self.unset(),
            LayerAction::FilterSettings => self.is_filtering = true,
            LayerAction::OverlayUp => self.go(-1),
            LayerAction::OverlayDown => self.go(1),
            LayerAction::OverlayPageUp => self.go(-page),
            LayerAction::OverlayPageDown => self.go(page),
            LayerAction::OverlayStart => self.go(isize::MIN / 2),
            LayerAction::OverlayEnd => self.go(isize::MAX / 2),
            _ => {}
        }
        Outcome::Stay
    }

    fn draw(&mut self, canvas: &mut Canvas, area: Rect, paint: Paint<'_>) {
        let theme = paint.theme;
        let save = self.chosen().map_or(self.save, |row| self.save_for(row)).choices();
        let hints = |choose: &str, close: &str| {
            paint.hints(&[
                (LayerAction::Choose, choose),
                (LayerAction::SaveFor, &save),
                (LayerAction::CloseOverlay, close),
            ])
        };
        let keys = match &self.edit {
            Edit::None if self.is_filtering => hints("change", "all settings"),
            Edit::None => {
                let unset = self.chosen().and_then(unset_from).map(|_| (LayerAction::UnsetSetting, "unset"));
                let more: Vec<(LayerAction, &str)> =
                    unset.into_iter().chain([(LayerAction::FilterSettings, "filter")]).collect();
                format!("{} · {}", hints("change", "close"), paint.hints(&more))
            }
            Edit::Choosing(_) => hints("choose", "keep it"),
            Edit::Typing { .. } => hints("set", "keep it"),
            Edit::Pressing { chord, .. } if chord.is_empty() => {
                format!("press the new key · Backspace no key · Esc keep it · {save}")
            }
            Edit::Pressing { error: Some(_), .. } => "press another key · Esc start again".to_owned(),
            Edit::Pressing { .. } => {
                "Enter bind it · Tab bind it too · a second key makes a chord · Esc start again".to_owned()
            }
        };
        let inner = panel(canvas, dialog(area, SIZE.0, SIZE.1), "Settings", &keys, theme);
        let shown = self.shown();
        self.narrow.list.chosen = self.narrow.list.chosen.min(shown.len().saturating_sub(1));
        let top = Rect { height: inner.height.min(1), ..inner };
        self.draw_filter(canvas, top, shown.len(), theme);
        let detail = DETAIL.min(inner.height.saturating_sub(4));
        let list = Rect { y: inner.y + 1, height: inner.height.saturating_sub(1 + detail), ..inner };
        if shown.is_empty() {
            let text = if self.rows.is_empty() { "reading the settings…" } else { "No matches" };
            canvas.line(Line::styled(text, theme.dim()), Rect { height: list.height.min(1), ..list });
            return;
        }
        self.draw_list(canvas, list, &shown, theme);
        let below = Rect { y: list.bottom(), height: detail, ..inner };
        self.draw_detail(canvas, below, theme);
    }
}
