//! A compaction before it is applied: what stays, what is summed up, what goes, and the summary. A recorded one is shown in
//! the same view, which then changes nothing.

use std::collections::BTreeMap;

use pixir_core::Input;
use pixir_core::event::{CompactionPreview, Draft, List, Segment};
use pixir_core::input::CompactOptions;
use ratatui::layout::{Position, Rect};
use tui_textarea::{CursorMove, CursorRenderMode, TextArea, WrapMode};

use super::list::ListView;
use super::{Notification, Outcome, Page, Paint, Press, Request, View};
use crate::input::action::{LayerAction, Scope};
use crate::terminal::canvas::Canvas;
use crate::terminal::key::{KeyCode, KeyEvent, KeyModifiers};

mod draw; // bar, lists, summary
mod lists; // the entries, list by list
mod notes; // what a model has written so far

use lists::Lists;

/// The lists, in the order of the screen.
const LISTS: [List; 3] = [List::Kept, List::SummedUp, List::Dropped];

/// Whether the view decides about a compaction, or shows one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Decide,
    Show,
}

/// The half of the view that the keys move in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pane {
    Lists,
    Summary,
}

pub(crate) struct CompactionView {
    preview: CompactionPreview,
    purpose: Purpose,
    instructions: Option<String>,
    /// Entries that the user moved.
    moves: BTreeMap<u64, List>,
    /// The user moved something since the model began to write.
    is_outdated: bool,
    /// The three lists as they are now.
    lists: Lists,
    /// The segment with the cursor, in the order of the conversation.
    chosen: usize,
    rows: ListView,
    /// Where the lists and the summary stood in the last frame.
    lists_area: Rect,
    summary_area: Rect,
    /// The last thing that the user did here was a click on the chosen entry.
    was_pressed: bool,
    /// The first row of the lists on the screen.
    top: usize,
    pane: Pane,
    page: Page,
    /// The part of the summary that the user can edit, as it is now.
    body: String,
    is_edited: bool,
    field: Option<TextArea<'static>>,
    /// The JSON of the notes that the model is writing.
    written: String,
}

impl std::fmt::Debug for CompactionView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CompactionView").field("moves", &self.moves).field("body", &self.body).finish_non_exhaustive()
    }
}

impl CompactionView {
    /// A preview that the user decides about.
    pub(crate) fn new(preview: CompactionPreview, instructions: Option<String>) -> CompactionView {
        CompactionView::made(preview, Purpose::Decide, instructions)
    }

    /// A compaction that was recorded.
    pub(crate) fn recorded(preview: CompactionPreview) -> CompactionView {
        CompactionView::made(preview, Purpose::Show, None)
    }

    fn made(preview: CompactionPreview, purpose: Purpose, instructions: Option<String>) -> CompactionView {
        let mut view = CompactionView {
            body: preview.body().trim().to_owned(),
            preview,
            purpose,
            instructions,
            moves: BTreeMap::new(),
            is_outdated: false,
            lists: Lists::default(),
            chosen: 0,
            rows: ListView::default(),
            lists_area: Rect::default(),
            summary_area: Rect::default(),
            was_pressed: false,
            top: 0,
            pane: Pane::Lists,
            page: Page::default(),
            is_edited: false,
            field: None,
            written: String::new(),
        };
        view.arrange();
        view.chosen = view.lists.segment(0).unwrap_or(0);
        view
    }

    /// The model has written the summary, or cannot. What the user moved or edited meanwhile stays.
    pub(crate) fn replace(&mut self, preview: CompactionPreview) {
        if !self.is_edited {
            self.body = preview.body().trim().to_owned();
        }
        self.written.clear();
        self.is_outdated &= preview.draft != Draft::Writing;
        self.preview = preview;
        self.page = Page::default();
        self.arrange();
    }

    fn is_writing(&self) -> bool {
        self.preview.draft == Draft::Writing
    }

    fn list_of(&self, segment: &Segment) -> List {
        segment.seq.and_then(|seq| self.moves.get(&seq)).copied().unwrap_or(segment.list)
    }

    /// Makes the lists anew, after the preview or the moves have changed.
    fn arrange(&mut self) {
        self.lists = Lists::of(&self.preview, |segment| self.list_of(segment));
    }

