//! Layer 2: what a tool printed, made fit for a model — stripped, guarded, bounded, with a footer.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::PathBuf;
use std::time::Duration;

use crate::event::Truncated;

mod strip; // terminal sequences out of a stream of bytes

pub use strip::Stripper;

/// The most of a tool's output that a model reads, bytes.
pub const BUDGET: usize = 16_000;
/// The most of a failing command's stderr, bytes; its end is kept.
const STDERR_BUDGET: usize = 8_000;
/// The most that one output may take on the disk, bytes.
const MAX_SPILL: u64 = 64 << 20;

/// Where the whole of an output goes when it is too long to show.
#[derive(Debug, Clone)]
pub struct Overflow {
    /// The Session's own folder for outputs.
    pub folder: PathBuf,
    /// The file's name without its ending: `cmd-3`.
    pub name: String,
}

/// One stream of a tool's output, taken in as it comes; memory stays bounded however much that is.
#[derive(Debug)]
pub struct Capture {
    budget: usize,
    overflow: Option<Overflow>,
    stripper: Stripper,
    /// The first `budget` bytes, stripped.
    head: Vec<u8>,
    /// The last bytes after the head, stripped: up to twice `budget`, cut back when full.
    tail: Vec<u8>,
    /// Stripped bytes seen.
    shown: u64,
    lines: u64,
    guard: Guard,
    /// The raw bytes until it is known that they need a file.
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

#[derive(Debug, Default)]
struct Guard {
    nul: bool,
    invalid: bool,
    control: u64,
    /// The start of a character whose rest has not come yet.
    partial: Vec<u8>,
}

impl Guard {
    fn see(&mut self, bytes: &[u8]) {
        self.nul |= bytes.contains(&0);
        self.control +=
            bytes.iter().filter(|b| b.is_ascii_control() && !matches!(b, b'\n' | b'\t' | b'\r' | 0x1b)).count() as u64;
        if self.invalid {
            return;
        }
        let joined;
        let all = if self.partial.is_empty() {
            bytes
        } else {
            joined = [self.partial.as_slice(), bytes].concat();
            &joined
        };
        match std::str::from_utf8(all) {
            Ok(_) => self.partial.clear(),
            Err(e) if e.error_len().is_none() => self.partial = all[e.valid_up_to()..].to_vec(),
            Err(_) => self.invalid = true,
        }
    }
}

/// What a stream came to.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Presented {
    /// What the model reads, without the footer.
    pub text: String,
    /// What was left out of it.
    pub truncated: Option<Truncated>,
    /// Where all of it is.
    pub overflow_path: Option<PathBuf>,
    /// Raw bytes of the stream.
    pub bytes: u64,
}

impl Capture {
    /// A stream of which the model reads at most [`BUDGET`] bytes.
    pub fn new(overflow: Option<Overflow>) -> Capture {
        Capture::with_budget(BUDGET, overflow)
    }

    /// A failing command's stderr.
    pub fn stderr() -> Capture {
        Capture::with_budget(STDERR_BUDGET, None)
    }

    fn with_budget(budget: usize, overflow: Option<Overflow>) -> Capture {
        Capture {
            budget,
            overflow,
            stripper: Stripper::default(),
            head: Vec::new(),
            tail: Vec::new(),
            shown: 0,
            lines: 0,
            guard: Guard::default(),
            held: Vec::new(),
            raw: 0,
            spill: Spill::NotNeeded,
        }
    }

    /// Takes in what came, and returns it stripped, for a live view.
    pub fn push(&mut self, bytes: &[u8]) -> String {
        self.guard.see(bytes);
        self.keep_raw(bytes);
        let stripped = self.stripper.strip(bytes);
        self.shown += stripped.len() as u64;
        self.lines += stripped.iter().filter(|b| **b == b'\n').count() as u64;
        let room = self.budget.saturating_sub(self.head.len()).min(stripped.len());
        self.head.extend_from_slice(&stripped[..room]);
        self.tail.extend_from_slice(&stripped[room..]);
        if self.tail.len() > 2 * self.budget {
            self.tail.drain(..self.tail.len() - self.budget);
        }
        String::from_utf8_lossy(&stripped).into_owned()
    }

