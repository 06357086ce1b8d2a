//! Commands and keys, from the action table. Typing searches them.

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::narrow::Narrow;
use super::{Outcome, Page, Paint, View, dialog, panel};
use crate::input::action::{ACTIONS, ActionSpec, LayerAction, Scope, SessionKind, Slash};
use crate::input::keymap::Keymap;
use crate::input::slash::{Matching, commands, found};
use crate::render::text::{span_width, width, wrap_lines};
use crate::terminal::canvas::Canvas;
use crate::terminal::key::{KeyCode, KeyEvent};
use crate::theme::Theme;

/// The size of the dialog.
const SIZE: (u16, u16) = (132, 44);
/// From this width on there are two columns.
const TWO_COLUMNS: usize = 110;
/// Columns between two columns of text.
const BETWEEN: usize = 3;

#[derive(Debug)]
pub(crate) struct HelpView {
    page: Page,
    narrow: Narrow,
    /// Shows the name of every action, for `[keys]`.
    names: bool,
    /// The keys of each action, in the order of the table.
    keys: Vec<String>,
    /// The scopes that come first: those where the user is.
    first: Vec<Scope>,
    session: SessionKind,
    /// The lines with headings in the last layout.
    headings: Vec<usize>,
}

/// A heading, and what stands below it: what to press or type, and what it does.
struct Section {
    title: &'static str,
    rows: Vec<(String, String)>,
}

/// What the composer understands besides keys.
const PREFIXES: [(&str, &str); 4] = [
    ("/command", "run a slash command; /help <command> explains one"),
    ("!command", "run a command here; the model reads its output"),
    ("!!command", "run a command here; the model does not see it"),
    ("@file", "mention a file of the workspace; an image is attached"),
];

impl HelpView {
    /// Commands and keys. In an overlay, its own keys come first.
    pub(crate) fn new(keymap: &Keymap, first: &[Scope], session: SessionKind) -> HelpView {
        let keys = ACTIONS.iter().map(|spec| keymap.keys_of(spec.action).join(", ")).collect();
        let first = first.to_vec();
        let (page, narrow) = (Page::default(), Narrow::default());
        HelpView { page, narrow, names: false, keys, first, session, headings: Vec::new() }
    }

    /// Every action, with the name by which the configuration binds it.
    pub(crate) fn of_keys(keymap: &Keymap, first: &[Scope], session: SessionKind) -> HelpView {
        HelpView { names: true, ..HelpView::new(keymap, first, session) }
    }

    /// What the typed words name, under its headings; what has their letters only if nothing has the words.
    fn sections(&self) -> Vec<Section> {
        let named = self.sections_of(Matching::Words);
        if named.is_empty() { self.sections_of(Matching::Letters) } else { named }
    }

    fn sections_of(&self, matching: Matching) -> Vec<Section> {
        let mut scopes = Scope::ALL;
        let rank = |scope: &Scope| self.first.iter().position(|it| it == scope).unwrap_or(usize::MAX);
        scopes.sort_by_key(rank);
        let of_scopes = scopes.into_iter().map(|scope| self.of_scope(scope, matching));
        let mut sections: Vec<Section> = of_scopes.collect();
        // In an overlay and in a replay its own keys come first, elsewhere the commands.
        let own = self.first.contains(&Scope::Overlay) || self.session == SessionKind::Replay;
        let at = if own { self.first.len() } else { 0 };
        sections.insert(at, self.of_commands(matching));
        sections.retain(|section| !section.rows.is_empty());
        sections
    }

    fn of_commands(&self, matching: Matching) -> Section {
        let session = self.session;
        let all = commands().into_iter().filter(|(_, spec)| !self.names && spec.applies(session)).collect();
        let text = |(slash, spec): &(Slash, &ActionSpec)| format!("/{} {}", slash.name, spec.about);
        let mut matches = found(matching, &self.narrow.letters, all, text);
        // A name before what only tells of the word.
        matches.sort_by_key(|(slash, _)| !slash.name.contains(self.narrow.letters.trim_start_matches('/')));
        let row = |(slash, spec): (Slash, &'static ActionSpec)| {
            let keys = self.keys_of(spec);
            let keys = if keys.is_empty() { String::new() } else { format!(" · {keys}") };
            (format!("/{} {}", slash.name, slash.args).trim_end().to_owned(), format!("{}{keys}", spec.about))
        };
        Section { title: "Commands", rows: matches.into_iter().map(row).collect() }
    }

