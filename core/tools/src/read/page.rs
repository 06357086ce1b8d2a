//! A page of a file: whole lines as far as they fit, or a part of one long line.

use super::{MAX_COUNTED, MAX_SOUGHT, SAID};
use call::outcome::Outcome;
use protocol::error::{Code, Error, Result};
use text::encoding::{Encoding, Source};
use text::human::human_size;
use text::long_line::{LONGEST, LeftOut, LongLine};
use text::media::{Guard, REPLACEMENT};

/// Bytes of a page that are reserved for the mark of a long line.
const MARK: usize = 64;

/// What the call asks for.
#[derive(Clone, Copy)]
pub(super) struct Wanted {
    pub(super) first: u64,
    pub(super) limit: u64,
    /// The first byte of the first line, from 1.
    pub(super) column: Option<u64>,
    pub(super) line_numbers: bool,
    /// The most bytes of the page.
    pub(super) bytes: usize,
}

/// The requested lines that fit into the result.
#[derive(Default)]
pub(super) struct Page {
    text: String,
    /// The first line whose end is left out, and what is missing of it.
    cut: Option<(u64, LeftOut)>,
    /// The number of the line after the page.
    next: u64,
    /// The number of lines in the file, if they were counted.
    total: Option<u64>,
    /// How many bytes were replaced because they are not text.
    replaced: u64,
    /// What it was decoded from, where that is not plain UTF-8.
    encoding: Option<Encoding>,
    /// The hash of the file, if all of it was read.
    pub(super) whole: Option<blake3::Hash>,
    pub(super) is_binary: bool,
    pub(super) start: Vec<u8>,
    /// The requested line lies beyond `MAX_SOUGHT`.
    too_far: bool,
}

/// Where the reader of a page is.
struct Turner {
    wanted: Wanted,
    page: Page,
    line: u64,
    /// Where the current line begins in the page.
    line_start: usize,
    at_start: bool,
    collecting: bool,
    /// Bytes before the first column that are still to be passed over.
    skip: usize,
    long: LongLine,
    /// The part of a long line that is asked for by its column, which may fill the page.
    part: Option<LeftOut>,
}

/// Reads up to and through a page, one buffer at a time, so memory stays bounded for any file and any line length.
pub(super) fn turn_to(mut reader: impl std::io::BufRead, len: u64, wanted: Wanted) -> std::io::Result<Page> {
    let counts = len <= MAX_COUNTED;
    let (mut guard, mut hasher, mut read) = (Guard::of(Source::File), blake3::Hasher::new(), 0_u64);
    let before = wanted.column.map_or(0, |column| column.saturating_sub(1));
    let mut turner = Turner {
        wanted,
        page: Page::default(),
        line: 1,
        line_start: 0,
        at_start: true,
        collecting: true,
        skip: usize::try_from(before).unwrap_or(usize::MAX),
        long: LongLine::new(LONGEST),
        part: wanted.column.map(|_| LeftOut { chars: 0, after: before }),
    };
    let mut ended = false;
    loop {
        let chunk = reader.fill_buf()?;
        if chunk.is_empty() {
            turner.take(&guard.end());
            ended = true;
            break;
        }
        hasher.update(chunk);
        read += chunk.len() as u64;
        let text = guard.see(chunk);
        turner.take(&text);
        let used = chunk.len();
        reader.consume(used);
        if guard.is_binary_file(read.max(1024)) || (!turner.collecting && !counts) {
            break;
        }
        if turner.collecting && read > MAX_SOUGHT {
            turner.page.too_far = turner.line < wanted.first;
            break;
        }
    }
    let mut page = turner.end(ended);
    if ended {
        page.whole = Some(hasher.finalize());
    }
    page.replaced = guard.replaced();
    page.is_binary = guard.is_binary_file(read);
    page.start = guard.start().to_vec();
    page.encoding = guard.encoding();
    Ok(page)
}

impl Turner {
    fn take(&mut self, text: &str) {
        for piece in text.split_inclusive('\n') {
            let body = piece.strip_suffix('\n').unwrap_or(piece);
            if self.collecting && self.line >= self.wanted.first {
                self.collect(body);
            }
            self.at_start = body.len() < piece.len();
            if self.at_start {
                self.end_line(true);
            }
        }
    }

