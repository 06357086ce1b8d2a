//! Applies vim commands to the draft. A grapheme counts as one character.

use unicode_segmentation::UnicodeSegmentation as _;

use super::Composer;
use super::vim::{Act, Mode, Vim};

impl Composer {
    pub(crate) fn with_vim(&mut self) {
        self.vim = Some(Vim::default());
    }

    /// The usual keys again.
    pub(crate) fn without_vim(&mut self) {
        self.vim = None;
    }

    /// The vim mode. None if vim keys are off.
    pub(crate) fn mode(&self) -> Option<Mode> {
        self.vim.as_ref().map(|vim| vim.mode)
    }

    /// Leaves insert mode. True if Esc was needed for that.
    pub(crate) fn leave_insertion(&mut self) -> bool {
        let letters = self.letters();
        let escape = |vim: &mut Vim| vim.escape(&letters.text, letters.at);
        let Some(to) = self.vim.as_mut().and_then(escape) else { return false };
        self.area.cancel_selection();
        self.go_to(&letters, to);
        true
    }

    /// Handles a character as a vim command. False if it is text.
    pub(crate) fn command(&mut self, c: char) -> bool {
        if self.mode().is_none_or(|mode| mode == Mode::Insert) {
            return false;
        }
        if c == '/' && self.is_empty() {
            // An empty draft has nothing to search, so `/` begins a slash command.
            if let Some(vim) = &mut self.vim {
                vim.insert();
            }
            return false;
        }
        let letters = self.letters();
        let Some(vim) = &mut self.vim else { return false };
        let act = vim.key(&letters.text, letters.at, c);
        let selected = if let Mode::Visual(from) = vim.mode { Some(from) } else { None };
        self.kills.pause();
        self.area.cancel_selection();
        match act {
            Act::Nothing => {}
            Act::Go(to) => self.go_to(&letters, to),
            Act::Put { range, text: put, caret } => {
                self.go_to(&letters, range.start);
                if !range.is_empty() {
                    self.area.start_selection();
                    self.go_to(&letters, range.end);
                }
                let put = self.wholes.written(&put);
                self.replace_selection(&put);
                if self.mode() == Some(Mode::Insert) {
                    // Text that the user types next belongs to the same change.
                    self.pass_over();
                }
                self.edited();
                let after = self.letters();
                self.go_to(&after, caret);
            }
            Act::Undo => {
                self.undo();
                self.go_to_change(&letters);
            }
            Act::Redo => {
                self.redo();
                self.go_to_change(&letters);
            }
            Act::Older => self.older(),
            Act::Newer => self.newer(),
        }
        if let Some(from) = selected {
            let after = self.letters();
            self.go_to(&after, from);
            self.area.start_selection();
            self.go_to(&after, after.at);
        }
        true
    }

    /// Moves the caret to the first difference from `before`.
    fn go_to_change(&mut self, before: &Letters) {
        let after = self.letters();
        let same = before.text.iter().zip(&after.text).take_while(|(a, b)| a == b).count();
        self.go_to(&after, same.min(after.text.len().saturating_sub(1)));
    }

    /// The draft as characters for vim.
    fn letters(&mut self) -> Letters {
        let markers = self.atoms();
        let (mut text, mut begins, mut count) = (Vec::new(), Vec::new(), 0);
        for (row, line) in self.area.lines().iter().enumerate() {
            if row > 0 {
                text.push('\n');
                begins.push(count);
                count += 1;
            }
            let (mut rest, mut column) = (line.as_str(), 0);
            while !rest.is_empty() {
                let marker = markers.iter().find(|(of, columns)| *of == row && columns.start == column);
                let wide = match marker {
                    Some((_, columns)) => columns.len(),
                    None => rest.graphemes(true).next().map_or(1, |one| one.chars().count()),
                };
                let end = rest.char_indices().nth(wide).map_or(rest.len(), |(at, _)| at);
                let (one, after) = rest.split_at(end);
                match self.wholes.letter(one) {
                    Some(letter) => {
                        text.push(letter);
                        begins.push(count);
                    }
                    None => {
                        text.extend(one.chars());
                        begins.extend(count..count + wide);
                    }
                }
                (rest, column, count) = (after, column + wide, count + wide);
            }
        }
        begins.push(count);
        let (row, column) = self.area.cursor();
        let above: usize = self.area.lines()[..row].iter().map(|line| line.chars().count() + 1).sum();
        let at = begins.partition_point(|begin| *begin <= above + column).saturating_sub(1);
        Letters { text, begins, at }
    }

    fn go_to(&mut self, letters: &Letters, at: usize) {
        let at = at.min(letters.text.len());
        let before = &letters.text[..at];
        let row = before.iter().filter(|c| **c == '\n').count();
        let line = before.iter().rposition(|c| *c == '\n').map_or(0, |end| end + 1);
        let column = letters.begins[at] - letters.begins[line];
        self.jump(row, column);
    }
}

/// A draft in which each grapheme, and each marker, is one character.
struct Letters {
    text: Vec<char>,
    /// The begin of each character, and the end of the last one, in characters of the draft.
    begins: Vec<usize>,
    /// The position of the caret.
    at: usize,
}

/// Private-use code points that stand for graphemes of several code points.
#[derive(Debug, Default)]
pub(super) struct Wholes(Vec<String>);

impl Wholes {
    const FIRST: u32 = 0xf_0000;
    /// The most different graphemes.
    const MOST: u32 = 4_000;

    /// The character that stands for a grapheme. None if there are too many.
    fn letter(&mut self, one: &str) -> Option<char> {
        let mut chars = one.chars();
        let first = chars.next()?;
        if chars.next().is_none() && !is_whole(first) {
            return Some(first);
        }
        let known = self.0.iter().position(|known| known == one);
        let at = known.unwrap_or(self.0.len());
        let letter =
            u32::try_from(at).ok().filter(|at| *at < Self::MOST).and_then(|at| char::from_u32(Self::FIRST + at))?;
        if known.is_none() {
            self.0.push(one.to_owned());
        }
        Some(letter)
    }

    /// The text with the graphemes in place of their characters.
    fn written(&self, text: &str) -> String {
        let mut written = String::with_capacity(text.len());
        for c in text.chars() {
            let at = u32::from(c).checked_sub(Self::FIRST).and_then(|at| self.0.get(usize::try_from(at).ok()?));
            match at {
                Some(whole) => written.push_str(whole),
                None => written.push(c),
            }
        }
        written
    }
}

/// The character stands for a grapheme with marks, or for a whole word.
pub(super) fn is_whole(c: char) -> bool {
    (Wholes::FIRST..Wholes::FIRST + Wholes::MOST).contains(&u32::from(c))
}