    fn keys_of(&self, spec: &ActionSpec) -> &str {
        let at = ACTIONS.iter().position(|it| it.action == spec.action);
        at.map_or("", |at| self.keys[at].as_str())
    }

    fn of_scope(&self, scope: Scope, matching: Matching) -> Section {
        let letters = &self.narrow.letters;
        // A replay has neither a composer nor approvals.
        let is_elsewhere = match scope {
            Scope::Composer | Scope::Approval | Scope::ApprovalFocus => self.session == SessionKind::Replay,
            Scope::Replay => self.session == SessionKind::Live,
            _ => false,
        };
        if is_elsewhere && !self.names {
            return Section { title: scope.heading(), rows: Vec::new() };
        }
        let is_shown = |spec: &&ActionSpec| {
            let is_listed = spec.scope == scope && (self.names || spec.applies(self.session));
            // A slash command stands among the commands, with its keys.
            is_listed && (self.names || (spec.slash.is_none() && !self.keys_of(spec).is_empty()))
        };
        let here: Vec<&ActionSpec> = ACTIONS.iter().filter(is_shown).collect();
        let here = found(matching, letters, here, |spec| format!("{} {} {}", spec.id, self.keys_of(spec), spec.about));
        let prefixes = PREFIXES.iter().filter(|_| scope == Scope::Composer && !self.names).collect();
        let prefixes = found(matching, letters, prefixes, |(prefix, about)| format!("{prefix} {about}"));
        let mut rows: Vec<(String, String)> =
            prefixes.into_iter().map(|(prefix, about)| ((*prefix).to_owned(), (*about).to_owned())).collect();
        rows.extend(here.into_iter().map(|spec| {
            let name = if self.names { format!("{} · ", spec.id) } else { String::new() };
            (self.keys_of(spec).to_owned(), format!("{name}{}", spec.about))
        }));
        Section { title: scope.heading(), rows }
    }

    /// The lines, and which of them are headings.
    fn lines(&self, columns: usize, theme: &Theme) -> (Vec<Line<'static>>, Vec<usize>) {
        let sections = self.sections();
        if sections.is_empty() {
            return (vec![Line::styled("No matches", theme.dim())], Vec::new());
        }
        if columns < TWO_COLUMNS {
            let (mut lines, mut headings) = (Vec::new(), Vec::new());
            for section in &sections {
                if !lines.is_empty() {
                    lines.push(Line::default());
                }
                headings.push(lines.len());
                lines.extend(section.lines(columns, theme));
            }
            return (lines, headings);
        }
        let wide = (columns - BETWEEN) / 2;
        let blocks: Vec<Vec<Line<'static>>> = sections.iter().map(|it| it.lines(wide, theme)).collect();
        let all: usize = blocks.iter().map(|it| it.len() + 1).sum();
        let (mut left, mut right, mut headings) = (Vec::new(), Vec::new(), Vec::new());
        for block in blocks {
            // A column takes whole sections, so that none is torn apart.
            let column = if left.is_empty() || (right.is_empty() && left.len() + block.len() / 2 < all / 2) {
                &mut left
            } else {
                &mut right
            };
            if !column.is_empty() {
                column.push(Line::default());
            }
            headings.push(column.len());
            column.extend(block);
        }
        headings.sort_unstable();
        headings.dedup();
        let rows = left.len().max(right.len());
        let mut both = Vec::with_capacity(rows);
        let (mut left, mut right) = (left.into_iter(), right.into_iter());
        for _ in 0..rows {
            let mut line = left.next().unwrap_or_default();
            let pad = (wide + BETWEEN).saturating_sub(span_width(&line.spans));
            line.spans.push(Span::raw(" ".repeat(pad)));
            // The style of a whole line must not reach into the other column.
            let style = std::mem::take(&mut line.style);
            line.spans.iter_mut().for_each(|span| span.style = style.patch(span.style));
            let other = right.next().unwrap_or_default();
            line.spans
                .extend(other.spans.into_iter().map(|span| Span::styled(span.content, other.style.patch(span.style))));
            both.push(line);
        }
        (both, headings)
    }
}

