//! Splits a long text into parts whose look does not depend on what follows, so that each is laid out only once.
//!
//! The parts depend on the text alone, so a streamed text has the same parts as the recorded one.

use std::borrow::Cow;
use std::ops::Range;

/// After this many bytes, a part ends before the next block.
const PART: usize = 1 << 10;
/// After this many bytes, a part may also end at a line end in code.
const CODE: usize = 2 << 10;
/// After this many bytes, a part ends at any line end; inside of a single line, at any blank.
const MOST: usize = 16 << 10;

/// A part of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) range: Range<usize>,
    /// The start of the code fence that is open where the part begins.
    pub(crate) fence: Option<usize>,
    /// The head of the table that is open where the part begins. It is shown again.
    pub(crate) table: Option<Range<usize>>,
    /// The part continues in the middle of something, so no empty row separates it from the part above.
    pub(crate) goes_on: bool,
}

/// Finds the parts of a growing text. It looks at each byte once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Splitter {
    /// Where the current part begins, and what is open there.
    at: usize,
    open_at: Option<usize>,
    open_table: Option<Range<usize>>,
    goes_on: bool,
    /// The head of the table that contains the last line, and where that line begins.
    table: Option<Range<usize>>,
    before: usize,
    /// Where the first unfinished line begins.
    line: usize,
    /// All bytes before this one have been searched for line ends.
    looked: usize,
    fence: Option<Fence>,
    after_blank: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Fence {
    at: usize,
    mark: u8,
    length: usize,
    stands: Stands,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stands {
    /// At the left margin, outside of any container.
    Free,
    InItem,
    InQuote,
}

impl Splitter {
    /// Where the growing part begins.
    pub(crate) fn settled(&self) -> usize {
        self.at
    }

    /// Appends the parts that are complete now. `text` is everything so far.
    pub(crate) fn feed(&mut self, text: &str, parts: &mut Vec<Part>) {
        while let Some(length) = memchr::memchr(b'\n', &text.as_bytes()[self.looked..]) {
            self.looked += length + 1;
            self.take_line(text, self.looked, parts);
        }
        self.looked = text.len();
        self.force(text, text.len(), parts);
    }

    /// The growing part, once the text has ended.
    pub(crate) fn rest(&self, text: &str) -> Part {
        Part { range: self.at..text.len(), fence: self.open_at, table: self.open_table.clone(), goes_on: self.goes_on }
    }

    /// All parts of a complete text.
    pub(crate) fn parts(text: &str) -> Vec<Part> {
        let mut splitter = Splitter::default();
        let mut parts = Vec::new();
        splitter.feed(text, &mut parts);
        let rest = splitter.rest(text);
        if !text[rest.range.clone()].trim().is_empty() || parts.is_empty() {
            parts.push(rest);
        }
        parts
    }

    fn take_line(&mut self, text: &str, end: usize, parts: &mut Vec<Part>) {
        let begin = self.line;
        self.force(text, end, parts);
        let line = text[begin..end].trim_end();
        // If the line was too long for one part, the current part begins inside of it: there is nothing to cut before
        // it.
        let is_long_enough = begin.checked_sub(self.at).is_some_and(|length| length >= PART);
        if self.after_blank && self.fence.is_none() && starts_block(line) && is_long_enough {
            self.cut(text, begin, false, parts);
        }
        let bare = line.trim_start();
        // The code ends with the container that it is in.
        let is_over = |fence: &mut Fence| match fence.stands {
            Stands::Free => false,
            Stands::InItem => !line.is_empty() && !line.starts_with([' ', '\t']),
            Stands::InQuote => !bare.starts_with('>'),
        };
        self.fence.take_if(is_over);
        match self.fence {
            Some(fence) if fence.is_ended_by(line) => self.fence = None,
            Some(fence) if fence.stands == Stands::Free && end - self.at >= CODE => self.cut(text, end, true, parts),
            Some(_) => {}
            None => {
                let fence = behind_marks(line);
                let stands = match bare.starts_with('>') {
                    true => Stands::InQuote,
                    false if fence == bare && line.len() - bare.len() < 4 => Stands::Free,
                    false => Stands::InItem,
                };
                self.fence = Fence::begun_by(fence, begin, stands);
            }
        }
        self.after_blank = line.is_empty() && self.fence.is_none();
        if self.fence.is_some() || !line.contains('|') {
            self.table = None;
        } else if self.table.is_none() && is_delimiter(bare) && text[self.before..begin].contains('|') {
            self.table = Some(self.before..end);
        }
        self.before = begin;
        self.line = end;
        if end - self.at >= MOST {
            self.cut(text, end, true, parts);
        }
    }

    /// Cuts a single line that is too long for one part.
    fn force(&mut self, text: &str, end: usize, parts: &mut Vec<Part>) {
        while end - self.at.max(self.line) > MOST {
            let from = self.at.max(self.line);
            let mut to = from + MOST;
            while !text.is_char_boundary(to) {
                to -= 1;
            }
            let at = text[from..to].rfind(' ').map_or(to, |blank| from + blank + 1);
            self.cut(text, at.max(from + 1), true, parts);
        }
    }

    fn cut(&mut self, text: &str, at: usize, goes_on: bool, parts: &mut Vec<Part>) {
        if !text[self.at..at].trim().is_empty() {
            let table = self.open_table.clone();
            parts.push(Part { range: self.at..at, fence: self.open_at, table, goes_on: self.goes_on });
        }
        self.at = at;
        self.open_at = self.fence.map(|fence| fence.at);
        // After a cut inside of a row, the rest of that row does not parse as a table.
        self.open_table = self.table.clone().filter(|_| goes_on && text[..at].ends_with('\n'));
        self.goes_on = goes_on;
    }
}

impl Fence {
    fn begun_by(line: &str, at: usize, stands: Stands) -> Option<Fence> {
        let mark = *line.as_bytes().first().filter(|b| matches!(b, b'`' | b'~'))?;
        let length = line.bytes().take_while(|b| *b == mark).count();
        // A line of ``code`` in backticks is not a fence.
        let is_fence = length >= 3 && !(mark == b'`' && line[length..].contains('`'));
        is_fence.then_some(Fence { at, mark, length, stands })
    }

    fn is_ended_by(self, line: &str) -> bool {
        let line = if self.stands == Stands::InQuote { behind_quotes(line) } else { line.trim_start() };
        line.len() >= self.length && line.bytes().all(|b| b == self.mark)
    }
}

/// The line after its indent and the marks of quotes.
fn behind_quotes(line: &str) -> &str {
    line.trim_start_matches(['>', ' ', '\t'])
}

/// The line after the marks of quotes and lists.
fn behind_marks(line: &str) -> &str {
    let mut rest = behind_quotes(line);
    loop {
        let item = rest.strip_prefix(['-', '*', '+']).or_else(|| {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            rest[digits..].strip_prefix(['.', ')']).filter(|_| (1..10).contains(&digits))
        });
        match item.filter(|item| item.starts_with([' ', '\t'])) {
            Some(item) => rest = behind_quotes(item),
            None => return rest,
        }
    }
}

/// A text that begins with an indented fence, as if the fence were at the left margin. A quote stays unchanged.
pub(crate) fn outdented(text: &str) -> Cow<'_, str> {
    let first = text.lines().next().unwrap_or_default();
    let fence = behind_marks(first);
    let indent = first.len() - fence.len();
    if indent == 0 || !fence.starts_with(['`', '~']) || first.trim_start().starts_with('>') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for (at, line) in text.split_inclusive('\n').enumerate() {
        let blanks = line.len() - line.trim_start_matches(' ').len();
        out.push_str(&line[if at == 0 { indent } else { blanks.min(indent) }..]);
    }
    Cow::Owned(out)
}

