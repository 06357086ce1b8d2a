//! The composer: a text area that grows, with folded pastes and images, completions, and earlier prompts.

use std::collections::VecDeque;

use crate::terminal::key::{KeyCode, KeyEvent, KeyModifiers};
use pixir_core::event::Attachment;
use ratatui::style::Style;
use tui_textarea::{AtomicRange, CursorMove, CursorRenderMode, TextArea, WrapMode};

use unicode_segmentation::UnicodeSegmentation as _;

use crate::input::argument::{Argument, Candidate};
use crate::input::offer::Offer;

mod atoms; // pastes and images, which the draft shows as markers
mod command; // vim commands, applied to the draft
mod completion; // what can complete the word at the caret
mod kill; // the kill ring
pub(crate) mod mention; // files after an `@`
pub(crate) mod past; // earlier prompts of this and other Sessions
mod shown; // the draft as drawn, with its caret
mod vim; // the commands of vim keys

use atoms::places;
pub(crate) use atoms::{Images, Pastes, dropped_image, is_image_name};
use command::Wholes;
pub(crate) use completion::Completion;
use kill::{Cut, KillRing};
use mention::Mention;
pub(crate) use past::{Past, PastSearch};
use shown::MAX_ROWS;
pub(crate) use vim::Mode;
use vim::Vim;

/// The most replacements whose two steps undo as one.
const MAX_BETWEEN: usize = 50;

/// How the draft is wrapped on the screen.
const WRAPS: WrapMode = WrapMode::WordOrGlyph;

/// The user's draft.
pub(crate) struct Composer {
    area: TextArea<'static>,
    pub(crate) pastes: Pastes,
    pub(crate) images: Images,
    kills: KillRing,
    /// The vim state, if vim keys are on.
    vim: Option<Vim>,
    /// Texts between the two steps of one replacement. Undo passes over them.
    between: VecDeque<String>,
    /// The last key typed a letter, so a mention that ends at the caret may go on.
    is_spelling: bool,
    /// Graphemes that vim takes for one character.
    wholes: Wholes,
    pub(crate) past: Past,
    /// A search in earlier prompts; it has the keys.
    pub(crate) past_search: Option<PastSearch>,
    /// The completion that the user has moved to.
    pub(crate) chosen: Option<usize>,
    /// The user has closed the list of completions for this text.
    dismissed: Option<String>,
    /// The files that match the letters after an `@`.
    pub(crate) files: Option<(String, Vec<String>)>,
    /// What can complete the argument of a command, as last loaded.
    pub(crate) candidates: Option<(Argument, Vec<Candidate>)>,
    /// Templates and skills by name; `None` until they are read.
    pub(crate) offers: Option<Vec<Offer>>,
}

impl std::fmt::Debug for Composer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Composer").field("text", &self.text()).finish_non_exhaustive()
    }
}

impl Default for Composer {
    fn default() -> Composer {
        let mut area = TextArea::default();
        area.set_cursor_line_style(Style::default());
        area.set_cursor_render_mode(CursorRenderMode::Hidden);
        area.set_wrap_mode(WRAPS);
        area.set_min_rows(1);
        area.set_max_rows(MAX_ROWS);
        area.set_max_histories(1_000);
        area.set_undo_coalescing(true);
        Composer {
            area,
            pastes: Pastes::default(),
            images: Images::default(),
            kills: KillRing::default(),
            vim: None,
            is_spelling: false,
            wholes: Wholes::default(),
            between: VecDeque::new(),
            past: Past::default(),
            past_search: None,
            chosen: None,
            dismissed: None,
            files: None,
            candidates: None,
            offers: None,
        }
    }
}

impl Composer {
    /// The draft as the user sees it, with markers for pastes.
    pub(crate) fn shown(&self) -> String {
        self.area.lines().join("\n")
    }

    /// The draft as it is sent.
    pub(crate) fn text(&self) -> String {
        self.pastes.expand(&self.shown())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.area.is_empty()
    }

    /// The draft is a shell command; true if the model sees its output.
    pub(crate) fn runs(&self) -> Option<bool> {
        let first = self.area.lines().first()?;
        first.starts_with('!').then(|| !first.starts_with("!!"))
    }

    /// Replaces the draft, with the caret at its end. Undo brings the old one back. Pastes that it contains stay
    /// folded.
    pub(crate) fn set(&mut self, text: &str) {
        self.kills.pause();
        // Replacing a selection of everything keeps the undo history, which `set_lines` would clear.
        self.area.cancel_selection();
        for to in [CursorMove::Top, CursorMove::Head] {
            self.area.move_cursor(to);
        }
        self.area.start_selection();
        for to in [CursorMove::Bottom, CursorMove::End] {
            self.area.move_cursor(to);
        }
        let text = self.pastes.refold(&clean(text));
        self.replace_selection(&text);
        self.chosen = None;
        self.atomise();
    }

