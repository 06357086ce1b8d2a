//! Turns a tool's raw output into the text that the model reads: stripped, checked for binary data, bounded, with a
//! footer.

use std::time::Duration;

use permissions::shell::quote;
use protocol::error::{Code, Error};
use protocol::event::{Colouring, Printed, Truncated};
use storage::outputs::MAX_SPILL;
use text::encoding;
use text::human::{human_duration, human_size};
use text::long_line::{LONGEST, LeftOut, LongLine};
use text::media::{Guard, REPLACEMENT, media_type};
use text::strip::Stripper;

mod budget; // how much a model reads
mod cut; // the start and the end of a text, nothing that a person sees as one cut in two
mod spill; // the file that holds all of a stream

pub use budget::Budget;
use budget::Explore;
pub use budget::ResultLimits;
use cut::{AROUND, colours_of, first_of, last_of, last_states, pieces};
pub use spill::Overflow;
use spill::Spill;

/// The file whose bytes a stream carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Its path, as written in the call.
    pub path: String,
}

/// Collects one stream of a tool's output, in bounded memory.
#[derive(Debug)]
pub struct Capture {
    budget: Budget,
    source: Option<Source>,
    /// Whether the stream is text from files, which is shown without terminal effects.
    is_of_files: bool,
    stripper: Stripper,
    /// Cuts long lines; `None` leaves them as they are.
    long: Option<LongLine>,
    /// The first line that was cut: its number, and what is missing of it.
    first_cut: Option<(u64, LeftOut)>,
    /// The first bytes to show: the budget and `AROUND` more, which the search for a boundary needs.
    head: Vec<u8>,
    /// The last bytes to show after the head: up to twice the budget, cut back when full.
    tail: Vec<u8>,
    /// The number of bytes to show so far, and before long lines were cut.
    shown: u64,
    stripped: u64,
    /// The number of bytes of terminal control.
    control: u64,
    newlines: u64,
    ends_open: bool,
    guard: Guard,
    spill: Spill,
}

/// A finished stream.
#[derive(Debug, Default)]
pub struct Presented {
    /// The text that the model reads, without the footer.
    pub text: String,
    /// How much of the stream the text omits.
    pub truncated: Option<Truncated>,
    /// The path of the saved output, as tools accept it.
    pub overflow_path: Option<String>,
    /// The number of raw bytes in the stream.
    pub bytes: u64,
    /// Colours that a program set, if nothing is omitted.
    pub colours: Vec<Colouring>,
    /// The error, if the stream is a file that is not text.
    pub binary: Option<Error>,
}

impl Capture {
    /// An empty capture with this budget.
    pub fn new(budget: Budget, overflow: Option<Overflow>) -> Capture {
        Capture {
            budget,
            source: None,
            is_of_files: false,
            stripper: Stripper::with_colours(),
            long: Some(LongLine::new(LONGEST)),
            first_cut: None,
            head: Vec::new(),
            tail: Vec::new(),
            shown: 0,
            stripped: 0,
            control: 0,
            newlines: 0,
            ends_open: false,
            guard: Guard::of(encoding::Source::Output),
            spill: Spill::new(overflow),
        }
    }

    /// States which file the stream carries.
    pub fn is_of(&mut self, source: Option<Source>) {
        self.is_of_files |= source.is_some();
        if source.is_some() {
            self.guard = Guard::of(encoding::Source::File);
        }
        self.source = source;
    }

    /// States that the stream is text from files. A return in it then hides nothing.
    pub fn is_of_files(&mut self) {
        self.is_of_files = true;
    }

    /// States that the stream is a page of a file, whose lines are as long as they should be.
    pub(super) fn is_page(&mut self) {
        self.is_of_files = true;
        self.long = None;
    }

    /// The text as a terminal would show it at the end: only the last state of a progress bar.
    fn settled(&self, text: &str) -> String {
        if self.is_of_files { text.replace("\r\n", "\n") } else { pieces(text, &last_states(text)) }
    }

    /// Adds notes about bytes that are not shown as they are.
    fn told_of_bytes(&self, text: &mut String) {
        if self.is_of_files && self.control > 0 {
            end_line(text);
            text.push_str(&format!("…[{} bytes of terminal control are not shown]\n", self.control));
        }
        if let Some(encoding) = self.guard.encoding() {
            end_line(text);
            text.push_str(&format!("…[decoded from {encoding}]\n"));
        }
        if self.guard.replaced() > 0 {
            end_line(text);
            text.push_str(&format!("…[bytes that are not text, shown as {REPLACEMENT}: {}]\n", self.guard.replaced()));
        }
    }

