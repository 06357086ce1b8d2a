//! The preview of a restore: its files, how each changes, and what changed in them outside of pixir meanwhile.

use std::collections::BTreeMap;

use crate::terminal::canvas::Canvas;
use pixir_core::Input;
use pixir_core::event::{ChangeKind, FilePreview, RestorePreview, RestoreReason, Standing};
use pixir_core::input::{OnConflict, RestoreOptions, has_marks};
use ratatui::layout::{Constraint, Layout, Position, Rect};
use ratatui::style::Color;
use ratatui::text::{Line, Span};

use super::list::ListView;
use super::{Effect, Outcome, Page, Paint, Press, Request, View, panel};
use crate::input::action::{LayerAction, Scope};
use crate::render::agents::named;
use crate::render::context::RenderContext;
use crate::render::diff;
use crate::render::figures::plus_minus;
use crate::render::text::{fit, plain, wrap_lines};
use crate::theme::Theme;

#[derive(Debug)]
pub(crate) struct RestoreView {
    preview: RestorePreview,
    choices: BTreeMap<String, OnConflict>,
    /// Files that the user has merged by hand.
    written: BTreeMap<String, String>,
    list: ListView,
    page: Page,
}

impl RestoreView {
    pub(crate) fn new(preview: RestorePreview) -> RestoreView {
        RestoreView {
            preview,
            choices: BTreeMap::new(),
            written: BTreeMap::new(),
            list: ListView::default(),
            page: Page::default(),
        }
    }

    fn is_rewind(&self) -> bool {
        self.preview.reason == RestoreReason::Rewind
    }

    fn is_adoption(&self) -> bool {
        self.preview.reason == RestoreReason::Adopt
    }

    /// Any file of an agent may stay as it is in the workspace; the same key takes that back.
    fn choose_for_adoption(&mut self, choice: OnConflict) {
        let Some(file) = self.preview.files.get(self.list.chosen) else { return };
        let may = match file.standing {
            Standing::Ready => choice == OnConflict::Keep,
            Standing::ChangedSince => choice != OnConflict::Merge || file.merged.is_some(),
            Standing::AlreadyThere | Standing::Impossible => choice == OnConflict::Keep,
        };
        self.written.remove(&file.path);
        if self.choices.get(&file.path) == Some(&choice) {
            self.choices.remove(&file.path);
        } else if may {
            self.choices.insert(file.path.clone(), choice);
        }
        self.page = Page::default();
    }

    fn choose(&mut self, choice: OnConflict) {
        if self.is_adoption() {
            return self.choose_for_adoption(choice);
        }
        if let Some(file) = self.preview.files.get(self.list.chosen).filter(|f| f.standing == Standing::ChangedSince)
            && (choice != OnConflict::Merge || file.merged.is_some())
        {
            self.choices.insert(file.path.clone(), choice);
            self.page = Page::default();
        }
    }

    /// The options to apply exactly this preview. If the files have changed since the preview, the Session applies
    /// nothing.
    fn options(&self) -> RestoreOptions {
        RestoreOptions {
            choices: self.choices.clone(),
            written: self.written.clone(),
            seen: Some(self.preview.token.clone()),
            // The preview marks them, and it is the question.
            protected: self.preview.files.iter().any(|file| file.protected),
            ..RestoreOptions::default()
        }
    }

    fn choice_of(&self, file: &FilePreview) -> OnConflict {
        let usual = match self.is_adoption() && file.merged.is_some() {
            true => OnConflict::Merge,
            false => OnConflict::default(),
        };
        self.choices.get(&file.path).copied().unwrap_or(usual)
    }

    /// How a restore changes a file.
    fn restore_of(&self, file: &FilePreview, theme: &Theme) -> (&'static str, Color) {
        match (file.standing, self.choice_of(file)) {
            (Standing::ChangedSince, OnConflict::Keep) => ("changed since: kept", theme.warning),
            (Standing::ChangedSince, OnConflict::Merge) => ("changed since: merged", theme.warning),
            (Standing::ChangedSince, OnConflict::Overwrite) => ("changed since: overwritten", theme.error),
            (Standing::Impossible, _) => ("cannot be restored", theme.error),
            (Standing::AlreadyThere, _) => ("as it was already", theme.dim),
            (Standing::Ready, _) => match file.kind {
                ChangeKind::Created => ("created", theme.added),
                ChangeKind::Deleted => ("deleted", theme.removed),
                ChangeKind::Modified => ("restored", theme.text),
            },
        }
    }

