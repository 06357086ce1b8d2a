//! Turns a tool's raw output into the text that the model reads: stripped, checked for binary data, bounded, with a
//! footer.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::PathBuf;
use std::time::Duration;

use crate::protocol::error::{Code, Error};
use crate::protocol::event::{Colouring, Printed, Truncated};
use crate::storage::outputs::{MAX_SPILL, shown_path};
use crate::text::human::{human_duration, human_size};
use crate::text::media::{Guard, media_type};
use crate::text::strip::Stripper;

mod cut; // the start and the end of a text, nothing that a person sees as one cut in two

use cut::{AROUND, colours_of, first_of, last_of, last_states, pieces};

/// How much of a stream a model reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// The most bytes.
    pub bytes: usize,
    /// The most lines.
    pub lines: u64,
    /// How many tenths of the budget go to the start of a program's output; the rest goes to its end, where the outcome
    /// of a test run is. Text from files has its start only, because the model can read on.
    start_tenths: u64,
    explore: Explore,
}

/// The toolset whose calls are suggested for reading the omitted part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Explore {
    Typed,
    Run,
}

impl Budget {
    /// The budget of a typed tool.
    pub const TYPED: Budget = Budget { bytes: 16_000, lines: u64::MAX, start_tenths: 2, explore: Explore::Typed };
    /// The budget of `run`.
    pub const RUN: Budget = Budget { bytes: 51_200, lines: 200, start_tenths: 2, explore: Explore::Run };

    /// The budget of stderr, mostly for its end, which usually holds the reason of a failure.
    pub const fn stderr(self) -> Budget {
        Budget { bytes: 8_000, lines: 100, start_tenths: 3, explore: self.explore }
    }

    fn share(self, tenths: u64) -> (usize, u64) {
        let lines = if self.lines == u64::MAX { u64::MAX } else { self.lines * tenths / 10 };
        (self.bytes * usize::try_from(tenths).unwrap_or(10) / 10, lines)
    }
}

/// Where an output is saved when it is too long to show.
#[derive(Debug, Clone)]
pub struct Overflow {
    /// The Session's folder for saved outputs.
    pub folder: PathBuf,
    /// The file's name without its extension: `cmd-3`.
    pub name: String,
}

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
    overflow: Option<Overflow>,
    source: Option<Source>,
    /// Whether the stream is text from files, which is shown without terminal effects.
    is_of_files: bool,
    stripper: Stripper,
    /// The first bytes of a character whose remaining bytes have not arrived.
    cut: Vec<u8>,
    /// The first stripped bytes: the budget and `AROUND` more, which the search for a boundary needs.
    head: Vec<u8>,
    /// The last stripped bytes after the head: up to twice the budget, cut back when full.
    tail: Vec<u8>,
    /// The number of stripped bytes so far.
    shown: u64,
    newlines: u64,
    ends_open: bool,
    guard: Guard,
    /// The raw bytes, until the output exceeds the budget and is saved.
    held: Vec<u8>,
    raw: u64,
    spill: Spill,
}

