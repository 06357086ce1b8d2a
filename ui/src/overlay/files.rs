//! The files of the conversation, Turn by Turn: what each Turn changed and read, and the way to its diff and its undo.

use std::collections::BTreeSet;

use pixir_core::Fact;
use pixir_core::call_info::CallKind;
use pixir_core::diff::{ChangedFile, Tally};
use pixir_core::event::RestoreReason;
use pixir_core::history::{History, starts_turn};
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};

use super::diff::file_line;
use super::list::ListView;
use super::{Effect, Notification, Outcome, Paint, Press, Request, View, dialog, panel};
use crate::input::action::{LayerAction, Scope, SessionKind};
use crate::render::figures::plus_minus_spans;
use crate::render::markdown::first_line;
use crate::render::text::{fit_path, span_width, visible, width};
use crate::terminal::canvas::Canvas;
use crate::theme::Theme;

/// The size of the dialog.
const SIZE: (u16, u16) = (110, 42);

/// A Turn, or a restore of files between Turns.
#[derive(Debug, PartialEq)]
struct Group {
    /// The Entry that it begins with.
    seq: u64,
    /// The number of the Turn; a restore has none.
    turn: Option<u32>,
    title: String,
    changed: Vec<ChangedFile>,
    /// Files that were read, and not changed.
    read: Vec<String>,
    /// The user has undone what it changed.
    is_undone: bool,
}

impl Group {
    /// An undone Turn has changed nothing in the end.
    fn has_diff(&self) -> bool {
        !self.changed.is_empty() && !self.is_undone
    }
}

/// A row of the list: a group, by its place, or a file of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Row {
    Head(usize),
    Changed(usize, usize),
    Read(usize, usize),
}

#[derive(Debug)]
pub(crate) struct FilesView {
    /// The latest first.
    groups: Vec<Group>,
    rows: Vec<Row>,
    list: ListView,
    session: SessionKind,
}

/// A group while its Entries are read.
#[derive(Default)]
struct Draft {
    seq: u64,
    turn: Option<u32>,
    title: String,
    tally: Tally,
    read: BTreeSet<String>,
    is_undone: bool,
}

impl Draft {
    fn finish(self) -> Group {
        let changed = self.tally.files();
        let is_changed = |path: &String| changed.iter().any(|file| file.path == *path);
        let read = self.read.into_iter().filter(|path| !is_changed(path)).collect();
        Group { seq: self.seq, turn: self.turn, title: self.title, changed, read, is_undone: self.is_undone }
    }
}

/// The groups that touched files, the latest first.
fn groups_of(history: &History) -> Vec<Group> {
    let mut drafts: Vec<Draft> = Vec::new();
    for entry in history.told() {
        let begin = |title: String, turn| Draft { seq: entry.seq, turn, title, ..Draft::default() };
        match &entry.fact {
            Fact::UserMessage(it) if starts_turn(&entry.fact) => {
                drafts.push(begin(first_line(&it.text, 200), entry.turn));
            }
            Fact::UserCommand(it) => drafts.push(begin(it.typed(), entry.turn)),
            Fact::FilesRestored(it) => match (it.reason, it.of_turn) {
                // A reverted hunk belongs to the Turn that it was reverted in.
                (RestoreReason::Hunk, _) => {}
                (RestoreReason::Undo | RestoreReason::Redo, Some(turn)) => {
                    let of_turn = drafts.iter_mut().filter(|draft| draft.turn == Some(turn));
                    of_turn.for_each(|draft| draft.is_undone = it.reason == RestoreReason::Undo);
                    continue;
                }
                (RestoreReason::Adopt, _) => drafts.push(begin("the work of an agent was adopted".to_owned(), None)),
                (
                    RestoreReason::Undo
                    | RestoreReason::Redo
                    | RestoreReason::Rewind
                    | RestoreReason::Stayed
                    | RestoreReason::Unknown,
                    _,
                ) => drafts.push(begin("files were restored".to_owned(), None)),
            },
            Fact::ToolCall(it) => {
                let about = it.about();
                if let (CallKind::Read, Some(draft)) = (about.kind, drafts.last_mut()) {
                    draft.read.extend(about.paths.iter().cloned());
                }
            }
            _ => {}
        }
        if let Some(draft) = drafts.last_mut() {
            draft.tally.take(&entry.fact);
        }
    }
    let groups = drafts.into_iter().rev().map(Draft::finish);
    groups.filter(|it| !it.changed.is_empty() || !it.read.is_empty()).collect()
}