    /// Takes the draft to send it. It cannot be undone, but Up brings it back.
    pub(crate) fn take(&mut self) -> String {
        let text = self.text();
        self.past.remember(&text);
        self.area.set_lines(vec![String::new()], (0, 0));
        self.pastes.trim();
        self.chosen = None;
        if let Some(vim) = &mut self.vim {
            vim.insert();
        }
        text
    }

    /// Adds a text to the earlier prompts.
    pub(crate) fn remember(&mut self, text: &str) {
        self.past.remember(text);
    }

    /// Inserts pasted text. A large paste is folded into a marker.
    pub(crate) fn insert(&mut self, text: &str) {
        self.kills.pause();
        let text = clean(text);
        match self.pastes.fold(&text) {
            Some(marker) => self.area.insert_str(marker),
            None => self.area.insert_str(&text),
        };
        self.edited();
    }

    /// Attaches an image, with a marker in the text.
    pub(crate) fn insert_image(&mut self, image: Attachment) {
        self.kills.pause();
        let marker = self.images.mark(image);
        self.area.insert_str(format!("{marker} "));
        self.edited();
    }

    /// Handles a key that edits the draft or moves the caret.
    pub(crate) fn key(&mut self, key: KeyEvent) {
        let held = key.modifiers;
        let plain = held.is_typing();
        let alt = held == KeyModifiers::ALT;
        let ctrl = held == KeyModifiers::CONTROL;
        let shift = held.contains(KeyModifiers::SHIFT);
        let was_spelling = self.is_spelling;
        self.is_spelling = matches!(key.code, KeyCode::Char(_)) && plain;
        // A mention is whole once the caret leaves it; the key that mends its last letter still reaches it.
        if was_spelling && !self.is_spelling && !matches!(key.code, KeyCode::Backspace | KeyCode::Delete) {
            self.atomise();
        }
        self.kills.pause();
        match key.code {
            KeyCode::Char(c) if plain => self.unwrapped().insert_char(c),
            KeyCode::Tab if plain => drop(self.unwrapped().insert_str("    ")),
            KeyCode::Backspace if alt || ctrl => return self.kill_word_back(),
            KeyCode::Backspace => self.delete(false),
            KeyCode::Delete if alt || ctrl => return self.kill_word(),
            KeyCode::Delete => self.delete(true),
            KeyCode::Left if alt || ctrl => return self.move_caret(CursorMove::WordBack, shift),
            KeyCode::Right if alt || ctrl => return self.move_caret(CursorMove::WordForward, shift),
            KeyCode::Left => return self.step(false, shift),
            KeyCode::Right => return self.step(true, shift),
            KeyCode::Up => return self.move_caret(CursorMove::Up, shift),
            KeyCode::Down => return self.move_caret(CursorMove::Down, shift),
            KeyCode::Home => return self.move_caret(CursorMove::Head, shift),
            KeyCode::End => return self.move_caret(CursorMove::End, shift),
            _ => return,
        }
        self.edited();
    }