    /// Adds a part of the current line to the page, or ends the page before this line.
    fn collect(&mut self, mut body: &str) {
        if self.at_start {
            if self.line - self.wanted.first >= self.wanted.limit {
                return self.stop();
            }
            self.line_start = self.page.text.len();
            if self.wanted.line_numbers {
                self.page.text.push_str(&format!("{:>6}\t", self.line));
            }
        }
        let room = self.wanted.bytes.saturating_sub(SAID + MARK + self.page.text.len());
        if let Some(part) = self.part.as_mut().filter(|_| self.line == self.wanted.first) {
            let passed = boundary(body, self.skip);
            self.skip = self.skip.saturating_sub(passed);
            body = &body[passed..];
            let fits = if part.chars > 0 { 0 } else { boundary(body, room).min(body.len()) };
            // A character that does not fit goes to the next page.
            let fits = if fits > room { body[..fits].char_indices().next_back().map_or(0, |(at, _)| at) } else { fits };
            self.page.text.push_str(&body[..fits]);
            part.after += fits as u64;
            part.chars += body[fits..].chars().count() as u64;
            return;
        }
        let kept = self.long.keep(body);
        if kept > room && self.line > self.wanted.first {
            self.page.text.truncate(self.line_start);
            return self.stop();
        }
        self.page.text.push_str(&body[..kept]);
    }

    fn stop(&mut self) {
        self.collecting = false;
        self.page.next = self.line;
    }

    /// Ends the current line; `all` of it was read.
    fn end_line(&mut self, all: bool) {
        if self.collecting && self.line >= self.wanted.first {
            let part = self.part.take().filter(|part| part.chars > 0);
            let is_part = part.is_some();
            if let Some(left_out) = part.or_else(|| self.long.end()) {
                // Where the reading stopped early, the rest of the line was not counted.
                let mark = left_out.mark();
                let mark = if all { mark } else { mark.replace("…[", "…[over ") };
                self.page.text.push_str(&mark);
                self.page.cut.get_or_insert((self.line, left_out));
            }
            if self.at_start {
                self.page.text.push('\n');
            }
            if is_part {
                self.collecting = false;
                self.page.next = self.line + 1;
            }
        }
        self.long.end();
        self.line += 1;
    }

    fn end(mut self, ended: bool) -> Page {
        // A last line without a newline counts.
        let has_open_line = !self.at_start;
        let lines = if has_open_line { self.line } else { self.line - 1 };
        if has_open_line {
            self.end_line(ended);
        }
        if ended {
            self.page.total = Some(lines);
        }
        if self.collecting {
            self.page.next = lines + 1;
        }
        self.page
    }
}

/// The first boundary of a character at or after this byte.
fn boundary(text: &str, at: usize) -> usize {
    (at..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len())
}

impl Page {
    /// The lines that the page shows: `120 lines`, `lines 1-200 of 900`.
    pub(super) fn outcome(&self, wanted: Wanted) -> Outcome {
        let (first, last) = (wanted.first, self.next.saturating_sub(1));
        if wanted.column.is_some() {
            return Outcome::Counted(format!("a part of line {first}"));
        }
        match self.total {
            Some(total) if first == 1 && last >= total => Outcome::counted(total, "line", "lines"),
            Some(total) => Outcome::Counted(format!("lines {first}-{} of {total}", last.min(total))),
            None => Outcome::Counted(format!("lines {first}-{last}")),
        }
    }

