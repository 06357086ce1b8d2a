//! What the keys and the mouse do in the diff.

use pixir_core::Input;
use pixir_core::diff::{Folded, Kind};
use pixir_core::event::HunkReviewed;
use pixir_core::input::{HunkRevert, OnConflict, RestoreOptions};
use ratatui::layout::{Position, Rect};

use super::comments::Typing;
use super::search::{self, Search};
use super::{COMPARING, Columns, DiffView, Review, places};
use crate::input::action::{LayerAction, Scope};
use crate::overlay::{Effect, Notification, Outcome, Paint, Press, Request, View};
use crate::terminal::canvas::Canvas;
use crate::terminal::key::{KeyCode, KeyEvent};

impl DiffView {
    /// Goes to the next row with the searched text, or stays on this one if it has it.
    fn find(&mut self, by: isize, may_stay: bool) {
        let (Some(text), false) = (self.text(), self.search.text.is_empty()) else { return };
        let found = search::next(text, self.places(), &self.search.text, self.cursor, by, may_stay);
        self.search.is_missing = found.is_none();
        if let Some(found) = found {
            self.cursor = found;
        }
    }

    fn step(&mut self, by: isize) {
        if self.lists {
            return self.step_in_list(by);
        }
        self.cursor = self.cursor.saturating_add_signed(by).min(self.last_row());
    }

    fn fold(&mut self) {
        let Some(file) = self.current() else { return };
        let path = file.path.clone();
        let was_folded = self.folded().is_some();
        if let Some(file) = self.changes.as_mut().and_then(|it| it.files.get_mut(self.file)) {
            file.folded = file.folded.or(Some(Folded::Huge));
        }
        self.folds.insert(path, !was_folded);
        (self.cursor, self.top) = (0, 0);
        self.go_to_first_change();
    }

    /// Folds the folder in a row of the list, or unfolds it. False if there is no folder.
    fn turn_folder(&mut self, row: usize) -> bool {
        self.changes.as_ref().is_some_and(|changes| self.folders.turn(row, changes))
    }

    fn copy(&mut self) -> Outcome {
        if self.is_start() {
            return self.refuse(COMPARING);
        }
        let (Some(file), Some(text), Some((at, _))) = (self.current(), self.text(), self.hunk()) else {
            return self.refuse("no hunk here to copy");
        };
        Outcome::does(Effect::Copy(places::patch_text(file, text, &text.hunks[at])))
    }

    fn refuse(&mut self, why: &str) -> Outcome {
        self.notice = Some(why.to_owned());
        Outcome::Stay
    }

    /// The line of the file as it is now that the cursor is on or next to, from 1.
    fn line_now(&self) -> u32 {
        let Some(text) = self.text() else { return 1 };
        let lines = self.places().get(self.cursor..).unwrap_or_default().iter().filter_map(|place| place.line());
        let now = lines.filter_map(|line| text.lines.get(line)).find_map(|line| line.new);
        now.map_or(1, |line| line + 1)
    }

    fn edit(&mut self) -> Outcome {
        let Some(file) = self.current() else { return Outcome::Stay };
        let (path, line) = (file.path.clone(), self.line_now());
        Outcome::does(Effect::EditFile { path, line })
    }

    fn hunk_id(&self) -> Option<(String, String)> {
        let (file, loaded, (at, _)) = (self.current()?, self.loaded()?, self.hunk()?);
        Some((file.path.clone(), loaded.ids.get(at)?.clone()))
    }

    /// Marks the hunk as reviewed and goes on to the next, or takes the mark back.
    fn keep(&mut self) -> Outcome {
        if self.is_start() {
            return self.refuse(COMPARING);
        }
        let Some((path, hunk)) = self.hunk_id() else { return self.refuse("no hunk here to keep") };
        let kept = !self.kept.contains(&hunk);
        if kept {
            self.kept.insert(hunk.clone());
            self.next_hunk();
        } else {
            self.kept.remove(&hunk);
        }
        let review = Effect::Send(Input::KeepHunk(HunkReviewed { path, hunk, kept }));
        Outcome::Ask(Request::Do(std::iter::once(review).chain(self.wants()).collect()))
    }

    fn revert(&mut self) -> Outcome {
        if self.is_start() {
            return self.refuse(COMPARING);
        }
        let is_lost = || "no hunk here to revert: /undo restores whole files";
        let Some((at, _)) = self.hunk() else { return self.refuse(is_lost()) };
        let (Some(file), Some(loaded), Some(text)) = (self.current(), self.loaded(), self.text()) else {
            return self.refuse(is_lost());
        };
        if loaded.seen.is_none() && loaded.encoding.is_some() {
            return self
                .refuse("a deleted file in another encoding than UTF-8 is restored as a whole: /undo, or git restore");
        }
        let hunk = HunkRevert {
            path: file.path.clone(),
            seen: loaded.seen.clone(),
            edit: text.edit(&text.hunks[at]),
            is_new: file.kind == Kind::Added,
            mode: file.old_mode(),
        };
        self.reverting = Some(hunk.clone());
        let options = revert_options();
        Outcome::does(Effect::Send(Input::RevertHunk { hunk, options }))
    }