    /// The text area for an edit. It lays the whole draft out again after each edit, and without wrapping this is cheap: of a
    /// burst of keys only the frame needs the wrapped rows.
    fn unwrapped(&mut self) -> &mut TextArea<'static> {
        self.wrap(WrapMode::None)
    }

    /// The text area with its rows as the screen shows them, for drawing and for moves between rows.
    fn wrapped(&mut self) -> &mut TextArea<'static> {
        self.wrap(WRAPS)
    }

    fn wrap(&mut self, mode: WrapMode) -> &mut TextArea<'static> {
        // Setting the mode lays the draft out, even where nothing changes.
        if self.area.wrap_mode() != mode {
            self.area.set_wrap_mode(mode);
        }
        &mut self.area
    }

    /// Moves the caret, and ends a selection.
    pub(crate) fn go(&mut self, to: CursorMove) {
        self.move_caret(to, false);
    }

    /// Moves the caret. With Shift it selects the text that it passes.
    fn move_caret(&mut self, to: CursorMove, selecting: bool) {
        self.select(selecting);
        if matches!(to, CursorMove::Up | CursorMove::Down) {
            self.wrapped();
        }
        self.area.move_cursor(to);
        // The column may be inside of a grapheme of this row.
        let (row, column) = self.area.cursor();
        let line = &self.area.lines()[row];
        if matches!(to, CursorMove::Up | CursorMove::Down) && !line.is_ascii() {
            let ends = line.graphemes(true).scan(0, |end, one| {
                *end += one.chars().count();
                Some(*end)
            });
            let start = ends.take_while(|end| *end <= column).last().unwrap_or(0);
            if start < column {
                self.jump(row, start);
            }
        }
    }

    fn select(&mut self, selecting: bool) {
        self.kills.pause();
        match (selecting, self.area.is_selecting()) {
            (true, false) => self.area.start_selection(),
            (false, true) => self.area.cancel_selection(),
            _ => {}
        }
        self.chosen = None;
    }

    fn edited(&mut self) {
        self.chosen = None;
        self.past.edited();
        self.atomise();
        if self.dismissed.is_some() && self.dismissed.as_deref() != Some(self.shown().as_str()) {
            self.dismissed = None;
        }
    }

    fn atoms(&self) -> Vec<(usize, std::ops::Range<usize>)> {
        let mut atoms = places(self.pastes.markers().chain(self.images.markers()), self.area.lines());
        let mentioned = self.area.lines().iter().enumerate().filter(|(_, line)| line.contains('@'));
        for (row, columns) in
            mentioned.flat_map(|(row, line)| mention::images_in(line).into_iter().map(move |it| (row, it)))
        {
            if self.is_spelling && self.area.cursor() == (row, columns.end) {
                continue;
            }
            let overlaps = |(of, other): &(usize, std::ops::Range<usize>)| {
                *of == row && other.start < columns.end && columns.start < other.end
            };
            if !atoms.iter().any(overlaps) {
                atoms.push((row, columns));
            }
        }
        atoms.sort_by_key(|(row, columns)| (*row, columns.start));
        atoms
    }

    /// The caret passes over a marker, and deletes it, as one character.
    fn atomise(&mut self) {
        let ranges: Vec<AtomicRange> = self
            .atoms()
            .into_iter()
            .map(|(row, columns)| AtomicRange { row, start_col: columns.start, end_col: columns.end })
            .collect();
        // Markers cannot overlap. If they did, the draft would work without this.
        let _ = self.area.try_set_atomic_ranges(ranges);
    }

    /// The number of characters in the grapheme before or after the caret: families, flags, letters with marks.
    fn composed(&self, behind: bool) -> usize {
        let (row, column) = self.area.cursor();
        let line = &self.area.lines()[row];
        // The text area treats a marker as one character already.
        let in_marker = |at: &std::ops::Range<usize>| {
            if behind { at.contains(&column) } else { at.start < column && column <= at.end }
        };
        if line.is_ascii() || self.atoms().iter().any(|(of, columns)| *of == row && in_marker(columns)) {
            return 1;
        }
        let caret = line.char_indices().nth(column).map_or(line.len(), |(at, _)| at);
        let one = if behind { line[caret..].graphemes(true).next() } else { line[..caret].graphemes(true).next_back() };
        one.map_or(1, |one| one.chars().count())
    }

    /// Moves the caret over one grapheme.
    fn step(&mut self, behind: bool, selecting: bool) {
        let count = self.composed(behind);
        if count == 1 {
            return self.move_caret(if behind { CursorMove::Forward } else { CursorMove::Back }, selecting);
        }
        // Parts of a grapheme may have no width, so the caret jumps.
        let (row, column) = self.area.cursor();
        self.select(selecting);
        self.jump(row, if behind { column + count } else { column - count });
    }

    /// Moves the caret to a row and a column of the draft, regardless of wrapping.
    fn jump(&mut self, row: usize, column: usize) {
        let most = usize::from(u16::MAX);
        let number = |n: usize| u16::try_from(n).unwrap_or(u16::MAX);
        self.area.move_cursor(CursorMove::Jump(number(row), number(column)));
        // A jump reaches column 65535 at most. The caret walks the rest of a longer line.
        (most..column).for_each(|_| self.area.move_cursor(CursorMove::Forward));
    }

    fn delete(&mut self, behind: bool) {
        if !self.area.is_selecting() && self.composed(behind) > 1 {
            self.step(behind, true);
        }
        let area = self.unwrapped();
        let _ = if behind { area.delete_next_char() } else { area.delete_char() };
    }

    // ─── Cutting, putting back, undoing ───

    pub(crate) fn undo(&mut self) -> bool {
        self.travel(TextArea::undo)
    }

    pub(crate) fn redo(&mut self) -> bool {
        self.travel(TextArea::redo)
    }

    /// Undoes or redoes up to the next text that the user has seen.
    fn travel(&mut self, step: impl Fn(&mut TextArea<'static>) -> bool) -> bool {
        self.kills.pause();
        let mut done = false;
        while step(&mut self.area) {
            done = true;
            if !self.between.contains(&self.shown()) {
                break;
            }
        }
        self.edited();
        done
    }

    /// Replaces the selection. The text area records this as two steps, deleting and inserting; undo has to pass over
    /// the text between them, which the user has never seen.
    fn replace_selection(&mut self, text: &str) {
        if self.area.is_selecting() {
            let before = self.shown();
            self.area.delete_char();
            if !text.is_empty() && before != self.shown() {
                self.pass_over();
            }
        }
        self.area.insert_str(text);
    }

    /// Notes the current text as one that undo passes over.
    fn pass_over(&mut self) {
        self.between.push_back(self.shown());
        if self.between.len() > MAX_BETWEEN {
            self.between.pop_front();
        }
    }

    /// The caret, in bytes of the shown text.
    fn caret(&self) -> usize {
        let (row, column) = self.area.cursor();
        let lines = self.area.lines();
        let above: usize = lines[..row].iter().map(|line| line.len() + 1).sum();
        above + lines[row].chars().take(column).map(char::len_utf8).sum::<usize>()
    }

    /// Cuts what an edit removes, into the kill ring.
    fn kill(&mut self, side: Cut, edit: impl FnOnce(&mut TextArea<'static>) -> bool) {
        let before = self.shown();
        let caret = self.caret();
        edit(&mut self.area);
        let gone = before.len() - self.shown().len();
        // A selection can be on either side of the caret.
        let from = self.caret().min(caret);
        let gone = before.get(from..from + gone).unwrap_or_default().to_owned();
        self.kills.add(&gone, side);
        self.edited();
    }

    pub(crate) fn kill_to_end(&mut self) {
        self.kill(Cut::Forward, TextArea::delete_line_by_end);
    }

    pub(crate) fn kill_to_start(&mut self) {
        self.kill(Cut::Backward, TextArea::delete_line_by_head);
    }

    pub(crate) fn kill_word(&mut self) {
        self.kill(Cut::Forward, TextArea::delete_next_word);
    }

    pub(crate) fn kill_word_back(&mut self) {
        self.kill(Cut::Backward, TextArea::delete_word);
    }

    /// Inserts the last cut.
    pub(crate) fn yank(&mut self) {
        if let Some(text) = self.kills.yank() {
            self.area.insert_str(text);
            self.edited();
        }
    }

    /// Replaces the inserted cut by the one before it.
    pub(crate) fn yank_pop(&mut self) {
        if let Some((last, next)) = self.kills.pop().map(|(last, next)| (last, next.to_owned())) {
            // A marker counts as one character, so the text is measured after each deletion.
            let whole = self.shown().len();
            let wanted = whole.saturating_sub(last.len());
            while self.shown().len() > wanted && self.area.delete_char() {}
            self.area.insert_str(next);
            self.edited();
        }
    }

    pub(crate) fn newline(&mut self) {
        self.kills.pause();
        self.unwrapped().insert_newline();
        self.edited();
    }

    /// Replaces a backslash at the end of the line by a line end.
    pub(crate) fn continue_line(&mut self) -> bool {
        let (row, column) = self.area.cursor();
        let line = &self.area.lines()[row];
        if column == line.chars().count() && line.ends_with('\\') {
            self.area.delete_char();
            self.area.insert_newline();
            self.edited();
            return true;
        }
        false
    }

    // ─── Earlier prompts ───

    pub(crate) fn on_first_line(&self) -> bool {
        self.area.cursor().0 == 0
    }

    pub(crate) fn on_last_line(&self) -> bool {
        self.area.cursor().0 + 1 == self.area.lines().len()
    }

    /// Shows the previous prompt.
    pub(crate) fn older(&mut self) {
        let draft = self.text();
        if let Some(text) = self.past.older(&draft) {
            self.set(&text);
            self.area.move_cursor(CursorMove::Top);
            self.area.move_cursor(CursorMove::End);
        }
    }

    /// Shows the next prompt; after the last one, the draft.
    pub(crate) fn newer(&mut self) {
        if let Some(text) = self.past.newer() {
            self.set(&text);
        }
    }

    // ─── Completing ───

    /// The mention at the caret: where it begins, and its letters.
    pub(crate) fn mention(&self) -> Option<Mention> {
        let (row, column) = self.area.cursor();
        Mention::at(&self.area.lines()[row], column)
    }

    /// Replaces the letters after the `@` by a path.
    pub(crate) fn accept_file(&mut self, path: &str) {
        let Some(mention) = self.mention() else { return };
        for _ in mention.letters.chars() {
            self.area.delete_char();
        }
        // The user goes on typing after a folder or a server, but not after a file.
        let quoted = if path.contains(' ') { format!("\"{path}\"") } else { path.to_owned() };
        let goes_on = path.ends_with(['/', ':']);
        self.area.insert_str(if goes_on { quoted } else { format!("{quoted} ") });
        self.edited();
    }

    pub(crate) fn dismiss(&mut self) {
        self.dismissed = Some(self.shown());
    }
}

/// Removes what a terminal would act on; normalises line ends, and replaces tabs by blanks.
fn clean(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n").replace('\t', "    ");
    if text.chars().all(|c| !c.is_control() || c == '\n') {
        return text;
    }
    crate::render::text::plain(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ctrl(c: char) -> KeyEvent {
        KeyEvent::press(KeyCode::Char(c), KeyModifiers::CONTROL)
    }

    #[test]
    fn what_was_cut_can_be_put_back_and_what_was_done_undone() {
        let mut composer = Composer::default();
        composer.insert("one two three");
        composer.kill_word_back();
        composer.kill_word_back();
        assert_eq!(composer.text(), "one ");
        composer.yank();
        assert_eq!(composer.text(), "one two three", "what is cut in one go is put back in one go");
        composer.key(KeyEvent::press(KeyCode::Char('!'), KeyModifiers::NONE));
        composer.kill_to_start();
        composer.insert("x ");
        composer.yank();
        composer.yank_pop();
        assert_eq!(composer.text(), "x two three");
        while composer.undo() {}
        assert_eq!(composer.text(), "");
        while composer.redo() {}
        assert_eq!(composer.text(), "x two three");
        composer.key(ctrl('q'));
        assert_eq!(composer.text(), "x two three", "a key that means nothing changes nothing");
    }

    #[test]
    fn a_large_paste_is_one_thing_until_it_is_sent() {
        let mut composer = Composer::default();
        let long: String = (0..214).map(|n| format!("line {n}\n")).collect();
        composer.insert("look: ");
        composer.insert(&long);
        assert_eq!(composer.shown(), "look: [paste 1: 214 lines]");
        composer.insert(" and ");
        composer.insert(&"x".repeat(5_000));
        assert_eq!(composer.shown(), "look: [paste 1: 214 lines] and [paste 2: 5000 characters]");
        assert_eq!(composer.text(), format!("look: {long} and {}", "x".repeat(5_000)));
        composer.key(KeyEvent::press(KeyCode::Backspace, KeyModifiers::NONE));
        assert_eq!(composer.shown(), "look: [paste 1: 214 lines] and ", "it goes as one");
        composer.undo();
        assert!(composer.shown().ends_with("characters]"));
        for _ in 0..2 {
            composer.key(KeyEvent::press(KeyCode::Left, KeyModifiers::NONE));
        }
        composer.key(KeyEvent::press(KeyCode::Char('!'), KeyModifiers::NONE));
        assert_eq!(
            composer.shown(),
            "look: [paste 1: 214 lines] and! [paste 2: 5000 characters]",
            "and is passed as one"
        );
        let sent_before = composer.shown();
        composer.older();
        composer.set("something else");
        assert!(composer.undo(), "what was replaced can be brought back");
        assert_eq!(composer.shown(), sent_before);
        let text = composer.text();
        composer.set(&format!("{text}?"));
        assert_eq!(composer.shown(), format!("{sent_before}?"), "a paste that comes back comes back folded");
        assert!(composer.take().contains("line 213"));
        assert!(composer.is_empty());
        composer.insert("two\r\nlines\x1b[31m");
        assert_eq!(composer.text(), "two\nlines");
        composer.take();
        composer.set("a draft");
        composer.older();
        assert_eq!(composer.take(), "two\nlines");
        composer.older();
        composer.older();
        assert_eq!(composer.text(), "a draft", "the draft that was left for what was sent again is not lost");
        composer.take();
        composer.yank();
        assert!(composer.is_empty(), "nothing was cut");
        composer.insert(&"y".repeat(2_000));
        composer.kill_to_start();
        composer.insert(&"z".repeat(3_000));
        assert_eq!(composer.take(), "z".repeat(3_000));
        composer.yank();
        composer.insert(&"x".repeat(4_000));
        assert_eq!(composer.shown(), "[paste 3: 2000 characters][paste 5: 4000 characters]");
        assert_eq!(composer.take(), "y".repeat(2_000) + &"x".repeat(4_000), "what was cut keeps what was pasted");
        composer.older();
        composer.older();
        assert_eq!(composer.shown(), "[paste 4: 3000 characters]", "what was sent comes back as it was written");
    }
}