    /// Tokens of the next request as it is, and after the compaction.
    fn tokens(&self) -> (u64, u64) {
        let fixed = self.preview.fixed_tokens;
        let summary = self.preview.body().len() as u64 / 4;
        let after = (self.lists.tokens_after + self.body.len() as u64 / 4).saturating_sub(summary);
        (fixed + self.preview.compaction.tokens_before, fixed + after)
    }

    fn fits(&self) -> bool {
        self.preview.compaction.window.is_none_or(|window| self.tokens().1 < window)
    }

    /// The moves, and what the user saw.
    fn options(&self) -> CompactOptions {
        let of = |list: List| self.moves.iter().filter(move |(_, to)| **to == list).map(|(seq, _)| *seq).collect();
        CompactOptions {
            seen: Some(self.preview.token.clone()),
            keep: of(List::Kept),
            sum_up: of(List::SummedUp),
            drop: of(List::Dropped),
            ..CompactOptions::default()
        }
    }

    fn input(&self, dry_run: bool, options: CompactOptions) -> Input {
        Input::Compact { instructions: self.instructions.clone(), dry_run, options }
    }

    fn apply(&self) -> Outcome {
        if self.is_writing() || !self.fits() {
            return Outcome::Stay;
        }
        let options = CompactOptions { summary: Some(self.body.clone()), ..self.options() };
        Outcome::close_and_send(self.input(false, options))
    }

    /// Moves the chosen entry to the next list.
    fn move_chosen(&mut self) {
        let Some(segment) = self.preview.segments.get(self.chosen).filter(|it| !it.fixed) else { return };
        let Some(seq) = segment.seq else { return };
        let next = match self.list_of(segment) {
            List::Kept => List::SummedUp,
            List::SummedUp => List::Dropped,
            List::Dropped => List::Kept,
        };
        if next == segment.list {
            self.moves.remove(&seq);
        } else {
            self.moves.insert(seq, next);
        }
        self.is_outdated = matches!(self.preview.draft, Draft::Writing | Draft::Written);
        self.arrange();
    }

    fn edit(&mut self) {
        if self.is_writing() {
            return;
        }
        let mut field = TextArea::from(self.body.lines());
        field.set_cursor_line_style(ratatui::style::Style::default());
        field.set_cursor_render_mode(CursorRenderMode::Hidden);
        field.set_wrap_mode(WrapMode::WordOrGlyph);
        self.field = Some(field);
        self.pane = Pane::Summary;
    }

    fn stop_editing(&mut self) {
        let Some(field) = self.field.take() else { return };
        let text = field.lines().join("\n");
        if text.trim() != self.body.trim() {
            self.body = text;
            self.is_edited = true;
        }
        self.page = Page::default();
    }

    fn step(&mut self, by: isize) {
        let to = self.lists.place(self.chosen).saturating_add_signed(by).min(self.lists.len().saturating_sub(1));
        self.chosen = self.lists.segment(to).unwrap_or(0);
    }
}