    /// The chosen file as the user edits it, where its lines changed on both sides.
    fn by_hand(&self) -> Option<Effect> {
        let file = self.preview.files.get(self.list.chosen)?;
        let text = self.written.get(&file.path).or(file.marked.as_ref())?.clone();
        Some(Effect::MergeByHand { path: file.path.clone(), text })
    }

    /// Takes a file that the user has merged by hand.
    pub(crate) fn take_merge(&mut self, path: &str, text: String) {
        self.choices.remove(path);
        self.written.insert(path.to_owned(), text);
        self.page = Page::default();
    }

    /// How an adoption changes a file of an agent's copy.
    fn adoption_of(&self, file: &FilePreview, theme: &Theme) -> (&'static str, Color) {
        if let Some(text) = self.written.get(&file.path) {
            return if has_marks(text) {
                ("marks are left: e", theme.error)
            } else {
                ("as you wrote it", theme.warning)
            };
        }
        let is_chosen = self.choices.contains_key(&file.path);
        match (file.standing, self.choice_of(file)) {
            (_, OnConflict::Keep) if is_chosen => ("yours stays", theme.dim),
            (Standing::ChangedSince, OnConflict::Keep) => ("conflict: k, o or e", theme.error),
            (Standing::ChangedSince, OnConflict::Merge) => ("merged", theme.warning),
            (Standing::ChangedSince, OnConflict::Overwrite) => ("the agent's", theme.warning),
            (Standing::Impossible, _) => ("cannot be written", theme.error),
            (Standing::Ready | Standing::AlreadyThere, _) => match file.kind {
                ChangeKind::Created => ("created", theme.added),
                ChangeKind::Deleted => ("deleted", theme.removed),
                ChangeKind::Modified => ("changed", theme.text),
            },
        }
    }