#[derive(Debug)]
enum Spill {
    NotNeeded,
    Open(File, PathBuf),
    Failed(String),
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
            overflow,
            source: None,
            is_of_files: false,
            stripper: Stripper::with_colours(),
            cut: Vec::new(),
            head: Vec::new(),
            tail: Vec::new(),
            shown: 0,
            newlines: 0,
            ends_open: false,
            guard: Guard::default(),
            held: Vec::new(),
            raw: 0,
            spill: Spill::NotNeeded,
        }
    }

    /// States which file the stream carries.
    pub fn is_of(&mut self, source: Option<Source>) {
        self.is_of_files |= source.is_some();
        self.source = source;
    }

    /// States that the stream is text from files. A return in it then hides nothing.
    pub fn is_of_files(&mut self) {
        self.is_of_files = true;
    }

    /// The text as a terminal would show it at the end: only the last state of a progress bar.
    fn settled(&self, text: &str) -> String {
        if self.is_of_files { text.replace("\r\n", "\n") } else { pieces(text, &last_states(text)) }
    }

    /// Adds a note if control bytes were stripped from a file's text.
    fn told_of_controls(&self, text: &mut String) {
        let left_out = self.raw.saturating_sub(self.shown);
        if self.is_of_files && left_out > 0 {
            end_line(text);
            text.push_str(&format!("…[{left_out} bytes of terminal control are not shown]\n"));
        }
    }

    /// Adds bytes to the stream; returns them stripped, for a live view.
    pub fn push(&mut self, bytes: &[u8]) -> Printed {
        self.guard.see(bytes);
        self.keep_raw(bytes);
        let stripped = self.stripper.strip(bytes);
        let colours = if self.is_of_files { Vec::new() } else { self.stripper.new_colours(self.shown) };
        self.shown += stripped.len() as u64;
        self.newlines += memchr::memchr_iter(b'\n', &stripped).count() as u64;
        if let Some(last) = stripped.last() {
            self.ends_open = *last != b'\n';
        }
        let room = (self.budget.bytes + AROUND).saturating_sub(self.head.len()).min(stripped.len());
        self.head.extend_from_slice(&stripped[..room]);
        self.tail.extend_from_slice(&stripped[room..]);
        if self.tail.len() > 2 * self.budget.bytes {
            self.tail.drain(..self.tail.len() - self.budget.bytes);
        }
        self.live(stripped, colours)
    }

    /// The new text for a live view; an incomplete character waits for its remaining bytes.
    fn live(&mut self, new: Vec<u8>, mut colours: Vec<Colouring>) -> Printed {
        let mut bytes = std::mem::take(&mut self.cut);
        colours.iter_mut().for_each(|it| it.at += bytes.len() as u64);
        bytes.extend(new);
        if let Err(e) = std::str::from_utf8(&bytes) {
            let valid = e.valid_up_to();
            match e.error_len() {
                None => self.cut = bytes.split_off(valid),
                // After invalid UTF-8, positions in the bytes differ from positions in the text.
                Some(_) => colours.retain(|it| it.at <= valid as u64),
            }
        }
        Printed { text: String::from_utf8_lossy(&bytes).into_owned(), colours }
    }

    fn lines(&self) -> u64 {
        self.newlines + u64::from(self.ends_open)
    }

    fn keep_raw(&mut self, bytes: &[u8]) {
        self.raw += bytes.len() as u64;
        if self.overflow.is_none() {
            return;
        }
        if matches!(self.spill, Spill::NotNeeded) {
            self.held.extend_from_slice(bytes);
            if self.held.len() > self.budget.bytes {
                self.save();
            }
        } else {
            let before = self.raw - bytes.len() as u64;
            self.write_spill(bytes, before);
        }
    }

    /// Starts to save the stream to its file.
    fn save(&mut self) {
        let Some(overflow) = &self.overflow else { return };
        if !matches!(self.spill, Spill::NotNeeded) {
            return;
        }
        self.spill = match open_spill(overflow) {
            Ok((file, path)) => Spill::Open(file, path),
            Err(e) => Spill::Failed(e.to_string()),
        };
        let held = std::mem::take(&mut self.held);
        self.write_spill(&held, 0);
    }

    fn write_spill(&mut self, bytes: &[u8], before: u64) {
        let Spill::Open(file, _) = &mut self.spill else { return };
        let room = usize::try_from(MAX_SPILL.saturating_sub(before)).unwrap_or(usize::MAX).min(bytes.len());
        if let Err(e) = file.write_all(&bytes[..room]) {
            self.spill = Spill::Failed(e.to_string());
        }
    }

    /// Finishes the stream for the model. The text of a long stream is its start and its end; of files, its start.
    pub fn finish(mut self) -> Presented {
        if self.guard.is_binary(self.raw) {
            return self.finish_binary();
        }
        if self.shown <= self.budget.bytes as u64 && self.lines() <= self.budget.lines {
            let shown = String::from_utf8_lossy(&self.head);
            let mut text = self.settled(&shown);
            // In invalid UTF-8 the positions of colours do not match the text.
            let has_colours = shown.as_bytes() == self.head && !self.is_of_files;
            let colours = if has_colours { self.stripper.take_colours() } else { Vec::new() };
            let colours = colours_of(colours, &last_states(&shown));
            self.told_of_controls(&mut text);
            return Presented { text, colours, bytes: self.raw, ..Presented::default() };
        }
        self.save();
        self.finish_cut()
    }

    fn finish_binary(mut self) -> Presented {
        let lines = self.lines();
        let truncated = Some(Truncated { lines_total: lines, lines_omitted: lines, bytes_total: self.raw });
        if let Some(source) = &self.source {
            let error = binary_file(&source.path, self.guard.start(), self.raw);
            return Presented { truncated, bytes: self.raw, binary: Some(error), ..Presented::default() };
        }
        self.save();
        // The extension `.bin` marks a saved output that is not text.
        if let Spill::Open(_, path) = &mut self.spill {
            let renamed = path.with_extension("bin");
            if fs::rename(&path, &renamed).is_ok() {
                *path = renamed;
            }
        }
        let path = self.saved_path();
        let fix = match (&path, self.budget.explore) {
            (Some(path), Explore::Run) => format!("cat -b {path}"),
            (None, Explore::Run) => "wc -c, or cat -b of the file".to_owned(),
            (Some(_) | None, Explore::Typed) => "a redirection into a file, or a pipe to xxd, wc or file".to_owned(),
        };
        let kind = if media_type(self.guard.start()).is_some() { "image" } else { "output" };
        Presented {
            text: format!("[error] binary {kind} ({}). Use: {fix}\n", human_size(self.raw)),
            truncated,
            overflow_path: path,
            bytes: self.raw,
            ..Presented::default()
        }
    }

    fn saved_path(&self) -> Option<String> {
        match &self.spill {
            Spill::Open(_, path) => Some(shown_path(path)),
            Spill::NotNeeded | Spill::Failed(_) => None,
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
        let truncated =
            Truncated { lines_total, lines_omitted: lines_total.saturating_sub(kept_lines), bytes_total: self.raw };

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
        self.told_of_controls(&mut text);
        text.push_str(&format!("--- output truncated ({lines_total} lines, {}) ---\n", human_size(self.raw)));
        if let Some(Source { path }) = &self.source {
            let (from, to) = (kept_lines + 1, (kept_lines + 200).min(lines_total));
            text.push_str(&format!("Next: sed -n '{from},{to}p' {path}\n"));
            let overflow_path = self.saved_path();
            return Presented {
                text,
                truncated: Some(truncated),
                overflow_path,
                bytes: self.raw,
                ..Presented::default()
            };
        }
        if self.overflow.is_none() {
            text.push_str("Not saved: outside of a session nothing is. Ask for less: grep, head, tail\n");
        }
        match (&self.spill, self.saved_path()) {
            (Spill::Open(..), Some(path)) => {
                text.push_str(&self.explore(&path, lines_total));
                if self.raw > MAX_SPILL {
                    text.push_str(&format!("Only its first {} were saved.\n", human_size(MAX_SPILL)));
                }
            }
            (Spill::Failed(e), _) => text.push_str(&format!("Full output could not be saved: {e}\n")),
            (Spill::NotNeeded | Spill::Open(..), _) => {}
        }
        let overflow_path = self.saved_path();
        Presented { text, truncated: Some(truncated), overflow_path, bytes: self.raw, ..Presented::default() }
    }

    fn explore(&self, path: &str, lines_total: u64) -> String {
        let from = lines_total.saturating_sub(99).max(1);
        match self.budget.explore {
            Explore::Run => {
                format!("Full output: {path}\nExplore: cat {path} | grep <pattern>\n         cat {path} | tail 100\n")
            }
            Explore::Typed => format!(
                "Full output: {path}\nExplore: grep pattern=<pattern> path={path}\n         read path={path} offset={from} limit=100\n"
            ),
        }
    }
}