    /// Says how to read on in a line that was cut.
    fn told_of_long_lines(&self, text: &mut String) {
        let Some((line, left_out)) = self.first_cut else { return };
        let path = self.source.as_ref().map(|it| it.path.clone()).or_else(|| self.spill.path());
        let Some(path) = path else { return };
        end_line(text);
        let (from, to) = (left_out.after + 1, left_out.after + LONGEST as u64);
        let path = quote(&path);
        text.push_str(&format!(
            "Long lines are cut. Line {line} goes on: sed -n {line}p {path} | cut -b {from}-{to}\n"
        ));
    }

    /// Adds bytes to the stream; returns them stripped, for a live view.
    pub fn push(&mut self, bytes: &[u8]) -> Printed {
        self.spill.push(bytes, self.budget.bytes);
        let text = self.guard.see(bytes);
        self.add(&text)
    }

    /// Adds text that has been checked.
    fn add(&mut self, text: &str) -> Printed {
        let stripped = self.stripper.strip(text.as_bytes());
        let colours = if self.is_of_files { Vec::new() } else { self.stripper.new_colours(self.stripped) };
        self.stripped += stripped.len() as u64;
        self.control += (text.len().saturating_sub(stripped.len())) as u64;
        let printed = String::from_utf8_lossy(&stripped).into_owned();
        let short = self.without_long_lines(&printed);
        self.show(short.as_deref().unwrap_or(&printed).as_bytes());
        Printed { text: printed, colours }
    }

    fn show(&mut self, bytes: &[u8]) {
        self.shown += bytes.len() as u64;
        if let Some(last) = bytes.last() {
            self.ends_open = *last != b'\n';
        }
        let room = (self.budget.bytes + AROUND).saturating_sub(self.head.len()).min(bytes.len());
        self.head.extend_from_slice(&bytes[..room]);
        self.tail.extend_from_slice(&bytes[room..]);
        if self.tail.len() > 2 * self.budget.bytes {
            self.tail.drain(..self.tail.len() - self.budget.bytes);
        }
    }

    /// The text without the ends of long lines; `None` if nothing is cut.
    fn without_long_lines(&mut self, text: &str) -> Option<String> {
        let newlines = self.newlines;
        self.newlines += memchr::memchr_iter(b'\n', text.as_bytes()).count() as u64;
        let long = self.long.as_mut()?;
        if long.fits(text) {
            return None;
        }
        let mut short: Option<String> = None;
        let (mut from, mut line) = (0, newlines);
        for at in memchr::memchr2_iter(b'\n', b'\r', text.as_bytes()).chain([text.len()]) {
            let piece = &text[from..at];
            let kept = long.keep(piece);
            if kept < piece.len() && short.is_none() {
                short = Some(text[..from].to_owned());
            }
            if let Some(short) = &mut short {
                short.push_str(&piece[..kept]);
            }
            from = at;
            let Some(&end) = text.as_bytes().get(at) else { break };
            // A return begins the line anew, as a progress bar does.
            if let Some(left_out) = long.end() {
                short.get_or_insert_with(|| text[..at].to_owned()).push_str(&left_out.mark());
                self.first_cut.get_or_insert((line + 1, left_out));
            }
            line += u64::from(end == b'\n');
            if let Some(short) = &mut short {
                short.push(char::from(end));
            }
            from += 1;
        }
        short
    }

    /// Ends a last line without a newline, and a last character that is not whole.
    fn end(&mut self) {
        let last = self.guard.end();
        self.add(&last);
        if let Some(left_out) = self.long.as_mut().and_then(LongLine::end) {
            self.first_cut.get_or_insert((self.newlines + 1, left_out));
            self.show(left_out.mark().as_bytes());
        }
    }

    fn lines(&self) -> u64 {
        self.newlines + u64::from(self.ends_open)
    }

    fn is_binary(&self) -> bool {
        let raw = self.spill.raw();
        if self.source.is_some() { self.guard.is_binary_file(raw) } else { self.guard.is_binary(raw) }
    }