    fn comment(&mut self) {
        // In the head of a hunk, the line below it is meant.
        if self.is_start() {
            return self.refuse_comment(COMPARING);
        }
        let below =
            self.places().get(self.cursor..).unwrap_or_default().iter().position(|place| place.line().is_some());
        match below {
            Some(below) => self.cursor += below,
            None => return self.refuse_comment("no line here to comment on"),
        }
        let (Some(file), Some(text), Some(place)) = (self.current(), self.text(), self.places().get(self.cursor))
        else {
            return;
        };
        let line = place.line().and_then(|line| text.lines.get(line));
        if let Some(line) = line.copied() {
            self.field = self.review.field(&file.path, text, line);
        }
    }

    fn refuse_comment(&mut self, why: &str) {
        self.notice = Some(format!("{why} · Esc goes on"));
        self.is_deaf = true;
    }

    fn remove_comment(&mut self) {
        if let (Some(file), Some(text), Some(place)) = (self.current(), self.text(), self.places().get(self.cursor))
            && let Some(line) = place.line().and_then(|line| text.lines.get(line)).copied()
        {
            let path = file.path.clone();
            self.review.remove(&path, line);
        }
    }

    /// The comments go on when the diff is closed.
    pub(crate) fn into_review(self) -> Review {
        self.review
    }

    /// The comments were sent.
    pub(crate) fn sent(&mut self) {
        self.review = Review::default();
    }
}