impl View for CompactionView {
    fn title(&self) -> &'static str {
        "Compact"
    }

    fn scopes(&self) -> &'static [Scope] {
        &[Scope::Compaction, Scope::Overlay]
    }

    fn notify(&mut self, notification: Notification<'_>) {
        match notification {
            Notification::SummaryDelta(text) if self.preview.draft == Draft::Writing => {
                self.written.push_str(text);
                self.page.forget();
            }
            _ => {}
        }
    }

    fn is_typing(&self) -> bool {
        self.field.is_some()
    }

    /// Enter applies it.
    fn is_guarded(&self) -> bool {
        self.purpose == Purpose::Decide
    }

    /// Everything that is typed belongs to the field; Esc leaves it.
    fn key(&mut self, key: KeyEvent) -> Option<Outcome> {
        let field = self.field.as_mut()?;
        let held = key.modifiers;
        let control = held == KeyModifiers::CONTROL;
        match key.code {
            KeyCode::Esc => self.stop_editing(),
            KeyCode::Enter => field.insert_newline(),
            KeyCode::Char(c) if held.is_typing() => field.insert_char(c),
            KeyCode::Char('z' | '7' | '_' | '-') if control => drop(field.undo()),
            KeyCode::Char('w') if control => drop(field.delete_word()),
            KeyCode::Char('k') if control => drop(field.delete_line_by_end()),
            KeyCode::Char('u') if control => drop(field.delete_line_by_head()),
            KeyCode::Char('a') if control => field.move_cursor(CursorMove::Head),
            KeyCode::Char('e') if control => field.move_cursor(CursorMove::End),
            KeyCode::Backspace if control || held == KeyModifiers::ALT => drop(field.delete_word()),
            KeyCode::Backspace => drop(field.delete_char()),
            KeyCode::Delete => drop(field.delete_next_char()),
            KeyCode::Left if control => field.move_cursor(CursorMove::WordBack),
            KeyCode::Right if control => field.move_cursor(CursorMove::WordForward),
            KeyCode::Left => field.move_cursor(CursorMove::Back),
            KeyCode::Right => field.move_cursor(CursorMove::Forward),
            KeyCode::Up => field.move_cursor(CursorMove::Up),
            KeyCode::Down => field.move_cursor(CursorMove::Down),
            KeyCode::Home if control => field.move_cursor(CursorMove::Top),
            KeyCode::End if control => field.move_cursor(CursorMove::Bottom),
            KeyCode::Home => field.move_cursor(CursorMove::Head),
            KeyCode::End => field.move_cursor(CursorMove::End),
            _ => {}
        }
        Some(Outcome::Stay)
    }

    fn paste(&mut self, text: &str) {
        if let Some(field) = &mut self.field {
            field.insert_str(text);
        }
    }

    fn act(&mut self, action: LayerAction) -> Outcome {
        let decides = self.purpose == Purpose::Decide;
        self.was_pressed = false;
        match action {
            LayerAction::Choose if decides => return self.apply(),
            LayerAction::Choose => return Outcome::Close,
            // The model stops, and pixir's summary is shown; the next Esc closes.
            LayerAction::CloseOverlay if self.is_writing() => return Outcome::send(Input::Interrupt),
            LayerAction::CloseOverlay => return Outcome::Close,
            LayerAction::MoveSegment if decides => self.move_chosen(),
            LayerAction::EditSummary if decides => self.edit(),
            LayerAction::RewriteSummary if decides && !self.is_writing() => {
                self.is_edited = false;
                let options = CompactOptions { draft: true, ..self.options() };
                return Outcome::send(self.input(true, options));
            }
            LayerAction::SwitchPane => {
                self.pane = if self.pane == Pane::Lists { Pane::Summary } else { Pane::Lists };
            }
            _ if self.pane == Pane::Summary => self.page.act(action),
            LayerAction::OverlayUp => self.step(-1),
            LayerAction::OverlayDown => self.step(1),
            LayerAction::OverlayPageUp => self.step(-10),
            LayerAction::OverlayPageDown => self.step(10),
            LayerAction::OverlayStart => self.step(isize::MIN),
            LayerAction::OverlayEnd => self.step(isize::MAX),
            _ => {}
        }
        Outcome::Stay
    }

    /// A click chooses an entry; a second one moves it to the next list, as Space does. It never applies anything.
    fn press(&mut self, at: Position) -> Press {
        if self.summary_area.contains(at) && self.field.is_none() {
            self.pane = Pane::Summary;
        }
        let Some(segment) = self.rows.row_at(at).filter(|_| self.field.is_none()) else { return Press::Nowhere };
        if (self.pane, self.chosen) == (Pane::Lists, segment) && self.was_pressed {
            self.was_pressed = false;
            return Press::Did(Box::new(self.act(LayerAction::MoveSegment)));
        }
        (self.pane, self.chosen, self.was_pressed) = (Pane::Lists, segment, true);
        Press::Nowhere
    }

    fn scroll(&mut self, by: isize) {
        match (&mut self.field, self.pane) {
            (Some(field), _) => field.scroll((i16::try_from(by).unwrap_or(0), 0)),
            (None, Pane::Lists) => self.step(by),
            (None, Pane::Summary) => self.page.scroll(by),
        }
    }

    fn wheel(&mut self, at: Position, by: isize) -> Outcome {
        match (&mut self.field, self.lists_area.contains(at), self.summary_area.contains(at)) {
            (None, true, _) => self.step(by),
            (None, _, true) => self.page.scroll(by),
            (_, _, _) => self.scroll(by),
        }
        Outcome::Stay
    }

    /// The user closed it while the model was writing: nothing waits for the summary any more.
    fn leave(self) -> Option<Request> {
        self.is_writing().then(|| Request::Send(vec![Input::Interrupt]))
    }

    fn draw(&mut self, canvas: &mut Canvas, area: Rect, paint: Paint<'_>) {
        self.paint(canvas, area, paint);
    }
}