    /// Finishes the stream for the model. The text of a long stream is its start and its end; of files, its start.
    pub fn finish(mut self) -> Presented {
        self.end();
        if self.is_binary() {
            return self.finish_binary();
        }
        if self.shown <= self.budget.bytes as u64 && self.lines() <= self.budget.lines {
            return self.finish_whole();
        }
        self.spill.save();
        self.finish_cut()
    }

    /// Everything fits, apart from the ends of long lines.
    fn finish_whole(mut self) -> Presented {
        let shown = String::from_utf8_lossy(&self.head);
        let mut text = self.settled(&shown);
        let (mut colours, mut truncated) = (Vec::new(), None);
        if self.first_cut.is_some() {
            // The positions of colours do not match a text that was cut.
            truncated = Some(Truncated { lines_total: self.lines(), lines_omitted: 0, bytes_total: self.spill.raw() });
            if self.source.is_none() {
                self.spill.save();
            }
        } else if !self.is_of_files {
            colours = colours_of(self.stripper.take_colours(), &last_states(&shown));
        }
        self.told_of_bytes(&mut text);
        self.told_of_long_lines(&mut text);
        let overflow_path = self.spill.path();
        Presented { text, truncated, overflow_path, colours, bytes: self.spill.raw(), ..Presented::default() }
    }

    fn finish_binary(mut self) -> Presented {
        let lines = self.lines();
        let raw = self.spill.raw();
        let truncated = Some(Truncated { lines_total: lines, lines_omitted: lines, bytes_total: raw });
        if let Some(source) = &self.source {
            let error = binary_file(&source.path, self.guard.start(), raw);
            return Presented { truncated, bytes: raw, binary: Some(error), ..Presented::default() };
        }
        self.spill.save();
        self.spill.mark_binary();
        let path = self.spill.path();
        let fix = match (&path, self.budget.explore) {
            (Some(path), Explore::Run) => format!("cat -b {}", quote(path)),
            (None, Explore::Run) => "wc -c, or cat -b of the file".to_owned(),
            (Some(path), Explore::Typed) => format!("xxd {} | head", quote(path)),
            (None, Explore::Typed) => "a redirection into a file, or a pipe to xxd, wc or file".to_owned(),
        };
        let kind = if media_type(self.guard.start()).is_some() { "image" } else { "output" };
        Presented {
            text: format!("[error] binary {kind} ({}). Use: {fix}\n", human_size(raw)),
            truncated,
            overflow_path: path,
            bytes: raw,
            ..Presented::default()
        }
    }

    fn finish_cut(self) -> Presented {
        let tenths = if self.is_of_files { 10 } else { self.budget.start_tenths };
        let (head_bytes, head_lines) = self.budget.share(tenths);
        let (tail_bytes, tail_lines) = self.budget.share(10 - tenths);
        let head = String::from_utf8_lossy(first_of(&self.head, head_bytes, head_lines)).into_owned();
        let rest = [&self.head[head.len().min(self.head.len())..], self.tail.as_slice()].concat();
        let tail = if self.is_of_files { &[] } else { last_of(&rest, tail_bytes, tail_lines) };
        let tail = String::from_utf8_lossy(tail).into_owned();
        let lines_total = self.lines().max(1);
        // A line that is shown only in part counts as omitted.
        let kept_lines = (head.matches('\n').count() + tail.lines().count()) as u64;
        let is_torn = !head.is_empty() && !head.ends_with('\n');
        let raw = self.spill.raw();
        let truncated =
            Truncated { lines_total, lines_omitted: lines_total.saturating_sub(kept_lines), bytes_total: raw };

        let mut text = self.settled(&head);
        end_line(&mut text);
        text.push_str(&if is_torn {
            let omitted = self.shown.saturating_sub((head.len() + tail.len()) as u64);
            format!("…[truncated {omitted} of {} bytes]\n", self.shown)
        } else {
            format!("…[truncated {} of {lines_total} lines]\n", truncated.lines_omitted)
        });
        if !tail.is_empty() {
            text.push_str(&self.settled(&tail));
            end_line(&mut text);
        }
        self.told_of_bytes(&mut text);
        text.push_str(&format!("--- output truncated ({lines_total} lines, {}) ---\n", human_size(raw)));
        let overflow_path = self.spill.path();
        if let Some(Source { path }) = &self.source {
            let (from, to) = (kept_lines + 1, (kept_lines + 200).min(lines_total));
            text.push_str(&format!("Next: sed -n '{from},{to}p' {}\n", quote(path)));
        } else if let Some(path) = &overflow_path {
            text.push_str(&self.explore(path, lines_total));
            if self.spill.is_cut() {
                text.push_str(&format!("Only its first {} were saved.\n", human_size(MAX_SPILL)));
            }
        } else {
            text.push_str(&self.spill.failure().unwrap_or_default());
        }
        self.told_of_long_lines(&mut text);
        Presented { text, truncated: Some(truncated), overflow_path, bytes: raw, ..Presented::default() }
    }