impl FilesView {
    pub(crate) fn new(history: &History, session: SessionKind) -> FilesView {
        let groups = groups_of(history);
        let rows = rows_of(&groups);
        FilesView { groups, rows, list: ListView::default(), session }
    }

    /// Reads the conversation anew. The cursor stays on its file.
    fn read_again(&mut self, history: &History) {
        let before = self.rows.get(self.list.chosen).map(|row| self.identity(*row));
        self.groups = groups_of(history);
        self.rows = rows_of(&self.groups);
        let at = before.and_then(|it| self.rows.iter().position(|row| self.identity(*row) == it));
        self.list.chosen = at.unwrap_or(self.list.chosen).min(self.rows.len().saturating_sub(1));
    }

    fn identity(&self, row: Row) -> (u64, Option<String>) {
        (self.groups[group_of(row)].seq, self.path(row))
    }

    fn path(&self, row: Row) -> Option<String> {
        match row {
            Row::Head(_) => None,
            Row::Changed(group, at) => Some(self.groups[group].changed[at].path.clone()),
            Row::Read(group, at) => Some(self.groups[group].read[at].clone()),
        }
    }

    fn chosen(&self) -> Option<(Row, &Group)> {
        let row = *self.rows.get(self.list.chosen)?;
        Some((row, &self.groups[group_of(row)]))
    }

    /// The Turn of the chosen row, if its changes can be undone.
    fn undoable(&self) -> Option<u32> {
        let (_, group) = self.chosen().filter(|_| self.session == SessionKind::Live)?;
        group.turn.filter(|_| group.has_diff())
    }

    /// The diff of what was changed.
    fn open(&self) -> Outcome {
        match self.chosen() {
            Some((Row::Read(..), _)) | None => Outcome::Stay,
            Some((_, group)) if !group.has_diff() => Outcome::Stay,
            Some((row, group)) => Outcome::Ask(Request::ShowTurnDiff { seq: group.seq, path: self.path(row) }),
        }
    }

    /// Moves the cursor to the head of another group.
    fn step_group(&mut self, by: isize) {
        let here = self.rows.get(self.list.chosen).map_or(0, |row| group_of(*row));
        let next = here.saturating_add_signed(by).min(self.groups.len().saturating_sub(1));
        self.list.chosen = self.rows.iter().position(|row| *row == Row::Head(next)).unwrap_or(self.list.chosen);
    }

    fn line(&self, row: Row, columns: usize, theme: &Theme) -> Line<'static> {
        match row {
            Row::Head(group) => head_line(&self.groups[group], columns, theme),
            Row::Changed(group, at) => {
                let mut line = file_line(&self.groups[group].changed[at], columns.saturating_sub(5), theme);
                line.spans.insert(0, Span::raw("     "));
                line
            }
            Row::Read(group, at) => {
                let path = fit_path(&visible(&self.groups[group].read[at]), columns.saturating_sub(12));
                Line::styled(format!("     {path}  read"), theme.dim())
            }
        }
    }
}

