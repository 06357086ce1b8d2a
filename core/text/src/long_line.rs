//! Long lines, cut after a number of characters as they arrive.

use unicode_segmentation::GraphemeCursor;

/// The longest part of a line that a model reads at once, characters.
pub const LONGEST: usize = 2_000;
/// How many characters around a cut decide whether it tears what a person sees as one.
const AROUND: usize = 16;

/// Counts the characters of the current line and says how much of it is kept.
#[derive(Debug)]
pub struct LongLine {
    most: usize,
    chars: usize,
    bytes: u64,
    left_out: u64,
    /// The last kept characters.
    last: String,
}

/// What is missing of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeftOut {
    /// How many characters.
    pub chars: u64,
    /// How many bytes of the line were kept.
    pub after: u64,
}

impl LeftOut {
    /// The mark at the end of what was kept.
    pub fn mark(self) -> String {
        format!("…[{} more characters]", self.chars)
    }
}

impl LongLine {
    /// Keeps so many characters of each line, and the rest of the last one if it is made of several.
    pub fn new(most: usize) -> LongLine {
        LongLine { most, chars: 0, bytes: 0, left_out: 0, last: String::new() }
    }

    /// Adds a piece of the current line; returns how many of its first bytes are kept.
    pub fn keep(&mut self, piece: &str) -> usize {
        if self.left_out > 0 {
            self.left_out += piece.chars().count() as u64;
            return 0;
        }
        let room = self.most.saturating_sub(self.chars);
        let mut end = if piece.len() <= room {
            piece.len()
        } else {
            piece.char_indices().nth(room).map_or(piece.len(), |(at, _)| at)
        };
        self.remember(&piece[..end]);
        self.chars += piece[..end].chars().count();
        for c in piece[end..].chars() {
            let joint = self.last.len();
            self.last.push(c);
            if GraphemeCursor::new(joint, self.last.len(), true).is_boundary(&self.last, 0) != Ok(false)
                || self.chars > 2 * self.most
            {
                self.last.pop();
                break;
            }
            self.chars += 1;
            end += c.len_utf8();
        }
        self.bytes += end as u64;
        self.left_out += piece[end..].chars().count() as u64;
        end
    }

    /// Adds text of which no line is too long, which is quickly seen; false if one may be, and then adds nothing.
    pub fn fits(&mut self, text: &str) -> bool {
        let (mut from, mut before) = (0, self.chars);
        for at in memchr::memchr2_iter(b'\n', b'\r', text.as_bytes()) {
            if before + (at - from) > self.most {
                return false;
            }
            (from, before) = (at + 1, 0);
        }
        if before + (text.len() - from) > self.most || self.left_out > 0 {
            return false;
        }
        if from > 0 {
            self.end();
        }
        self.keep(&text[from..]);
        true
    }

    fn remember(&mut self, kept: &str) {
        let from = kept.char_indices().rev().nth(AROUND - 1).map_or(0, |(at, _)| at);
        if from > 0 {
            self.last.clear();
        }
        self.last.push_str(&kept[from..]);
        if self.last.len() > 64 * AROUND {
            let keep = self.last.char_indices().rev().nth(AROUND - 1).map_or(0, |(at, _)| at);
            self.last.drain(..keep);
        }
    }

    /// Ends the line; returns what is missing of it.
    pub fn end(&mut self) -> Option<LeftOut> {
        let left_out = LeftOut { chars: self.left_out, after: self.bytes };
        (self.chars, self.bytes, self.left_out) = (0, 0, 0);
        self.last.clear();
        (left_out.chars > 0).then_some(left_out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_between_what_a_person_sees_as_one_however_it_arrives() {
        let family = "\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467}";
        let line = format!("ab{}", family.repeat(4));
        for size in 1..8 {
            let mut long = LongLine::new(4);
            let chars: Vec<char> = line.chars().collect();
            let mut kept = String::new();
            for piece in chars.chunks(size) {
                let piece: String = piece.iter().collect();
                let bytes = long.keep(&piece);
                kept.push_str(&piece[..bytes]);
            }
            assert_eq!(kept, format!("ab{family}"), "in pieces of {size}");
            let left_out = LeftOut { chars: 15, after: kept.len() as u64 };
            assert_eq!((long.end(), long.end()), (Some(left_out), None));
        }
        let mut long = LongLine::new(4);
        assert_eq!((long.keep("äöü"), long.keep("ß"), long.end()), (6, 2, None));
    }
}