    fn explore(&self, path: &str, lines_total: u64) -> String {
        let from = lines_total.saturating_sub(99).max(1);
        match self.budget.explore {
            Explore::Run => {
                let word = quote(path);
                format!("Full output: {path}\nExplore: cat {word} | grep <pattern>\n         cat {word} | tail 100\n")
            }
            Explore::Typed => format!(
                "Full output: {path}\nExplore: grep pattern=<pattern> path={path}\n         read path={path} offset={from} limit=100\n"
            ),
        }
    }
}

/// The error for a file that is not text: `[error] cat: binary image file (182KB). Use: see photo.png`.
pub fn binary_file(path: &str, start: &[u8], bytes: u64) -> Error {
    let media = media_type(start);
    let (kind, fix) = match media {
        Some(_) => ("image ", format!("see {path}")),
        None => ("", format!("cat -b {path}")),
    };
    Error::new(Code::BinaryFile, format!("binary {kind}file ({})", human_size(bytes)), fix)
        .with("input", path)
        .with("bytes", bytes)
        .with("media_type", media.unwrap_or("application/octet-stream"))
}

fn end_line(text: &mut String) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
}

/// The text of a finished call for the model: output, errors, stderr, footer. `nothing` says what it means that there is
/// no output.
pub(crate) fn compose(stdout: &str, errors: &str, stderr: &str, nothing: &str, exit: i32, took: Duration) -> String {
    let mut text = stdout.to_owned();
    end_line(&mut text);
    text.push_str(errors);
    end_line(&mut text);
    if !stderr.trim().is_empty() {
        text.push_str("[stderr] ");
        text.push_str(stderr);
        end_line(&mut text);
    }
    if text.trim().is_empty() {
        text = format!("{nothing}\n");
    }
    text.push_str(&footer(exit, took));
    text
}