impl View for FilesView {
    fn title(&self) -> &'static str {
        "Files"
    }

    fn scopes(&self) -> &'static [Scope] {
        &[Scope::Files, Scope::Overlay]
    }

    fn notify(&mut self, notification: Notification<'_>) {
        match notification {
            Notification::Recorded { history, entry }
                if matches!(entry.fact, Fact::ToolCall(_)) || !entry.fact.all_changes().is_empty() =>
            {
                self.read_again(history);
            }
            Notification::Branches(history) => self.read_again(history),
            _ => {}
        }
    }

    fn act(&mut self, action: LayerAction) -> Outcome {
        match action {
            LayerAction::CloseOverlay => return Outcome::Close,
            LayerAction::NextTurnOfFiles => self.step_group(1),
            LayerAction::PreviousTurnOfFiles => self.step_group(-1),
            LayerAction::Choose => return self.open(),
            LayerAction::EditChangedFile => {
                let path = self.chosen().and_then(|(row, _)| self.path(row));
                return path.map_or(Outcome::Stay, |path| Outcome::does(Effect::EditFile { path, line: 1 }));
            }
            LayerAction::UndoTurnOfFiles => {
                let undo = |turn| Outcome::Ask(Request::Command(format!("/undo {turn}")));
                return self.undoable().map_or(Outcome::Stay, undo);
            }
            action => _ = self.list.act(action, self.rows.len()),
        }
        Outcome::Stay
    }

    fn press(&mut self, at: Position) -> Press {
        self.list.press(at)
    }

    fn scroll(&mut self, by: isize) {
        self.list.scroll(by, self.rows.len());
    }

    fn draw(&mut self, canvas: &mut Canvas, area: Rect, paint: Paint<'_>) {
        let theme = paint.theme;
        let (can_open, can_edit) = match self.chosen() {
            None => (false, false),
            Some((Row::Head(_), group)) => (group.has_diff(), false),
            Some((Row::Changed(..), group)) => (group.has_diff(), true),
            Some((Row::Read(..), _)) => (false, true),
        };
        let keys = paint.hints_of(&[
            (can_open, LayerAction::Choose, "diff"),
            (can_edit, LayerAction::EditChangedFile, "editor"),
            (self.undoable().is_some(), LayerAction::UndoTurnOfFiles, "undo this turn"),
            (self.groups.len() > 1, LayerAction::NextTurnOfFiles, "next turn"),
            (true, LayerAction::CloseOverlay, "close"),
        ]);
        let inner = panel(canvas, dialog(area, SIZE.0, SIZE.1), "Files", &keys, theme);
        if self.rows.is_empty() {
            let text = "No file was read or changed yet";
            canvas.line(Line::styled(text, theme.dim()), Rect { height: 1.min(inner.height), ..inner });
            return;
        }
        let columns = usize::from(inner.width);
        let name = |row: usize| {
            let row = self.rows[row];
            self.path(row).unwrap_or_else(|| self.groups[group_of(row)].title.clone())
        };
        let line = |row: usize| self.line(self.rows[row], columns, theme);
        self.list.draw(canvas, inner, self.rows.len(), theme, &name, &line);
    }
}

fn group_of(row: Row) -> usize {
    match row {
        Row::Head(group) | Row::Changed(group, _) | Row::Read(group, _) => group,
    }
}

fn rows_of(groups: &[Group]) -> Vec<Row> {
    let of_group = |(at, group): (usize, &Group)| {
        let changed = (0..group.changed.len()).map(move |file| Row::Changed(at, file));
        let read = (0..group.read.len()).map(move |file| Row::Read(at, file));
        std::iter::once(Row::Head(at)).chain(changed).chain(read).collect::<Vec<_>>()
    };
    groups.iter().enumerate().flat_map(of_group).collect()
}

/// `   7 Make it faster                    2 files +40 −22`
fn head_line(group: &Group, columns: usize, theme: &Theme) -> Line<'static> {
    let number = group.turn.map_or("   ↶ ".to_owned(), |turn| format!("{turn:>4} "));
    let (added, removed) =
        group.changed.iter().filter_map(|file| file.counts).fold((0, 0), |sum, it| (sum.0 + it.0, sum.1 + it.1));
    let count = match group.changed.len() {
        0 => String::new(),
        1 => "  1 file".to_owned(),
        files => format!("  {files} files"),
    };
    let mut tail = vec![Span::styled(count, theme.dim())];
    if group.is_undone {
        tail.push(Span::styled("  undone", theme.fg(theme.warning)));
    }
    tail.extend(plus_minus_spans(" ", (added, removed), theme));
    let room = columns.saturating_sub(width(&number) + span_width(&tail));
    let title = first_line(&visible(&group.title), room);
    let pad = " ".repeat(room.saturating_sub(width(&title)));
    let mut spans = vec![Span::styled(number, theme.dim()), Span::styled(title, theme.bold()), Span::raw(pad)];
    spans.extend(tail);
    Line::from(spans)
}