    fn keep_raw(&mut self, bytes: &[u8]) {
        self.raw += bytes.len() as u64;
        let Some(overflow) = &self.overflow else { return };
        if matches!(self.spill, Spill::NotNeeded) {
            self.held.extend_from_slice(bytes);
            if self.held.len() <= self.budget {
                return;
            }
            self.spill = match open_spill(overflow) {
                Ok((file, path)) => Spill::Open(file, path),
                Err(e) => Spill::Failed(e.to_string()),
            };
            let held = std::mem::take(&mut self.held);
            self.write_spill(&held, 0);
        } else {
            let before = self.raw - bytes.len() as u64;
            self.write_spill(bytes, before);
        }
    }

    fn write_spill(&mut self, bytes: &[u8], before: u64) {
        let Spill::Open(file, _) = &mut self.spill else { return };
        let room = usize::try_from(MAX_SPILL.saturating_sub(before)).unwrap_or(usize::MAX).min(bytes.len());
        if let Err(e) = file.write_all(&bytes[..room]) {
            self.spill = Spill::Failed(e.to_string());
        }
    }

    /// What the model reads of it. On failure the end is kept as well as the start.
    pub fn finish(mut self, ok: bool) -> Presented {
        if !self.guard.partial.is_empty() {
            self.guard.invalid = true;
        }
        let binary = self.guard.nul || self.guard.invalid || self.guard.control * 10 > self.raw;
        if binary {
            return self.finish_binary();
        }
        let whole = self.shown <= self.budget as u64;
        if whole {
            let text = collapse_returns(&String::from_utf8_lossy(&self.head));
            return Presented { text, truncated: None, overflow_path: None, bytes: self.raw };
        }
        self.finish_cut(ok)
    }

    fn finish_binary(self) -> Presented {
        let size = human_size(self.raw);
        let saved = match &self.spill {
            Spill::Open(_, path) => format!("the saved bytes: xxd {} | head", path.display()),
            Spill::NotNeeded | Spill::Failed(_) => "a pipe to xxd, wc or file".to_owned(),
        };
        Presented {
            text: format!("[error] binary output ({size}). Use: {saved}\n"),
            truncated: Some(Truncated { lines_total: self.lines, lines_omitted: self.lines, bytes_total: self.raw }),
            overflow_path: self.spill_path(),
            bytes: self.raw,
        }
    }

    fn spill_path(&self) -> Option<PathBuf> {
        match &self.spill {
            Spill::Open(_, path) => Some(path.clone()),
            Spill::NotNeeded | Spill::Failed(_) => None,
        }
    }

    fn finish_cut(self, ok: bool) -> Presented {
        let (head_budget, tail_budget) = if ok { (self.budget, 0) } else { (self.budget * 2 / 5, self.budget * 3 / 5) };
        let head = String::from_utf8_lossy(cut_end(&self.head, head_budget)).into_owned();
        let rest = [&self.head[head.len().min(self.head.len())..], self.tail.as_slice()].concat();
        let tail = String::from_utf8_lossy(cut_start(&rest, tail_budget)).into_owned();
        let lines_total = self.lines.max(1);
        let kept = (head.matches('\n').count() + tail.matches('\n').count()) as u64;
        let truncated =
            Truncated { lines_total, lines_omitted: lines_total.saturating_sub(kept), bytes_total: self.raw };

        let mut text = collapse_returns(&head);
        end_line(&mut text);
        text.push_str(&format!("…[truncated {} of {lines_total} lines]\n", truncated.lines_omitted));
        if !tail.is_empty() {
            text.push_str(&collapse_returns(&tail));
            end_line(&mut text);
        }
        let size = human_size(self.raw);
        text.push_str(&format!("--- output truncated ({lines_total} lines, {size}) ---\n"));
        match &self.spill {
            Spill::Open(_, path) => {
                let path = path.display();
                let from = lines_total.saturating_sub(99);
                text.push_str(&format!("Full output: {path}\nExplore: grep pattern=<pattern> path={path}\n         read path={path} offset={from} limit=100\n"));
            }
            Spill::Failed(e) => text.push_str(&format!("Full output could not be saved: {e}\n")),
            Spill::NotNeeded => {}
        }
        Presented { text, truncated: Some(truncated), overflow_path: self.spill_path(), bytes: self.raw }
    }
}