impl Section {
    /// Its lines. The names have only the columns that they need.
    fn lines(&self, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
        let most: usize = if columns < 70 { 24 } else { 28 };
        let names = self.rows.iter().map(|(left, _)| width(left) + 4);
        let wide = names.filter(|it| *it <= most).max().unwrap_or(most);
        let mut lines = vec![Line::styled(self.title, theme.bold())];
        for (left, about) in &self.rows {
            let left = format!("  {left}");
            let about = [Span::styled(about.clone(), theme.fg(theme.text))];
            let under = Span::raw(" ".repeat(wide));
            let gap = wide.saturating_sub(width(&left));
            // What is longer than its column has a line of its own, so that the two do not run into each other.
            let first = if gap < 2 {
                lines.extend(wrap_lines(
                    &[Span::styled(left, theme.fg(theme.accent))],
                    columns,
                    &[],
                    &[Span::raw("    ")],
                ));
                under.clone()
            } else {
                Span::styled(format!("{left}{}", " ".repeat(gap)), theme.fg(theme.accent))
            };
            lines.extend(wrap_lines(&about, columns, &[first], &[under]));
        }
        lines
    }
}

impl HelpView {}

impl View for HelpView {
    fn title(&self) -> &'static str {
        "Help"
    }

    fn scopes(&self) -> &'static [Scope] {
        &[Scope::Help, Scope::Overlay]
    }

    fn is_typing(&self) -> bool {
        true
    }

    fn key(&mut self, key: KeyEvent) -> Option<Outcome> {
        match key.code {
            KeyCode::F(1) => return Some(Outcome::Close),
            KeyCode::Char('?') if self.narrow.letters.is_empty() => return Some(Outcome::Close),
            _ => {}
        }
        if !self.narrow.key(key) {
            return None;
        }
        self.page = Page::default();
        Some(Outcome::Stay)
    }

    fn act(&mut self, action: LayerAction) -> Outcome {
        match action {
            LayerAction::CloseOverlay | LayerAction::Choose => return Outcome::Close,
            LayerAction::NextHelpSection => {
                let next = self.headings.iter().find(|at| **at > self.page.top);
                self.page.top = next.copied().unwrap_or(0).min(self.page.max_top);
            }
            LayerAction::PreviousHelpSection => {
                let before = self.headings.iter().rev().find(|at| **at < self.page.top);
                self.page.top = before.copied().unwrap_or(self.page.max_top);
            }
            action => self.page.act(action),
        }
        Outcome::Stay
    }

    fn scroll(&mut self, by: isize) {
        self.page.scroll(by);
    }

    fn draw(&mut self, canvas: &mut Canvas, area: Rect, paint: Paint<'_>) {
        let hints = paint.hints(&[
            (LayerAction::NextHelpSection, "next section"),
            (LayerAction::OverlayPageDown, "page down"),
            (LayerAction::CloseOverlay, "close"),
        ]);
        let keys = format!("type to search · {hints}");
        let inner = panel(canvas, dialog(area, SIZE.0, SIZE.1), "Help", &keys, paint.theme);
        let body = self.narrow.draw(canvas, inner, paint.theme);
        let mut page = std::mem::take(&mut self.page);
        let mut headings = None;
        page.draw(canvas, body, paint, |columns| {
            let (lines, of_lines) = self.lines(columns, paint.theme);
            headings = Some(of_lines);
            lines
        });
        self.headings = headings.unwrap_or_else(|| std::mem::take(&mut self.headings));
        self.page = page;
    }
}