impl View for DiffView {
    fn title(&self) -> &'static str {
        "Diff"
    }

    fn scopes(&self) -> &'static [Scope] {
        &[Scope::Diff, Scope::Overlay]
    }

    fn is_typing(&self) -> bool {
        self.field.is_some() || self.search.is_typed || self.is_deaf
    }

    fn key(&mut self, key: KeyEvent) -> Option<Outcome> {
        if let Some(field) = &mut self.field {
            match field.key(key) {
                Typing::Goes => {}
                Typing::Done => {
                    let field = self.field.take()?;
                    self.review.put(field);
                }
                Typing::Left => self.field = None,
                Typing::No => return None,
            }
            return Some(Outcome::Stay);
        }
        if self.is_deaf {
            // The user believes to be writing a comment: letters do nothing, any other key goes on.
            self.is_deaf = matches!(key.code, KeyCode::Char(_) | KeyCode::Backspace);
            return Some(Outcome::Stay);
        }
        if !self.search.key(key) {
            return None;
        }
        self.find(1, true);
        Some(Outcome::Stay)
    }

    fn paste(&mut self, text: &str) {
        if let Some(field) = &mut self.field {
            field.paste(text);
        } else if self.search.is_typed {
            self.search.text.push_str(text.lines().next().unwrap_or_default());
            self.find(1, true);
        }
    }

    fn act(&mut self, action: LayerAction) -> Outcome {
        (self.notice, self.reverted, self.list_top) = (None, None, None);
        if !matches!(action, LayerAction::SwitchSource | LayerAction::PreviousSource) {
            self.seeks = None;
        }
        if let Some(hunk) = self.protected.take() {
            return match action {
                LayerAction::Choose => {
                    let options = RestoreOptions { protected: true, ..revert_options() };
                    Outcome::does(Effect::Send(Input::RevertHunk { hunk, options }))
                }
                _ => Outcome::Stay,
            };
        }
        if self.is_sending {
            self.is_sending = false;
            return match action {
                LayerAction::Choose => {
                    Outcome::Ask(Request::SendReview(self.review.message(&self.sources[self.source].1)))
                }
                _ => Outcome::Stay,
            };
        }
        match action {
            LayerAction::CloseOverlay if self.lists => self.lists = false,
            LayerAction::CloseOverlay if !self.search.text.is_empty() => self.search = Search::default(),
            LayerAction::CloseOverlay => return Outcome::Close,
            LayerAction::Choose | LayerAction::FoldFile if self.lists && self.turn_folder(self.folders.cursor) => {}
            LayerAction::Choose if self.lists => self.lists = false,
            LayerAction::Choose | LayerAction::SendComments if !self.review.is_empty() => self.is_sending = true,
            LayerAction::OverlayUp => self.step(-1),
            LayerAction::OverlayDown => self.step(1),
            LayerAction::OverlayStart if self.lists => self.step_in_list(isize::MIN),
            LayerAction::OverlayEnd if self.lists => self.step_in_list(isize::MAX),
            LayerAction::OverlayPageUp => self.scroll(-isize::try_from(self.page).unwrap_or(1)),
            LayerAction::OverlayPageDown => self.scroll(isize::try_from(self.page).unwrap_or(1)),
            LayerAction::OverlayStart => (self.cursor, self.top) = (0, 0),
            LayerAction::OverlayEnd => self.cursor = self.last_row(),
            LayerAction::SwitchSource => self.switch_source((self.source + 1) % self.sources.len()),
            LayerAction::PreviousSource => {
                self.switch_source((self.source + self.sources.len() - 1) % self.sources.len());
            }
            LayerAction::SinceEarlierPrompt => self.move_prompt(-1),
            LayerAction::SinceLaterPrompt => self.move_prompt(1),
            LayerAction::NextFile => self.go_to_file(self.file + 1),
            LayerAction::PreviousFile => self.go_to_file(self.file.saturating_sub(1)),
            LayerAction::NextHunk if !self.search.text.is_empty() => self.find(1, false),
            LayerAction::PreviousHunk if !self.search.text.is_empty() => self.find(-1, false),
            LayerAction::NextHunk => self.next_hunk(),
            LayerAction::PreviousHunk => self.previous_hunk(),
            LayerAction::FindInDiff => self.search.begin(),
            LayerAction::FoldFile => self.fold(),
            LayerAction::SwitchColumns => self.columns = if self.is_split { Columns::Unified } else { Columns::Split },
            LayerAction::WrapLines => (self.wraps, self.left) = (!self.wraps, 0),
            LayerAction::ScrollLeft | LayerAction::ScrollRight if self.lists => {
                if let Some(changes) = &self.changes {
                    self.folders.fold(action == LayerAction::ScrollLeft, changes);
                }
            }
            LayerAction::ScrollLeft => self.left = self.left.saturating_sub(8),
            LayerAction::ScrollRight if !self.wraps => self.left += 8,
            LayerAction::ListFiles if self.lists => (self.lists, self.hides_list) = (false, self.areas.is_wide),
            LayerAction::ListFiles => {
                (self.lists, self.hides_list) = (true, false);
                self.folders.cursor = self.folders.row_of(self.file);
            }
            LayerAction::CopyHunk => return self.copy(),
            LayerAction::EditLine => return self.edit(),
            LayerAction::KeepHunk => return self.keep(),
            LayerAction::RevertHunk => return self.revert(),
            LayerAction::CommentLine => self.comment(),
            LayerAction::RemoveComment => self.remove_comment(),
            _ => {}
        }
        self.outcome()
    }

    /// The wheel over the list scrolls the list and shows no other file.
    fn wheel(&mut self, at: Position, by: isize) -> Outcome {
        self.seeks = None;
        match self.areas.list.filter(|(list, _)| list.contains(at)) {
            Some((list, first)) => {
                let last = self.folders.len().saturating_sub(usize::from(list.height));
                self.list_top = Some(first.saturating_add_signed(by).min(last));
            }
            None => self.scroll_lines(by),
        }
        self.outcome()
    }

    /// A click on a file shows it, one on a line puts the cursor there.
    fn press(&mut self, at: Position) -> Press {
        self.seeks = None;
        let inside = |area: Rect| area.contains(at);
        if let Some((list, first)) = self.areas.list.filter(|(list, _)| inside(*list)) {
            let row = first + usize::from(at.y - list.y);
            // The list stays where it is under the pointer.
            self.list_top = Some(first);
            if let Some(file) = self.folders.file(row) {
                self.lists = false;
                self.go_to_file(file);
            } else {
                self.turn_folder(row);
            }
        } else if let Some(row) = self.areas.rows.get(usize::from(at.y.saturating_sub(self.areas.body.y)))
            && inside(self.areas.body)
        {
            self.cursor = (*row).min(self.last_row());
        }
        Press::Did(Box::new(self.outcome()))
    }

    fn scroll(&mut self, by: isize) {
        if self.lists {
            return self.step_in_list(by);
        }
        self.scroll_lines(by);
    }

    fn leave(self) -> Option<Request> {
        Some(Request::KeepReview(self.into_review()))
    }

    fn draw(&mut self, canvas: &mut Canvas, area: Rect, paint: Paint<'_>) {
        self.paint(canvas, area, paint);
    }

    fn opened(&mut self) -> Vec<Effect> {
        self.wants()
    }

    fn notify(&mut self, notification: Notification<'_>) {
        self.learn(notification);
    }
}

/// Edits elsewhere in the file since stay; in the same lines they are a conflict, and nothing is written.
fn revert_options() -> RestoreOptions {
    RestoreOptions { changed_since: OnConflict::Merge, ..RestoreOptions::default() }
}