/// The delimiter row of a table.
pub(crate) fn is_delimiter(line: &str) -> bool {
    line.contains('-') && line.contains('|') && line.bytes().all(|b| matches!(b, b'-' | b'|' | b':' | b' ' | b'\t'))
}

/// This line begins a new block for certain, if it follows an empty line.
///
/// Lists, quotes, tables and indented text can continue after an empty line.
fn starts_block(line: &str) -> bool {
    let Some(first) = line.chars().next() else { return false };
    let is_rule = line.len() >= 3 && line.bytes().all(|b| b == b'-' || b == b'*');
    let list = !is_rule && (matches!(first, '-' | '+') || line.starts_with("* "));
    !list && !matches!(first, ' ' | '\t' | '>' | '|' | '[') && !first.is_ascii_digit()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::context::RenderContext;
    use crate::render::highlight::Highlighter;
    use crate::render::markdown;
    use crate::theme::{Background, Depth, Theme};

    fn shown(text: &str, parts: &[Part]) -> Vec<String> {
        let theme = Theme::load("dark", None, Depth::True, Background::Dark).expect("a theme");
        let highlighter = Highlighter::new(|| ());
        let context = RenderContext {
            medium: crate::render::context::Medium::Reader,
            ..RenderContext::new(&theme, &highlighter, 50)
        };
        let mut rows = Vec::new();
        for part in parts {
            let before = part.fence.map_or("", |at| &text[at..part.range.start]);
            let laid = markdown::inside(&text[part.range.clone()], &context, before);
            if !part.goes_on && !rows.is_empty() && !laid.is_empty() {
                rows.push(String::new());
            }
            rows.extend(laid.iter().map(|row| row.line.to_string().trim_end().to_owned()));
        }
        rows
    }

    fn long_text() -> String {
        let mut text = String::from("# A long answer\n\n");
        for i in 0..30 {
            text.push_str(&format!("Paragraph {i} with `code` and **bold** and {}.\n\n", "many words ".repeat(20)));
            if i % 5 == 0 {
                text.push_str("- one\n\n- two\n  - inner\n\n");
            }
            if i % 7 == 0 {
                text.push_str("````rust\n");
                for line in 0..120 {
                    text.push_str(&format!("fn number_{line}() -> u32 {{ {line} }}\n"));
                }
                text.push_str("```\nstill code\n````\n\n");
            }
            if i % 9 == 0 {
                text.push_str("| a | b |\n|---|---|\n| 1 | 2 |\n\n> quoted\n> more\n\n");
            }
        }
        text
    }

    #[test]
    fn the_parts_of_a_text_look_like_the_whole_of_it() {
        let text = long_text();
        let parts = Splitter::parts(&text);
        assert!(parts.len() > 10, "{}", parts.len());
        let whole = [Part { range: 0..text.len(), fence: None, table: None, goes_on: false }];
        assert_eq!(shown(&text, &parts), shown(&text, &whole));
        assert!(parts.iter().all(|part| part.range.len() <= MOST));
        let joined: String = parts.iter().map(|part| &text[part.range.clone()]).collect();
        assert_eq!(joined.trim_end(), text.trim_end());
    }

    #[test]
    fn a_text_that_streams_in_has_the_parts_that_it_has_when_it_is_read_again() {
        let text = long_text();
        for step in [1, 7, 100, 5_000] {
            let (mut splitter, mut parts, mut so_far) = (Splitter::default(), Vec::new(), String::new());
            for piece in text.as_bytes().chunks(step) {
                so_far.push_str(std::str::from_utf8(piece).expect("plain"));
                splitter.feed(&so_far, &mut parts);
            }
            parts.push(splitter.rest(&so_far));
            parts.retain(|part| !text[part.range.clone()].trim().is_empty());
            assert_eq!(parts, Splitter::parts(&text), "in steps of {step}");
        }
    }

    #[test]
    fn code_in_an_item_or_a_quote_ends_where_it_ends_however_long_it_is() {
        let code: String = (0..1_500).map(|n| format!("    let number_{n} = {n};\n")).collect();
        let item = |mark: &str| {
            let indent = " ".repeat(mark.len());
            let code: String = code.lines().map(|line| format!("{indent}{line}\n")).collect();
            format!(
                "{mark}```rust\n{code}{indent}```\n\nThe end, in words that are *no* code.\n\n{}",
                "More. ".repeat(900)
            )
        };
        let quoted: String = format!("```rust\n{code}```\n").lines().map(|line| format!("> {line}\n")).collect();
        let quoted = format!("{quoted}\nThe end, in words that are *no* code.\n");
        for text in [item("- "), item("10. "), item("1. - "), quoted] {
            let parts = Splitter::parts(&text);
            assert!(parts.len() > 2, "{}", parts.len());
            let rows = shown(&text, &parts);
            assert!(rows.iter().any(|row| row.starts_with("The end, in words that are no code.")), "{rows:#?}");
            let numbers = rows.iter().filter(|row| row.contains("    let number_")).count();
            assert_eq!(numbers, 1_500, "{rows:#?}");
            assert!(!rows.iter().any(|row| row.contains("```")), "{rows:#?}");
        }
    }

    #[test]
    fn a_fence_ends_with_what_it_stands_in_and_no_other_fence_ends_it() {
        let diff = "```diff\n> ```\n> code\n> ```\n\n# still code\n```\n\nThe end of it.\n\n";
        let open = "- ```rust\n  code\n\nThe end of it.\n\n";
        let quoted = "> ```\n> code\n\nThe end of it.\n\n";
        for text in [diff, open, quoted] {
            let text = format!("{text}{}\n\n# Title\n", "More, and *more*.\n\n".repeat(2_000));
            let parts = Splitter::parts(&text);
            let rows = shown(&text, &parts);
            assert!(rows.iter().any(|row| row == "The end of it."), "{rows:?}");
            assert!(parts.len() > 10 && rows.iter().all(|row| !row.contains("*more*")), "{rows:?}");
        }
    }

    #[test]
    fn a_line_without_end_and_a_list_without_end_are_cut_somewhere() {
        let line = "word ".repeat(100_000);
        let behind_blank = format!("log:\n\n{}\nend\n", "x".repeat(20_000));
        let list: String = (0..20_000).map(|i| format!("- item {i}\n")).collect();
        for text in [&line, &list, &behind_blank, &"x".repeat(100_000), &"漢".repeat(50_000)] {
            let parts = Splitter::parts(text);
            assert!(parts.iter().all(|part| part.range.len() <= MOST + 64), "{}", parts.len());
            assert_eq!(parts.iter().map(|part| part.range.len()).sum::<usize>(), text.len());
        }
    }

    #[test]
    fn any_text_is_cut_the_same_whole_or_in_pieces() {
        let pieces =
            ["\n", "\n\n", "```\n", "~~~~\n", "- item\n", "  ", "| a |\n", "word ", "漢字", "> q\n", "# h\n", "`"];
        let mut seed = 11_u64;
        let mut dice = |sides: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as usize % sides
        };
        for _ in 0..60 {
            let mut text = String::new();
            for _ in 0..dice(400) {
                let piece = pieces[dice(pieces.len())];
                text.push_str(&piece.repeat(if dice(12) == 0 { 1 + dice(6_000) } else { 1 }));
            }
            let whole = Splitter::parts(&text);
            let (mut splitter, mut parts, mut to) = (Splitter::default(), Vec::new(), 0);
            while to < text.len() {
                to = (to + 1 + dice(5_000)).min(text.len());
                while !text.is_char_boundary(to) {
                    to += 1;
                }
                splitter.feed(&text[..to], &mut parts);
            }
            parts.push(splitter.rest(&text));
            parts.retain(|part| !text[part.range.clone()].trim().is_empty());
            let blank = whole.iter().all(|part| text[part.range.clone()].trim().is_empty());
            assert!(blank || parts == whole, "{text:?}");
        }
    }
}