    /// What happens to the chosen file of an agent's copy.
    fn adoption_detail(&self, file: &FilePreview, context: &RenderContext<'_>) -> Vec<Line<'static>> {
        let (columns, theme) = (context.columns, context.theme);
        let mut lines = Vec::new();
        let mut say = |text: &str, style| {
            lines.extend(wrap_lines(&[Span::styled(text.to_owned(), style)], columns, &[], &[]));
        };
        let choice = self.choice_of(file);
        let is_kept = choice == OnConflict::Keep && self.choices.contains_key(&file.path);
        if let Standing::Impossible = file.standing {
            say(&format!("Not written: {}.", file.why.as_deref().unwrap_or("it cannot be written")), theme.dim());
            return lines;
        }
        if let Some(text) = self.written.get(&file.path) {
            if has_marks(text) {
                say("Conflict marks are left in it. e opens it again", theme.fg(theme.warning));
            } else {
                say("As you wrote it, in place of both versions:", theme.bold());
            }
            lines.push(Line::default());
            lines.extend(text.lines().map(|line| Line::raw(fit(&plain(line), columns))));
            return lines;
        }
        if is_kept {
            say("Yours stays as it is. The agent would have changed it so:", theme.bold());
        } else if file.standing == Standing::ChangedSince {
            match choice {
                OnConflict::Merge => {
                    say("Both changed it, in different lines. Merged, your file changes so:", theme.bold())
                }
                OnConflict::Overwrite => say("The agent's version takes the place of yours:", theme.bold()),
                OnConflict::Keep => {
                    let keys = "Both changed the same lines. k keeps yours · o takes the agent's";
                    let by_hand = if file.marked.is_some() { " · e merges in your editor" } else { "" };
                    say(&format!("{keys}{by_hand}"), theme.fg(theme.warning));
                    lines.push(Line::default());
                    lines.push(Line::styled("Changed here since the copy was made:", theme.bold()));
                    lines.extend(diff::lines(file.since.as_deref().unwrap_or_default(), context));
                    lines.push(Line::default());
                    lines.push(Line::styled("The agent's version would change your file so:", theme.bold()));
                }
            }
        }
        let text = match choice {
            OnConflict::Merge => file.merged.as_deref().unwrap_or(&file.diff),
            OnConflict::Keep | OnConflict::Overwrite => &file.diff,
        };
        lines.extend(diff::lines(text, context));
        lines
    }

    fn draw_list(&self, canvas: &mut Canvas, list: Rect, theme: &Theme) {
        self.list.begin();
        let columns = usize::from(list.width);
        let top = self.list.top(list.height);
        for (row, (at, file)) in (list.y..list.bottom()).zip(self.preview.files.iter().enumerate().skip(top)) {
            let area = Rect { y: row, height: 1, ..list };
            let (what, style) =
                if self.is_adoption() { self.adoption_of(file, theme) } else { self.restore_of(file, theme) };
            let mark = if file.protected { "  protected" } else { "" };
            let numbers = format!("{}{mark}", plus_minus(file.added, file.removed));
            let room = columns.saturating_sub(what.chars().count() + numbers.chars().count() + 6);
            if at == self.list.chosen {
                canvas.tint(area, theme.selected());
            }
            let line = Line::from(vec![
                Span::styled(if at == self.list.chosen { "▸ " } else { "  " }, theme.fg(theme.accent)),
                Span::styled(fit(&plain(&file.path), room), theme.bold()),
                Span::raw("  "),
                Span::styled(what, theme.fg(style)),
                Span::styled(format!("  {numbers}"), theme.dim()),
            ]);
            self.list.option(canvas, area, at, || line.to_string());
            canvas.line(line, area);
        }
    }

    /// What happens to the chosen file. If it changed outside of pixir, the outcome of the user's choice.
    fn detail(&self, context: &RenderContext<'_>) -> Vec<Line<'static>> {
        let (columns, theme) = (context.columns, context.theme);
        let Some(file) = self.preview.files.get(self.list.chosen) else { return Vec::new() };
        let mut lines = Vec::new();
        if file.protected {
            let text =
                "A protected file: it can run code or widen permissions. Look at it before you let it be written.";
            lines.extend(wrap_lines(&[Span::styled(text, theme.fg(theme.warning))], columns, &[], &[]));
        }
        if self.is_adoption() {
            lines.extend(self.adoption_detail(file, context));
            return lines;
        }
        let mut say = |text: &str| {
            lines.extend(wrap_lines(&[Span::styled(text.to_owned(), theme.dim())], columns, &[], &[]));
        };
        match (file.standing, self.choice_of(file)) {
            (Standing::Impossible, _) => {
                say(&format!("Not restored: {}.", file.why.as_deref().unwrap_or("it cannot be restored")));
            }
            (Standing::AlreadyThere, _) => say("It is as it was before already: another program has put it back."),
            (Standing::Ready, _) => lines.extend(diff::lines(&file.diff, context)),
            (Standing::ChangedSince, choice) => {
                let keys = if file.merged.is_some() {
                    "It has changed since. k keep it · m merge: keep that change, restore the rest · o overwrite it"
                } else {
                    "It has changed since, in the same lines. k keep it · o overwrite it"
                };
                say(keys);
                lines.push(Line::default());
                let (title, text) = match choice {
                    OnConflict::Keep => ("Kept. It has changed since as follows:", file.since.as_deref()),
                    OnConflict::Merge => {
                        ("Merged: the later change stays, the rest is restored:", file.merged.as_deref())
                    }
                    OnConflict::Overwrite => ("Overwritten: the later change is lost:", Some(file.diff.as_str())),
                };
                lines.push(Line::styled(title, theme.bold()));
                lines.extend(diff::lines(text.unwrap_or_default(), context));
                if choice == OnConflict::Keep {
                    lines.push(Line::default());
                    lines.push(Line::styled("Restoring it would do this:", theme.bold()));
                    lines.extend(diff::lines(&file.diff, context));
                }
            }
        }
        lines
    }
}

impl RestoreView {}

impl View for RestoreView {
    fn title(&self) -> &'static str {
        "Files to restore"
    }

    fn scopes(&self) -> &'static [Scope] {
        &[Scope::Restore, Scope::Overlay]
    }

    fn is_guarded(&self) -> bool {
        true
    }

    fn leave(self) -> Option<Request> {
        Some(Request::Stay)
    }

    fn scroll(&mut self, by: isize) {
        self.list.scroll(by, self.preview.files.len());
        self.page = Page::default();
    }

    /// A click shows a file. A second one is not Enter: that would write all of them.
    /// Over the list the wheel goes from file to file, elsewhere it reads the chosen one.
    fn wheel(&mut self, at: Position, by: isize) -> Outcome {
        if self.list.row_at(at).is_some() {
            self.scroll(by)
        } else {
            self.page.scroll(by)
        }
        Outcome::Stay
    }

