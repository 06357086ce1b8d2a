//! Places in a text that motions and objects name: lines, words, quotes, brackets. All positions are in characters.

use std::ops::Range;

use crate::composer::command::is_whole;

/// The line around a position, without its end.
pub(super) fn line(text: &[char], at: usize) -> Range<usize> {
    let start = text[..at.min(text.len())].iter().rposition(|c| *c == '\n').map_or(0, |n| n + 1);
    let end = text[start..].iter().position(|c| *c == '\n').map_or(text.len(), |n| start + n);
    start..end
}

/// In normal mode the caret is on a character, and not after the last one.
pub(super) fn settled(text: &[char], at: usize) -> usize {
    let here = line(text, at);
    at.min(here.end.saturating_sub(1)).max(here.start)
}

/// Whole lines with their ends.
pub(super) fn lines_from(text: &[char], at: usize, count: usize) -> Range<usize> {
    let start = line(text, at).start;
    let mut end = start;
    for _ in 0..count {
        end = (line(text, end).end + 1).min(text.len());
        if end == text.len() {
            break;
        }
    }
    start..end
}

pub(super) fn first_word(text: &[char], of: &Range<usize>) -> usize {
    text[of.clone()].iter().position(|c| !c.is_whitespace()).map_or(of.end, |n| of.start + n)
}

/// The classes of characters: blanks, words, others.
pub(super) fn class(c: char) -> u8 {
    match c {
        c if c.is_whitespace() => 0,
        c if c.is_alphanumeric() || c == '_' || is_whole(c) => 1,
        _ => 2,
    }
}

pub(super) fn next_word(text: &[char], mut at: usize) -> usize {
    if let Some(kind) = text.get(at).map(|c| class(*c)).filter(|kind| *kind > 0) {
        while text.get(at).is_some_and(|c| class(*c) == kind) {
            at += 1;
        }
    }
    while text.get(at).is_some_and(|c| class(*c) == 0) {
        at += 1;
    }
    at
}

pub(super) fn word_before(text: &[char], mut at: usize) -> usize {
    while at > 0 && class(text[at - 1]) == 0 {
        at -= 1;
    }
    let Some(kind) = at.checked_sub(1).map(|before| class(text[before])) else { return 0 };
    while at > 0 && class(text[at - 1]) == kind {
        at -= 1;
    }
    at
}

pub(super) fn word_end(text: &[char], mut at: usize) -> usize {
    at += 1;
    while text.get(at).is_some_and(|c| class(*c) == 0) {
        at += 1;
    }
    let Some(kind) = text.get(at).map(|c| class(*c)) else { return text.len().saturating_sub(1) };
    while text.get(at + 1).is_some_and(|c| class(*c) == kind) {
        at += 1;
    }
    at
}

/// The same column in another line.
pub(super) fn below(text: &[char], at: usize, count: usize, down: bool) -> Option<usize> {
    let column = at - line(text, at).start;
    let mut here = line(text, at);
    for _ in 0..count {
        here = match down {
            true if here.end < text.len() => line(text, here.end + 1),
            false if here.start > 0 => line(text, here.start - 1),
            _ => return None,
        };
    }
    Some((here.start + column).min(here.end))
}

/// Finds a character in the line: `f` and `t` forward, `F` and `T` backward. `t` and `T` stop beside it.
pub(super) fn find(text: &[char], at: usize, count: usize, kind: char, c: char, beside: usize) -> Option<usize> {
    let here = line(text, at);
    let nth = count.checked_sub(1)?;
    match kind {
        'f' | 't' => {
            let skipped = if kind == 't' { beside } else { 1 };
            let from = (at + skipped).min(here.end);
            let found = (from..here.end).filter(|n| text[*n] == c).nth(nth)?;
            Some(if kind == 't' { found - 1 } else { found })
        }
        _ => {
            let end = if kind == 'T' { (at + 1).saturating_sub(beside).max(here.start) } else { at };
            let found = (here.start..end).rev().filter(|n| text[*n] == c).nth(nth)?;
            Some(if kind == 'T' { found + 1 } else { found })
        }
    }
}

/// A text object: a word, or the text between quotes or brackets; with `a`, including the blanks or delimiters around
/// it.
pub(super) fn object(text: &[char], at: usize, around: char, kind: char) -> Option<Range<usize>> {
    let here = line(text, at);
    let wide = |range: Range<usize>| if around == 'a' { range.start - 1..range.end + 1 } else { range };
    match kind {
        'w' => {
            let kind = class(*text.get(at)?);
            let same = |n: &usize| class(text[*n]) == kind && text[*n] != '\n';
            let start = (here.start..at).rev().take_while(same).last().unwrap_or(at);
            let mut end = (at..here.end).take_while(same).last()? + 1;
            if around == 'a' {
                end = (end..here.end).take_while(|n| text[*n] == ' ').last().map_or(end, |n| n + 1);
            }
            Some(start..end)
        }
        '"' | '\'' | '`' => {
            let quotes: Vec<usize> = here.filter(|n| text[*n] == kind).collect();
            let pair = quotes.chunks_exact(2).find(|pair| pair[1] >= at)?;
            Some(wide(pair[0] + 1..pair[1]))
        }
        _ => {
            let (open, close) = match kind {
                '(' | ')' | 'b' => ('(', ')'),
                '{' | '}' | 'B' => ('{', '}'),
                '[' | ']' => ('[', ']'),
                '<' | '>' => ('<', '>'),
                _ => return None,
            };
            let here = at + usize::from(text.get(at) != Some(&close));
            let start = partner(text, (0..here.min(text.len())).rev(), open, close)?;
            let end = partner(text, start + 1..text.len(), close, open)?;
            Some(wide(start + 1..end))
        }
    }
}

/// The first position of this bracket, skipping nested pairs.
fn partner(text: &[char], mut places: impl Iterator<Item = usize>, wanted: char, other: char) -> Option<usize> {
    let mut depth = 0_usize;
    places.find(|at| {
        let (is_wanted, is_free) = (text[*at] == wanted, depth == 0);
        match text[*at] {
            c if c == other => depth += 1,
            c if c == wanted => depth = depth.saturating_sub(1),
            _ => {}
        }
        is_wanted && is_free
    })
}

pub(super) fn swap_case(c: char) -> char {
    let only = |mut all: Box<dyn Iterator<Item = char>>| all.next().filter(|_| all.next().is_none());
    // A character whose other case has several characters stays unchanged.
    let swapped = if c.is_uppercase() { only(Box::new(c.to_lowercase())) } else { only(Box::new(c.to_uppercase())) };
    swapped.unwrap_or(c)
}