/// The last line of every result: `[exit:0 | 12ms]`.
pub fn footer(exit: i32, took: Duration) -> String {
    format!("[exit:{exit} | {}]", human_duration(took))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn captured(bytes: &[u8], budget: Budget) -> (Presented, String) {
        let folder = tempfile::tempdir().expect("a folder");
        let out = folder.path().join("out");
        let mut capture = Capture::new(budget, Some(Overflow { folder: out.clone(), name: "cmd-1".into() }));
        for chunk in bytes.chunks(7) {
            capture.push(chunk);
        }
        let it = capture.finish();
        let name = it.overflow_path.as_deref().and_then(|path| path.rsplit('/').next().map(str::to_owned));
        let saved = name.map_or(String::new(), |name| {
            String::from_utf8_lossy(&fs::read(out.join(name)).expect("it was saved")).into_owned()
        });
        (it, saved)
    }

    fn shown(bytes: &[u8]) -> Presented {
        captured(bytes, Budget::TYPED).0
    }

    fn numbers(to: u32) -> String {
        (1..=to).map(|n| format!("{n}\n")).collect()
    }

    #[test]
    fn colours_go_and_text_in_any_language_stays() {
        assert_eq!(shown("\x1b[31mrot\x1b[0m\x1b]0;title\x07 \u{4f60}\u{597d}\n".as_bytes()).text, "rot 你好\n");
        let chinese = "漢字漢字漢字漢字\n".repeat(500);
        assert_eq!(shown(chinese.as_bytes()).text, chinese);
    }

    #[test]
    fn a_live_view_has_whole_characters_and_their_colours_wherever_the_bytes_are_cut() {
        let bytes = "ä\x1b[31m漢\x1b[0m字 \x1b[1m👩".as_bytes();
        let mut capture = Capture::new(Budget::RUN, None);
        let whole = capture.push(bytes);
        assert_eq!((whole.text.as_str(), whole.colours.len()), ("ä漢字 👩", 3));
        for cut in 0..bytes.len() {
            let mut capture = Capture::new(Budget::RUN, None);
            let mut parts = capture.push(&bytes[..cut]);
            parts.push(&capture.push(&bytes[cut..]));
            assert_eq!(parts, whole, "cut at {cut}");
        }
    }

    #[test]
    fn a_progress_bar_is_shown_in_its_last_state() {
        let it = shown(b"\x1b[31mred\x1b[0m\n\x1b[33m10%\r\x1b[32m99%\x1b[0m done\r\nend\n");
        let at: Vec<(u64, &str)> = it.colours.iter().map(|it| (it.at, it.sgr.as_str())).collect();
        assert_eq!(it.text, "red\n99% done\nend\n");
        assert_eq!(at, [(0, "31"), (3, "0"), (4, "33"), (4, "32"), (7, "0")], "its colours are where they are seen");
        assert_eq!(shown(b"10%\r50%\r100%\ndone\r\n").text, "100%\ndone\n");
    }

    #[test]
    fn bytes_that_are_no_text_are_named_not_shown() {
        for bytes in [&b"PNG\0\x01\x02"[..], b"\xff\xfe\xfd", b"\x01\x02\x03abc"] {
            let it = shown(bytes);
            assert!(it.text.starts_with("[error] binary output ("), "{}", it.text);
        }
    }

    #[test]
    fn a_last_character_that_is_not_whole_hides_nothing() {
        assert_eq!(shown(b"cut \xe4\xbd").text, "cut \u{fffd}");
    }

    #[test]
    fn a_long_output_says_how_much_is_missing_and_where_it_is() {
        let long: String = (0..5000).map(|i| format!("line {i}\n")).collect();
        let (it, saved) = captured(long.as_bytes(), Budget::TYPED);
        let cut = it.truncated.expect("it was cut");
        assert_eq!((cut.lines_total, cut.bytes_total), (5000, long.len() as u64));
        assert_eq!(it.text.lines().filter(|l| l.starts_with("line ")).count() as u64, 5000 - cut.lines_omitted);
        assert!(it.text.contains(&format!("…[truncated {} of 5000 lines]\n", cut.lines_omitted)), "{}", it.text);
        let path = it.overflow_path.as_deref().expect("it was saved");
        let told = format!(
            "line 4999\n--- output truncated (5000 lines, 47.7KB) ---\nFull output: {path}\nExplore: grep pattern=<pattern> path={path}\n         read path={path} offset=4901 limit=100\n"
        );
        assert!(it.text.ends_with(&told), "{}", &it.text[it.text.len() - 400..]);
        assert!(it.text.len() < Budget::TYPED.bytes + 500);
        assert_eq!(saved, long);
    }

    #[test]
    fn two_hundred_lines_pass_and_one_more_is_cut_in_these_words() {
        let (it, saved) = captured(numbers(200).as_bytes(), Budget::RUN);
        assert_eq!((it.text, it.truncated, saved), (numbers(200), None, String::new()));
        let (it, saved) = captured(numbers(201).as_bytes(), Budget::RUN);
        let path = it.overflow_path.as_deref().expect("it was saved");
        let expected = format!(
            "--- output truncated (201 lines, 696B) ---
Full output: {path}
Explore: cat {path} | grep <pattern>
         cat {path} | tail 100
"
        );
        let end: String = (42..=201).map(|n| format!("{n}\n")).collect();
        assert_eq!((it.text, saved), (numbers(40) + "…[truncated 1 of 201 lines]\n" + &end + &expected, numbers(201)));
        // A last line without a newline counts.
        let (it, _) = captured(format!("{}x", numbers(200)).as_bytes(), Budget::RUN);
        assert_eq!(it.truncated.map(|cut| (cut.lines_total, cut.lines_omitted)), Some((201, 1)));
    }

    #[test]
    fn a_long_output_keeps_40_lines_of_its_start_and_160_of_its_end() {
        let (it, _) = captured(numbers(9000).as_bytes(), Budget::RUN);
        let told: Vec<&str> = it.text.lines().collect();
        assert_eq!((told[39], told[40], told[41]), ("40", "…[truncated 8800 of 9000 lines]", "8841"));
        assert_eq!((told[200], told[201]), ("9000", "--- output truncated (9000 lines, 42.9KB) ---"));
    }

    #[test]
    fn a_long_line_is_cut_after_a_whole_character_and_the_way_on_is_true() {
        let family = "\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467}";
        let text = format!("short\n{}\nend\n", family.repeat(3_000));
        let (it, saved) = captured(text.as_bytes(), Budget::RUN);
        let kept = family.repeat(400);
        let path = it.overflow_path.expect("it was saved");
        let (from, to) = (kept.len() + 1, kept.len() + 2000);
        let expected = format!(
            "short\n{kept}…[13000 more characters]\nend\nLong lines are cut. Line 2 goes on: sed -n 2p {path} | cut -b {from}-{to}\n"
        );
        assert_eq!((it.text, saved), (expected, text));
        // A line may be long in any state of a progress bar, and at the end without a newline.
        let (it, _) = captured(format!("{}\r100%\n{}", "=".repeat(5000), "x".repeat(2001)).as_bytes(), Budget::TYPED);
        assert!(it.text.starts_with(&format!("100%\n{}…[1 more characters]\n", "x".repeat(2000))), "{}", it.text);
    }

    #[test]
    fn single_bytes_that_are_no_text_are_replaced_and_counted() {
        let (it, _) = captured(b"/home/me\n\x1b[31mcaf\xe9\x1b[0m red\nx\0y\n", Budget::TYPED);
        assert_eq!(
            it.text,
            "/home/me\ncaf\u{fffd} red\nx\u{fffd}y\n…[bytes that are not text, shown as \u{fffd}: 2]\n"
        );
        let noise: Vec<u8> = (0..4096_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        assert!(shown(&noise).text.starts_with("[error] binary output (4KB)"), "{}", shown(&noise).text);
    }

    #[test]
    fn a_tenth_of_control_characters_is_text_and_more_is_not_and_colours_do_not_count() {
        let with = |n: usize| [vec![1; n], vec![b'x'; 100 - n]].concat();
        assert!(!shown(&with(9)).text.starts_with("[error]"));
        assert!(!shown(&with(10)).text.starts_with("[error]"));
        assert!(shown(&with(11)).text.starts_with("[error] binary output (100B)"));
        assert_eq!(shown("\x1b[32mok\x1b[0m \x1b[31mFAIL\x1b[0m\n".repeat(20).as_bytes()).text, "ok FAIL\n".repeat(20));
        assert_eq!(shown(b"a|\x08/\x08-\x08\\\x08b\n").text, "a|/-\\b\n");
        let (it, saved) = captured(b"PK\0\x01", Budget::RUN);
        let path = it.overflow_path.expect("it was saved");
        assert!(path.ends_with("/out/cmd-1.bin"), "{path}");
        assert_eq!(it.text, format!("[error] binary output (4B). Use: cat -b {path}\n"));
        assert_eq!(saved.as_bytes(), b"PK\0\x01");
    }

    #[test]
    fn a_long_failure_keeps_its_last_words() {
        let long: String = (0..5000).map(|i| format!("line {i}\n")).collect::<String>() + "FATAL: the reason\n";
        let it = shown(long.as_bytes());
        assert!(it.text.starts_with("line 0\n") && it.text.contains("FATAL: the reason\n"));
    }

    #[test]
    fn the_footer_tells_cost_in_the_largest_fitting_unit() {
        let told = [12, 1000, 3210, 45_300, 125_000].map(|ms| footer(0, Duration::from_millis(ms)));
        assert_eq!(told, ["[exit:0 | 12ms]", "[exit:0 | 1s]", "[exit:0 | 3.2s]", "[exit:0 | 45s]", "[exit:0 | 2m05s]"]);
        assert_eq!([182, 186_368, 1_258_291].map(human_size), ["182B", "182KB", "1.2MB"]);
    }

    /// Broken build: one that tells stderr only after a failure, so that `npm test; echo done` hides a missing runner.
    #[test]
    fn stderr_is_told_after_a_success_too_and_nothing_says_so() {
        let text = compose("done\n", "", "sh: tap: not found\n", "no output", 0, Duration::from_millis(3));
        assert_eq!(text, "done\n[stderr] sh: tap: not found\n[exit:0 | 3ms]");
        let text = compose("", "", "", "no match in 41 files", 1, Duration::from_millis(3));
        assert_eq!(text, "no match in 41 files\n[exit:1 | 3ms]");
    }

    #[test]
    fn a_failure_always_says_why() {
        let text = compose("half\n", "", "no such file", "no output", 1, Duration::from_millis(3));
        assert_eq!(text, "half\n[stderr] no such file\n[exit:1 | 3ms]");
    }
}