fn open_spill(overflow: &Overflow) -> std::io::Result<(File, PathBuf)> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&overflow.folder)?;
    let path = overflow.folder.join(format!("{}.txt", overflow.name));
    let file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&path)?;
    Ok((file, path))
}

fn end_line(text: &mut String) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
}

/// At most `budget` bytes from the start, cut after a line where there is one, else after a character.
fn cut_end(bytes: &[u8], budget: usize) -> &[u8] {
    if bytes.len() <= budget {
        return bytes;
    }
    let slice = &bytes[..budget];
    match slice.iter().rposition(|b| *b == b'\n') {
        Some(at) => &slice[..=at],
        None => &slice[..char_floor(bytes, budget)],
    }
}

/// At most `budget` bytes from the end, cut like [`cut_end`].
fn cut_start(bytes: &[u8], budget: usize) -> &[u8] {
    if bytes.len() <= budget {
        return bytes;
    }
    let from = bytes.len() - budget;
    match bytes[from..].iter().position(|b| *b == b'\n') {
        Some(at) if from + at + 1 < bytes.len() => &bytes[from + at + 1..],
        Some(_) | None => {
            let mut from = from;
            while from < bytes.len() && bytes[from] & 0b1100_0000 == 0b1000_0000 {
                from += 1;
            }
            &bytes[from..]
        }
    }
}

fn char_floor(bytes: &[u8], mut at: usize) -> usize {
    while at > 0 && bytes.get(at).is_some_and(|b| b & 0b1100_0000 == 0b1000_0000) {
        at -= 1;
    }
    at
}

/// A progress bar that drew over itself is shown in its last state.
fn collapse_returns(text: &str) -> String {
    if !text.contains('\r') {
        return text.to_owned();
    }
    text.split_inclusive('\n')
        .map(|line| {
            let (body, end) = match line.strip_suffix('\n') {
                Some(body) => (body.trim_end_matches('\r'), "\n"),
                None => (line, ""),
            };
            format!("{}{end}", body.rsplit('\r').next().unwrap_or(body))
        })
        .collect()
}

/// The model's text of a finished call: output, stderr where it helps, footer.
pub fn compose(stdout: &str, stderr: &str, exit: i32, took: Duration) -> String {
    let mut text = stdout.to_owned();
    end_line(&mut text);
    // A failure always says why; a success that printed nothing else is told by its stderr.
    if !stderr.trim().is_empty() && (exit != 0 || stdout.trim().is_empty()) {
        text.push_str("[stderr] ");
        text.push_str(stderr);
        end_line(&mut text);
    }
    text.push_str(&footer(exit, took));
    text
}

/// `[exit:0 | 12ms]`, the last line of every result.
pub fn footer(exit: i32, took: Duration) -> String {
    format!("[exit:{exit} | {}]", human_duration(took))
}

/// `12ms`, `3.2s`, `45s`, `2m05s`.
pub fn human_duration(took: Duration) -> String {
    let ms = took.as_millis();
    match ms {
        0..1000 => format!("{ms}ms"),
        1000..10_000 => format!("{}s", strip_zero(ms as f64 / 1000.0)),
        10_000..60_000 => format!("{}s", ms / 1000),
        _ => format!("{}m{:02}s", ms / 60_000, ms / 1000 % 60),
    }
}

/// `182B`, `182KB`, `1.2MB`: 1024 based, one decimal, no `.0`.
pub fn human_size(bytes: u64) -> String {
    let mut size = bytes as f64;
    let mut unit = "B";
    for larger in ["KB", "MB", "GB", "TB"] {
        if size < 1024.0 {
            break;
        }
        size /= 1024.0;
        unit = larger;
    }
    format!("{}{unit}", strip_zero(size))
}

