//! Keys of vim in the line, carried out.

use tui_textarea::CursorMove;

use super::Composer;
use super::vim::{Act, Mode, Vim};

impl Composer {
    pub(crate) fn with_vim(&mut self) {
        self.vim = Some(Vim::default());
    }

    /// What keys mean, where they may be commands.
    pub(crate) fn mode(&self) -> Option<Mode> {
        self.vim.as_ref().map(|vim| vim.mode)
    }

    /// Keys are commands from now on; true when Esc was for that.
    pub(crate) fn leave_insertion(&mut self) -> bool {
        let (text, at) = self.letters();
        let Some(to) = self.vim.as_mut().and_then(|vim| vim.escape(&text, at)) else { return false };
        self.area.cancel_selection();
        self.go_to(&text, to);
        true
    }

    /// A key as a command of vim. False when it is one of the draft's own.
    pub(crate) fn command(&mut self, c: char) -> bool {
        if c == '/' && self.is_empty() {
            // There is nothing to look through, and a command to begin.
            if let Some(vim) = &mut self.vim {
                vim.insert();
            }
            return false;
        }
        let (text, at) = self.letters();
        let Some(vim) = self.vim.as_mut().filter(|vim| vim.mode != Mode::Insert) else { return false };
        let act = vim.key(&text, at, c);
        let selected = if let Mode::Visual(from) = vim.mode { Some(from) } else { None };
        self.kills.pause();
        self.area.cancel_selection();
        match act {
            Act::Nothing => {}
            Act::Go(to) => self.go_to(&text, to),
            Act::Put { range, text: put, caret } => {
                let range = self.with_whole_atoms(range);
                let mut after = text[..range.start].to_vec();
                after.extend(put.chars().chain(text[range.end..].iter().copied()));
                if range.is_empty() {
                    self.go_to(&text, range.start);
                } else {
                    self.go_to(&text, range.start);
                    self.area.start_selection();
                    self.go_to(&text, range.end);
                    self.area.delete_char();
                }
                self.area.insert_str(put);
                self.go_to(&after, caret.min(after.len()));
                self.edited();
            }
            Act::Undo => drop(self.undo()),
            Act::Redo => drop(self.redo()),
            Act::Older => self.older(),
            Act::Newer => self.newer(),
        }
        if let Some(from) = selected {
            let to = self.letters().1;
            self.go_to(&text, from);
            self.area.start_selection();
            self.go_to(&text, to);
        }
        true
    }

    /// A marker goes as one, and nothing is put into it.
    fn with_whole_atoms(&self, range: std::ops::Range<usize>) -> std::ops::Range<usize> {
        let before = |row: usize| self.area.lines()[..row].iter().map(|line| line.chars().count() + 1).sum::<usize>();
        self.atoms().into_iter().fold(range, |range, (row, columns)| {
            let atom = before(row) + columns.start..before(row) + columns.end;
            if range.is_empty() && atom.start < range.start && range.start < atom.end {
                atom.end..atom.end
            } else if range.start < atom.end && atom.start < range.end {
                range.start.min(atom.start)..range.end.max(atom.end)
            } else {
                range
            }
        })
    }

    /// What is shown, and where the caret is in it, in characters.
    fn letters(&self) -> (Vec<char>, usize) {
        let (row, column) = self.area.cursor();
        let above: usize = self.area.lines()[..row].iter().map(|line| line.chars().count() + 1).sum();
        (self.shown().chars().collect(), above + column)
    }

    fn go_to(&mut self, text: &[char], at: usize) {
        let before = &text[..at.min(text.len())];
        let row = before.iter().filter(|c| **c == '\n').count();
        let column = before.iter().rev().take_while(|c| **c != '\n').count();
        let number = |n: usize| u16::try_from(n).unwrap_or(u16::MAX);
        self.area.move_cursor(CursorMove::Jump(number(row), number(column)));
    }
}
