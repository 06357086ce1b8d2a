//! Cuts a text after a line if possible, and never inside a grapheme cluster.

use std::ops::Range;

use unicode_segmentation::GraphemeCursor;

use protocol::event::Colouring;

/// The start of a text, at most `most` bytes and `lines` lines, cut after a line or else after a grapheme cluster.
pub(super) fn first_of(bytes: &[u8], most: usize, lines: u64) -> &[u8] {
    let lines = usize::try_from(lines).unwrap_or(usize::MAX);
    let bytes = match memchr::memchr_iter(b'\n', bytes).nth(lines.saturating_sub(1)) {
        Some(at) => &bytes[..=at],
        None => bytes,
    };
    if bytes.len() <= most {
        return bytes;
    }
    match memchr::memrchr(b'\n', &bytes[..most]) {
        Some(at) => &bytes[..=at],
        None => &bytes[..boundary(bytes, most, Side::Before)],
    }
}

/// The end of a text, at most `most` bytes and `lines` lines, cut like [`first_of`].
pub(super) fn last_of(bytes: &[u8], most: usize, lines: u64) -> &[u8] {
    let lines = usize::try_from(lines).unwrap_or(usize::MAX);
    let body = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let bytes = match memchr::memrchr_iter(b'\n', body).nth(lines.saturating_sub(1)) {
        Some(at) => &bytes[at + 1..],
        None => bytes,
    };
    if bytes.len() <= most {
        return bytes;
    }
    let from = bytes.len() - most;
    match memchr::memchr(b'\n', &bytes[from..]) {
        Some(at) if from + at + 1 < bytes.len() => &bytes[from + at + 1..],
        Some(_) | None => &bytes[boundary(bytes, from, Side::After)..],
    }
}

/// The longest grapheme cluster that a cut respects, bytes. The search for a boundary reads this far around a cut.
pub(super) const AROUND: usize = 256;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Before,
    After,
}

/// The nearest boundary between grapheme clusters on this side.
fn boundary(bytes: &[u8], mut at: usize, side: Side) -> usize {
    let inside = |at: usize| bytes.get(at).is_some_and(|b| b & 0b1100_0000 == 0b1000_0000);
    while at > 0 && inside(at) {
        at = if side == Side::Before { at - 1 } else { at + 1 };
    }
    let mut from = at.saturating_sub(AROUND);
    while inside(from) {
        from += 1;
    }
    let mut to = (at + AROUND).min(bytes.len());
    while to < bytes.len() && inside(to) {
        to -= 1;
    }
    let Ok(text) = std::str::from_utf8(&bytes[from..to]) else { return at };
    let mut cursor = GraphemeCursor::new(at - from, text.len(), true);
    if cursor.is_boundary(text, 0) != Ok(false) {
        return at;
    }
    let near = if side == Side::Before { cursor.prev_boundary(text, 0) } else { cursor.next_boundary(text, 0) };
    near.ok().flatten().map_or(at, |near| near + from)
}

/// The ranges of a text that a terminal still shows. A return starts a line anew, as a progress bar does.
pub(super) fn last_states(text: &str) -> Vec<Range<usize>> {
    let mut kept = Vec::new();
    let mut begin = 0;
    for line in text.split_inclusive('\n') {
        let end = begin + line.len();
        let body = line.strip_suffix('\n').map_or(line, |body| body.trim_end_matches('\r'));
        let from = body.rfind('\r').map_or(0, |at| at + 1);
        kept.push(begin + from..begin + body.len());
        if line.ends_with('\n') {
            kept.push(end - 1..end);
        }
        begin = end;
    }
    kept
}

/// Joins these ranges of a text.
pub(super) fn pieces(text: &str, kept: &[Range<usize>]) -> String {
    kept.iter().map(|piece| &text[piece.clone()]).collect()
}

/// Moves colours to their positions in the joined ranges. A colour in a removed part moves to the next range.
pub(super) fn colours_of(mut colours: Vec<Colouring>, kept: &[Range<usize>]) -> Vec<Colouring> {
    let mut rest = kept.iter().peekable();
    let mut before = 0;
    for it in &mut colours {
        let at = usize::try_from(it.at).unwrap_or(usize::MAX);
        while let Some(piece) = rest.next_if(|piece| piece.end <= at) {
            before += piece.len();
        }
        let within = rest.peek().map_or(0, |piece| at.saturating_sub(piece.start));
        it.at = (before + within) as u64;
    }
    colours
}