fn strip_zero(n: f64) -> String {
    let text = format!("{n:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(bytes: &[u8], ok: bool) -> Presented {
        let folder = tempfile::tempdir().expect("a folder");
        let mut capture = Capture::new(Some(Overflow { folder: folder.path().join("out"), name: "cmd-1".into() }));
        for chunk in bytes.chunks(7) {
            capture.push(chunk);
        }
        capture.finish(ok)
    }

    #[test]
    fn colours_go_and_text_in_any_language_stays() {
        assert_eq!(shown("\x1b[31mrot\x1b[0m\x1b]0;title\x07 \u{4f60}\u{597d}\n".as_bytes(), true).text, "rot 你好\n");
        let chinese = "漢字".repeat(2000);
        assert_eq!(shown(chinese.as_bytes(), true).text, chinese);
    }

    #[test]
    fn a_progress_bar_is_shown_in_its_last_state() {
        assert_eq!(shown(b"10%\r50%\r100%\ndone\r\n", true).text, "100%\ndone\n");
    }

    #[test]
    fn bytes_that_are_no_text_are_named_not_shown() {
        for bytes in [&b"PNG\0\x01\x02"[..], b"\xff\xfe\xfd", b"\x01\x02\x03abc", b"cut \xe4\xbd"] {
            let it = shown(bytes, true);
            assert!(it.text.starts_with("[error] binary output ("), "{}", it.text);
        }
    }

    #[test]
    fn a_long_output_says_how_much_is_missing_and_where_it_is() {
        let long: String = (0..5000).map(|i| format!("line {i}\n")).collect();
        let folder = tempfile::tempdir().expect("a folder");
        let mut capture = Capture::new(Some(Overflow { folder: folder.path().to_owned(), name: "cmd-3".into() }));
        capture.push(long.as_bytes());
        let it = capture.finish(true);
        let cut = it.truncated.expect("it was cut");
        assert_eq!((cut.lines_total, cut.bytes_total), (5000, long.len() as u64));
        assert_eq!(it.text.lines().filter(|l| l.starts_with("line ")).count() as u64, 5000 - cut.lines_omitted);
        assert!(it.text.contains(&format!(
            "…[truncated {} of 5000 lines]\n--- output truncated (5000 lines, 47.7KB) ---\n",
            cut.lines_omitted
        )));
        assert!(it.text.len() < BUDGET + 500);
        assert_eq!(fs::read_to_string(it.overflow_path.expect("saved")).expect("read"), long);
    }

    #[test]
    fn a_long_failure_keeps_its_last_words() {
        let long: String = (0..5000).map(|i| format!("line {i}\n")).collect::<String>() + "FATAL: the reason\n";
        let it = shown(long.as_bytes(), false);
        assert!(it.text.starts_with("line 0\n") && it.text.contains("FATAL: the reason\n"));
    }

    #[test]
    fn one_endless_line_is_cut_after_a_whole_character() {
        let it = shown("ä".repeat(20_000).as_bytes(), true);
        assert!(it.text.starts_with('ä') && !it.text.contains('\u{fffd}'));
    }

    #[test]
    fn the_footer_tells_cost_in_the_largest_fitting_unit() {
        let told = [12, 1000, 3210, 45_300, 125_000].map(|ms| footer(0, Duration::from_millis(ms)));
        assert_eq!(told, ["[exit:0 | 12ms]", "[exit:0 | 1s]", "[exit:0 | 3.2s]", "[exit:0 | 45s]", "[exit:0 | 2m05s]"]);
        assert_eq!([182, 186_368, 1_258_291].map(human_size), ["182B", "182KB", "1.2MB"]);
    }

    #[test]
    fn a_failure_always_says_why() {
        let text = compose("half\n", "no such file", 1, Duration::from_millis(3));
        assert_eq!(text, "half\n[stderr] no such file\n[exit:1 | 3ms]");
    }
}