/// The error for a file that is not text: `[error] cat: binary image file (182KB). Use: see photo.png`.
pub(crate) fn binary_file(path: &str, start: &[u8], bytes: u64) -> Error {
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

fn open_spill(overflow: &Overflow) -> std::io::Result<(File, PathBuf)> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&overflow.folder)?;
    let mut name = overflow.name.clone();
    // A fork shares the saved outputs of the Session it was copied from, so an existing file is never overwritten.
    for more in 2.. {
        let path = overflow.folder.join(format!("{name}.txt"));
        if path.with_extension("bin").exists() {
            name = format!("{}-{more}", overflow.name);
            continue;
        }
        match fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => name = format!("{}-{more}", overflow.name),
            Ok(file) => return Ok((file, path)),
            Err(e) => return Err(e),
        }
    }
    Err(std::io::ErrorKind::AlreadyExists.into())
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
pub(crate) fn footer(exit: i32, took: Duration) -> String {
    format!("[exit:{exit} | {}]", human_duration(took))
}

#[cfg(test)]
mod tests {
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
        let chinese = "漢字".repeat(2000);
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
        let told = "line 4999\n--- output truncated (5000 lines, 47.7KB) ---\nFull output: .pixir/out/cmd-1.txt\nExplore: grep pattern=<pattern> path=.pixir/out/cmd-1.txt\n         read path=.pixir/out/cmd-1.txt offset=4901 limit=100\n";
        assert!(it.text.ends_with(told), "{}", &it.text[it.text.len() - 400..]);
        assert!(it.text.len() < Budget::TYPED.bytes + 500);
        assert_eq!(saved, long);
    }

    #[test]
    fn two_hundred_lines_pass_and_one_more_is_cut_in_these_words() {
        let (it, saved) = captured(numbers(200).as_bytes(), Budget::RUN);
        assert_eq!((it.text, it.truncated, saved), (numbers(200), None, String::new()));
        let (it, saved) = captured(numbers(201).as_bytes(), Budget::RUN);
        let expected = "--- output truncated (201 lines, 696B) ---
Full output: .pixir/out/cmd-1.txt
Explore: cat .pixir/out/cmd-1.txt | grep <pattern>
         cat .pixir/out/cmd-1.txt | tail 100
";
        let end: String = (42..=201).map(|n| format!("{n}\n")).collect();
        assert_eq!((it.text, saved), (numbers(40) + "…[truncated 1 of 201 lines]\n" + &end + expected, numbers(201)));
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
    fn a_line_too_long_for_any_budget_is_cut_after_a_whole_character_and_counted_in_bytes() {
        let family = "\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467}";
        let long = family.repeat(60_000 / family.len());
        let (it, saved) = captured(long.as_bytes(), Budget::RUN);
        let lines: Vec<&str> = it.text.lines().collect();
        let (start, told, end) = (lines[0], lines[1], lines[2]);
        assert_eq!((start.len() % family.len(), end.len() % family.len()), (0, 0), "no family is torn");
        assert!(start.len() > 10_000 && end.len() > 40_000, "{} and {}", start.len(), end.len());
        let expected = format!("…[truncated {} of {} bytes]", long.len() - start.len() - end.len(), long.len());
        assert_eq!((told, saved), (expected.as_str(), long));
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
        assert_eq!(it.text, "[error] binary output (4B). Use: cat -b .pixir/out/cmd-1.bin\n");
        assert_eq!(saved.as_bytes(), b"PK\0\x01");
    }

    #[test]
    fn a_long_failure_keeps_its_last_words() {
        let long: String = (0..5000).map(|i| format!("line {i}\n")).collect::<String>() + "FATAL: the reason\n";
        let it = shown(long.as_bytes());
        assert!(it.text.starts_with("line 0\n") && it.text.contains("FATAL: the reason\n"));
    }

    #[test]
    fn one_endless_line_is_cut_after_a_whole_character() {
        let it = shown("ä".repeat(20_000).as_bytes());
        assert!(it.text.starts_with('ä') && !it.text.contains('\u{fffd}'));
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