    fn press(&mut self, at: Position) -> Press {
        if let Press::Nowhere = self.list.press(at) {
            return Press::Nowhere;
        }
        self.page = Page::default();
        Press::Did(Box::new(Outcome::Stay))
    }

    fn act(&mut self, action: LayerAction) -> Outcome {
        match action {
            // The call that waits for the decision goes on without it.
            LayerAction::CloseOverlay if self.preview.asks => {
                let path = self.preview.agent.clone();
                let options = RestoreOptions::default();
                return Outcome::close_and_send(Input::Adopt { path, options, later: true });
            }
            LayerAction::CloseOverlay => return Outcome::Close,
            LayerAction::MergeByHand => {
                if let Some(merge) = self.by_hand() {
                    return Outcome::does(merge);
                }
            }
            // What has marks is not written; the row says so.
            LayerAction::Choose if self.written.values().any(|text| has_marks(text)) => {}
            LayerAction::Choose => {
                return Outcome::CloseAndAsk(Request::Restore(Box::new(self.preview.clone()), self.options()));
            }
            LayerAction::MoveWithoutFiles if self.is_rewind() => {
                return Outcome::CloseAndAsk(Request::MoveWithoutFiles);
            }
            LayerAction::OverlayUp => self.scroll(-1),
            LayerAction::OverlayDown => self.scroll(1),
            LayerAction::KeepFile => self.choose(OnConflict::Keep),
            LayerAction::MergeFile => self.choose(OnConflict::Merge),
            LayerAction::OverwriteFile => self.choose(OnConflict::Overwrite),
            _ => self.page.act(action),
        }
        Outcome::Stay
    }

    fn draw(&mut self, canvas: &mut Canvas, area: Rect, paint: Paint<'_>) {
        let theme = paint.theme;
        let count = self.preview.files.len();
        let files = if count == 1 { "1 file".to_owned() } else { format!("{count} files") };
        let title = match (self.preview.reason, self.preview.of_turn) {
            (RestoreReason::Undo, Some(turn)) => format!("Undo turn {turn}: {files}"),
            (RestoreReason::Redo, Some(turn)) => format!("Redo turn {turn}: {files}"),
            // The last change was a restore, such as that of a hunk.
            (RestoreReason::Undo, None) | (RestoreReason::Hunk, _) => format!("Undo the last restore: {files}"),
            (RestoreReason::Redo, None) => format!("Redo: {files}"),
            (RestoreReason::Adopt, _) => {
                format!("{} changed {files} in its copy", plain(&named(&self.preview.agent)))
            }
            (RestoreReason::Rewind | RestoreReason::Stayed | RestoreReason::Unknown, _) => {
                format!("Continue from there, and restore {files} as well?")
            }
        };
        let close = if self.preview.asks { "later" } else { "close" };
        let keys = if self.is_adoption() {
            paint.hints(&[
                (LayerAction::Choose, "adopt"),
                (LayerAction::KeepFile, "keep yours"),
                (LayerAction::OverwriteFile, "take the agent's"),
                (LayerAction::MergeByHand, "merge by hand"),
                (LayerAction::CloseOverlay, close),
                (LayerAction::OverlayDown, "next file"),
                (LayerAction::OverlayPageDown, "scroll"),
            ])
        } else if self.is_rewind() {
            paint.hints(&[
                (LayerAction::Choose, "go, restore files"),
                (LayerAction::MoveWithoutFiles, "go, keep files"),
                (LayerAction::CloseOverlay, "stay here"),
                (LayerAction::OverlayDown, "next file"),
                (LayerAction::OverlayPageDown, "scroll"),
            ])
        } else {
            paint.hints(&[
                (LayerAction::Choose, "restore"),
                (LayerAction::CloseOverlay, "cancel"),
                (LayerAction::OverlayDown, "next file"),
                (LayerAction::OverlayPageDown, "scroll"),
            ])
        };
        let inner = panel(canvas, area, &title, &keys, theme);
        let rows = u16::try_from(count).unwrap_or(u16::MAX).min(inner.height / 3).max(1);
        let [list, _, below] =
            Layout::vertical([Constraint::Length(rows), Constraint::Length(1), Constraint::Fill(1)]).areas(inner);
        self.draw_list(canvas, list, theme);
        let mut page = std::mem::take(&mut self.page);
        page.draw(canvas, below, paint, |columns| self.detail(&RenderContext::new(theme, paint.highlighter, columns)));
        self.page = page;
    }
}