    /// The page and its notes, for the model.
    pub(super) fn told(self, wanted: Wanted, len: u64) -> Result<String> {
        let Wanted { first, .. } = wanted;
        if self.too_far {
            return Err(Error::new(
                Code::ReadFailed,
                format!("line {first} is more than {} into the file", human_size(MAX_SOUGHT)),
                format!("bash: sed -n '{first},+99p', or tail, or grep"),
            )
            .with("input", first));
        }
        if let Some(total) = self.total
            && first > total.max(1)
        {
            return Err(Error::new(
                Code::InvalidArgs,
                format!("the file has {total} lines"),
                format!("an offset from 1 to {total}"),
            )
            .with("input", first));
        }
        let mut notes = Vec::new();
        if let Some(encoding) = self.encoding {
            notes.push(format!("…[encoding: {encoding}]"));
        }
        if self.replaced > 0 && self.text.contains(REPLACEMENT) {
            notes.push(format!("…[bytes of the file that are not text, shown as {REPLACEMENT}: {}]", self.replaced));
        }
        if let Some((line, left_out)) = self.cut {
            notes.push(format!("…[line {line} goes on: offset={line} column={}]", left_out.after + 1));
        }
        let (last, next) = (self.next.saturating_sub(1), self.next);
        match self.total {
            Some(total) if next > total => {}
            Some(total) => notes.push(format!("…[lines {first}-{last} of {total}; next_offset={next}]")),
            None => {
                notes.push(format!("…[lines {first}-{last}; the file is {}; next_offset={next}]", human_size(len)));
            }
        }
        let mut text = self.text;
        if !notes.is_empty() && !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        Ok(text + &notes.join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::super::PAGE;
    use super::*;
    use call::present::Budget;

    fn page(text: &str, wanted: Wanted) -> Result<String> {
        let len = text.len() as u64;
        turn_to(BufReader::with_capacity(7, text.as_bytes()), len, wanted).expect("memory").told(wanted, len)
    }

    fn plain(first: u64, limit: u64) -> Wanted {
        Wanted { first, limit, column: None, line_numbers: false, bytes: Budget::PAGE.bytes }
    }

    #[test]
    fn pages_join_up_to_the_whole_file() {
        for text in [(1..=9000).map(|i| format!("line {i}\n")).collect::<String>(), "a\n".repeat(3000) + "ä"] {
            let mut joined = String::new();
            let mut next = 1;
            loop {
                let page = page(&text, plain(next, PAGE)).expect("a page");
                let (body, note) =
                    page.rsplit_once("…[").map_or((page.as_str(), None), |(body, note)| (body, Some(note)));
                joined.push_str(body);
                let Some(note) = note else { break };
                let (_, number) = note.split_once("next_offset=").expect("a note says so");
                next = number.trim_end_matches(']').parse().expect("a number");
            }
            assert_eq!(joined, text);
        }
        assert_eq!(page("a\n", plain(6000, 1)).expect_err("beyond the end").code, Code::InvalidArgs);
        assert_eq!(page("", plain(1, PAGE)).expect("an empty file"), "");
    }

    #[test]
    fn a_long_line_is_cut_after_2000_characters_and_read_to_its_end_by_columns() {
        let long = "ä1".repeat(60_000);
        let text = format!("{long}\nnext\n");
        let first = page(&text, plain(1, PAGE)).expect("a page");
        let cut = "ä1".repeat(1000);
        assert_eq!(first, format!("{cut}…[118000 more characters]\nnext\n…[line 1 goes on: offset=1 column=3001]"));
        let (mut joined, mut column) = (cut, 3001);
        for _ in 0..9 {
            let wanted = Wanted { column: Some(column), ..plain(1, PAGE) };
            let page = page(&text, wanted).expect("a part of the line");
            assert!(page.len() <= Budget::PAGE.bytes, "{}", page.len());
            let Some((body, rest)) = page.split_once("…[") else {
                joined.push_str(page.strip_suffix("\nnext\n").expect("the lines behind it follow"));
                break;
            };
            joined.push_str(body);
            let (_, number) = rest.split_once("column=").expect("how to go on");
            column = number.split(']').next().and_then(|it| it.parse().ok()).expect("a number");
            assert!(rest.ends_with("…[lines 1-1 of 2; next_offset=2]"), "{rest}");
        }
        assert_eq!(joined, long);
    }

    #[test]
    fn lines_have_their_numbers_and_single_bytes_that_are_no_text_hide_nothing() {
        let numbered = Wanted { line_numbers: true, ..plain(2, 2) };
        let page = page("a\nb\nc\nd\n", numbered).expect("a page");
        assert_eq!(page, "     2\tb\n     3\tc\n…[lines 2-3 of 4; next_offset=4]");
        let bytes = b"gr\xc3\xb6\xc3\x9fer: the caf\xe9 is open\n".as_slice();
        let page = turn_to(BufReader::new(bytes), bytes.len() as u64, plain(1, PAGE)).expect("memory");
        assert!(!page.is_binary);
        let told = page.told(plain(1, PAGE), bytes.len() as u64).expect("a page");
        let note = "…[bytes of the file that are not text, shown as \u{fffd}: 1]";
        assert_eq!(told, format!("größer: the caf\u{fffd} is open\n{note}"));
    }
}
