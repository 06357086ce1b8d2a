//! Answers without end: a model that writes the same words over and over does not stop by itself.
//!
//! Two measures run along with the answer, each in constant time for a byte. [`Cycle`] recognizes a passage of up to 8 KB that
//! follows itself exactly. [`Lines`] recognizes a few lines that alternate, with an odd one between them. Repetition alone is no
//! fault: tables, drawings and data repeat too. So the answer ends only where more has repeated than a reader could want, and
//! sentences need less for that than rows.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use net::quoted;
use protocol::error::{Code, Error, Result};
use protocol::remedy::{ModelNeed, Remedy};

use super::Chunk;

/// The longest passage whose repetition is recognized, bytes.
const MAX_PERIOD: usize = 8 << 10;
/// Bytes that two places share before the text between them is taken for a passage.
const GRAM: usize = 24;
/// The latest bytes, which hold two places that are [`MAX_PERIOD`] apart.
const RING: usize = 2 * MAX_PERIOD;
/// Places that are remembered by their last [`GRAM`] bytes.
const PLACES: usize = 1 << 14;
/// The factor of the rolling hash.
const FACTOR: u64 = 0x0100_0000_01b3;
/// The weight of the first byte of [`GRAM`].
const FIRST: u64 = FACTOR.wrapping_pow(GRAM as u32 - 1);
/// The number of times that a long passage follows itself before it counts.
const MIN_TIMES: usize = 5;
/// The number of events in which the repetition arrives. A model that writes without end writes token by token. A text that
/// arrives in a few large pieces is complete already, and ending it would save nothing.
const MIN_EVENTS: u32 = 150;
/// The most repeated bytes of sentences in an answer.
const SENTENCES: usize = 8 << 10;
/// The same for rows: tables, drawings, code, data.
const ROWS: usize = 24 << 10;
/// The most repeated bytes of rows in the arguments of a call, which may write a file of data.
const ARGUMENTS: usize = 48 << 10;
/// Lines that may alternate.
const FEW_LINES: usize = 4;
/// By how many repeated lines one other line is outweighed.
const ODD_LINE: usize = 8;

/// The repetitions of one answer.
#[derive(Default)]
pub(super) struct TextLoop {
    text: Prose,
    reasoning: Prose,
    /// The call whose arguments arrive, and its repetitions.
    arguments: Option<(usize, Cycle)>,
}

impl TextLoop {
    /// Adds a part of the answer, which arrived in one event.
    ///
    /// # Errors
    /// `TEXT_LOOP` when the answer repeats itself without end.
    pub(super) fn add(&mut self, chunk: &Chunk) -> Result<()> {
        let (found, what) = match chunk {
            Chunk::Text(text) => (self.text.add(text), "text"),
            Chunk::Reasoning(text) => (self.reasoning.add(text), "reasoning"),
            Chunk::Call { index, args, .. } => {
                let (of, cycle) = self.arguments.get_or_insert_with(|| (*index, Cycle::default()));
                if of != index {
                    (*of, *cycle) = (*index, Cycle::default());
                }
                cycle.add(args.as_bytes());
                (cycle.found(Within::Arguments), "arguments")
            }
        };
        found.map_or(Ok(()), |found| Err(found.error(what)))
    }
}

/// Where a passage stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Within {
    /// In an answer or in reasoning.
    Text,
    /// There, in a block of code.
    Code,
    /// In the arguments of a call.
    Arguments,
}

/// What a passage is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Blank characters alone.
    Blank,
    /// Words, or one character: a reader needs neither a hundred times.
    Sentence,
    /// Anything else.
    Rows,
    /// A block of code with its fence.
    Fenced,
}

impl Kind {
    fn of(passage: &str) -> Kind {
        if passage.chars().all(char::is_whitespace) {
            return Kind::Blank;
        }
        if passage.contains("```") {
            return Kind::Fenced;
        }
        let first = passage.chars().next();
        if passage.chars().all(|c| Some(c) == first) {
            return Kind::Sentence;
        }
        // A word alone says little: `ok ok ok` is a sentence in one line and a column of results in three.
        let some = passage.repeat(64 / passage.len() + 1);
        let is_word = |word: &&str| word.chars().any(char::is_alphabetic);
        let of_words = |line: &str| line.split_whitespace().filter(is_word).count();
        let without_spaces = passage.chars().filter(|c| c.is_alphabetic() && !c.is_ascii()).count() >= 6;
        let has_sentence = without_spaces || some.replace("\\n", "\n").lines().any(|line| of_words(line) >= 3);
        let (all, plain) = passage.chars().fold((0, 0), |(all, plain), c| {
            (all + 1, plain + usize::from(c.is_alphabetic() || c.is_whitespace() || ".,!?'’“”。，！？".contains(c)))
        });
        if has_sentence && plain * 10 >= all * 9 { Kind::Sentence } else { Kind::Rows }
    }

    /// The most bytes of it.
    fn most(self, within: Within) -> usize {
        match (self, within) {
            (Kind::Blank, _) | (Kind::Sentence | Kind::Fenced, Within::Text) | (Kind::Fenced, Within::Code) => {
                SENTENCES
            }
            (Kind::Rows, Within::Text | Within::Code) | (Kind::Sentence, Within::Code | Within::Arguments) => ROWS,
            (Kind::Rows | Kind::Fenced, Within::Arguments) => ARGUMENTS,
        }
    }
}

/// What repeats.
struct Found {
    passage: String,
    times: usize,
}

impl Found {
    fn error(self, what: &str) -> Error {
        let Found { passage, times } = self;
        let shown = if passage.trim().is_empty() {
            "blank lines or spaces".to_owned()
        } else {
            format!("“{}”", quoted(&passage))
        };
        let message =
            format!("the model repeated itself, so pixir ended its answer: {shown} came {times} times in its {what}");
        let again = "send “continue”: the next request asks at another temperature, where the model takes one";
        let meant = "set `requests.end_loops = false` in config.toml if you asked for that";
        let fix = Remedy::any_of([again.into(), Remedy::ChooseModel { need: ModelNeed::Any }, meant.into()]);
        Error::new(Code::TextLoop, message, fix).with("times", times).with("in", what)
    }
}

/// The repetitions of a text that is shown.
#[derive(Default)]
struct Prose {
    cycle: Cycle,
    lines: Lines,
    fence: Fence,
}

impl Prose {
    fn add(&mut self, text: &str) -> Option<Found> {
        self.cycle.add(text.as_bytes());
        for piece in text.split_inclusive('\n') {
            self.fence.add(piece);
            self.lines.add(piece);
        }
        self.lines.events += 1;
        let within = if self.fence.is_open { Within::Code } else { Within::Text };
        self.cycle.found(within).or_else(|| self.lines.found(within))
    }
}

/// Whether a text belongs to a block of code.
#[derive(Default)]
struct Fence {
    is_open: bool,
    /// The start of the line, as far as a fence can begin it.
    start: String,
    /// The line has more than a fence can begin with.
    is_past: bool,
}

impl Fence {
    /// Adds a text with at most one line break, at its end.
    fn add(&mut self, piece: &str) {
        for c in piece.chars() {
            match c {
                '\n' => (self.start, self.is_past) = (String::new(), false),
                _ if self.is_past => {}
                ' ' if self.start.is_empty() => {}
                '`' | '~' => {
                    self.start.push(c);
                    if matches!(&*self.start, "```" | "~~~") {
                        (self.is_open, self.is_past) = (!self.is_open, true);
                    }
                }
                _ => self.is_past = true,
            }
        }
    }
}

/// The passage at the end of a text that follows itself.
#[derive(Default)]
struct Cycle {
    /// The latest bytes; empty until the first one comes.
    ring: Vec<u8>,
    /// Bytes so far.
    at: usize,
    /// Of the last [`GRAM`] bytes.
    hash: u64,
    /// Where the same bytes stood before, by their hash: the number of bytes up to their end.
    places: Vec<u32>,
    passage: Option<Passage>,
}

/// A passage that follows itself at the end of the text.
struct Passage {
    /// Its length, bytes.
    period: usize,
    /// Bytes that were equal to those one period before.
    run: usize,
    /// Events in which they arrived.
    events: u32,
    /// What it is made of, once that matters.
    kind: Option<Kind>,
}

impl Cycle {
    fn add(&mut self, bytes: &[u8]) {
        if self.ring.is_empty() && !bytes.is_empty() {
            (self.ring, self.places) = (vec![0; RING], vec![0; PLACES]);
        }
        bytes.iter().for_each(|byte| self.push(*byte));
        if let Some(passage) = &mut self.passage {
            passage.events += 1;
        }
    }

    /// The byte that stands so many bytes before this end.
    fn before(&self, end: usize, back: usize) -> u8 {
        self.ring[(end - back) % RING]
    }

    fn push(&mut self, byte: u8) {
        if let Some(Passage { period, run, .. }) = &mut self.passage {
            if self.ring[(self.at - *period) % RING] == byte {
                *run += 1;
            } else {
                self.passage = None;
            }
        }
        let out = if self.at >= GRAM { u64::from(self.before(self.at, GRAM)) + 1 } else { 0 };
        self.hash =
            self.hash.wrapping_sub(out.wrapping_mul(FIRST)).wrapping_mul(FACTOR).wrapping_add(u64::from(byte) + 1);
        self.ring[self.at % RING] = byte;
        self.at += 1;
        if self.at < GRAM {
            return;
        }
        let place = (self.hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 50) as usize % PLACES;
        let before = std::mem::replace(&mut self.places[place], self.at as u32) as usize;
        if self.passage.is_none() && before > 0 {
            let period = self.at - before;
            let is_same = || (1..=GRAM).all(|back| self.before(self.at, back) == self.before(before, back));
            if period <= MAX_PERIOD && is_same() {
                self.passage = Some(Passage { period, run: GRAM, events: 0, kind: None });
            }
        }
    }

    /// The passage, from the start of a line or a word.
    fn text(&self, period: usize) -> String {
        let mut bytes: Vec<u8> = (1..=period).rev().map(|back| self.before(self.at, back)).collect();
        let start = bytes.iter().rposition(|b| *b == b'\n').or_else(|| bytes.iter().rposition(|b| *b == b' '));
        // A character may have been cut in two.
        let is_start = |b: &u8| b & 0xc0 != 0x80;
        let start = start.map(|at| at + 1).or_else(|| bytes.iter().position(is_start)).unwrap_or(0);
        bytes.rotate_left(start % period);
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// What repeats, if it is too much for where it stands.
    fn found(&mut self, within: Within) -> Option<Found> {
        let Passage { period, run, events, kind } = self.passage.as_ref()?;
        if *events < MIN_EVENTS || *run < SENTENCES.max(period * (MIN_TIMES - 1)) {
            return None;
        }
        let (period, run, known) = (*period, *run, *kind);
        let kind = known.unwrap_or_else(|| Kind::of(&self.text(period)));
        if let Some(passage) = &mut self.passage {
            passage.kind = Some(kind);
        }
        (run >= kind.most(within)).then(|| Found { passage: self.text(period), times: run / period + 1 })
    }
}

/// The few lines of which the end of a text consists.
#[derive(Default)]
struct Lines {
    /// The line that has not ended yet.
    line: String,
    /// Digests of the latest different lines, the last one first.
    known: Vec<u64>,
    /// Bytes of lines that were among them, less those that outweigh odd lines.
    run: usize,
    /// The number of them.
    times: usize,
    /// Events since the run began.
    events: u32,
    /// The last line has words.
    is_sentence: bool,
    last: String,
}

/// A model repeats shorter lines than this, bytes.
const MAX_LINE: usize = 1 << 10;

impl Lines {
    /// Adds a text with at most one line break, at its end.
    fn add(&mut self, piece: &str) {
        if self.line.len() <= MAX_LINE {
            self.line.push_str(piece);
        }
        if !piece.ends_with('\n') {
            return;
        }
        let ended = std::mem::take(&mut self.line);
        let line = ended.trim();
        if line.is_empty() {
            return;
        }
        let mut hasher = DefaultHasher::new();
        line.hash(&mut hasher);
        let digest = hasher.finish();
        match self.known.iter().position(|it| *it == digest) {
            Some(at) => {
                self.known[..=at].rotate_right(1);
                self.run += ended.len();
                self.times += 1;
                self.is_sentence = Kind::of(line) == Kind::Sentence;
                line.clone_into(&mut self.last);
            }
            None => {
                self.known.truncate(FEW_LINES - 1);
                self.known.insert(0, digest);
                self.run = self.run.saturating_sub(ODD_LINE * ended.len());
                self.times = self.times.saturating_sub(ODD_LINE);
                if self.run == 0 {
                    self.events = 0;
                }
            }
        }
    }

    /// What repeats. Lines that alternate say less than a passage that follows itself, so twice as much of them is accepted.
    fn found(&self, within: Within) -> Option<Found> {
        let kind = if self.is_sentence { Kind::Sentence } else { Kind::Rows };
        let is_too_much = self.events >= MIN_EVENTS && self.run >= 2 * kind.most(within);
        is_too_much.then(|| Found { passage: self.last.clone(), times: self.times })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds a text in pieces of a few characters, as a model writes it. Returns how many bytes had come when it ended.
    fn ended_at(text: &str, chunk: impl Fn(String) -> Chunk) -> Option<(usize, Error)> {
        let (mut found, mut came) = (TextLoop::default(), 0);
        let chars: Vec<char> = text.chars().collect();
        for piece in chars.chunks(5) {
            let piece: String = piece.iter().collect();
            came += piece.len();
            if let Err(error) = found.add(&chunk(piece)) {
                return Some((came, error));
            }
        }
        None
    }

    fn as_text(text: &str) -> Option<(usize, Error)> {
        ended_at(text, Chunk::Text)
    }

    fn as_arguments(text: &str) -> Option<(usize, Error)> {
        ended_at(text, |args| Chunk::Call { index: 0, name: "write".into(), args })
    }

    /// A number that looks random, always the same for the same `n`.
    fn mixed(n: usize) -> usize {
        (n + 1).wrapping_mul(2_654_435_761) >> 7
    }

    /// Broken builds: only whole lines are compared; only short passages are; one odd line begins the count again.
    #[test]
    fn an_answer_that_goes_round_is_ended_soon_after_it_has_begun_to() {
        let paragraph = "The user wants the tests to pass. I will look at the code, run the tests and correct what fails. \
                         Then I will look at the code again, because a test may still fail.\n\n";
        let pages: String = (0..60).map(|n| format!("Page {n} has the sentence number {}. ", mixed(n))).collect();
        let jitter: String = (0..2_000)
            .map(|n| {
                if n % 29 == 28 {
                    format!("Well, {n}.\n")
                } else {
                    ["I am sorry for that.\n", "Let me try again now.\n"][mixed(n) % 2].to_owned()
                }
            })
            .collect();
        let loops: [(&str, String, usize); 14] = [
            ("a line", "I will check the file again.\n".repeat(3_000), 9_000),
            ("a line after an answer", pages.clone() + &"I will check the file again.\n".repeat(3_000), 12_000),
            ("a sentence without line breaks", "I need to look at it. ".repeat(3_000), 9_000),
            ("a word", "the ".repeat(20_000), 9_000),
            ("a character", "G".repeat(100_000), 9_000),
            ("blank lines", "\n".repeat(100_000), 9_000),
            ("a paragraph", paragraph.repeat(300), 9_500),
            ("pages", pages.repeat(60), 28_000),
            ("two lines", "Is it done?\nNo, it is not done yet.\n".repeat(2_000), 9_000),
            ("Chinese", "我需要再检查一次这个文件。".repeat(2_000), 9_000),
            ("an emoji", "🔁 ".repeat(10_000), 25_000),
            ("rows", "| 0 | 0 | 0 |\n".repeat(9_000), 25_000),
            ("a block of code", "Here it is:\n```rust\nlet x = 1;\n```\n".repeat(2_000), 9_000),
            ("lines that alternate", jitter, 40_000),
        ];
        for (what, text, most) in loops {
            let (at, error) = as_text(&text).unwrap_or_else(|| panic!("{what} is not found"));
            assert!(at <= most, "{what} ended after {at} bytes");
            assert_eq!(error.code, Code::TextLoop);
            let reasoning = ended_at(&text, Chunk::Reasoning).expect("found in reasoning").0;
            assert_eq!(reasoning, at, "{what}");
        }
        let (_, error) = as_text(&"I will check the file again.\n".repeat(3_000)).expect("a loop");
        assert!(error.message.contains("“I will check the file again.” came 28"), "{}", error.message);
        for (what, args, most) in [
            ("a line in a file", r"I will check the file again.\n".repeat(9_000), 25_000),
            ("rows of a file", r"0,0,0,0\n".repeat(20_000), 50_000),
            ("line breaks behind the arguments", format!(r#"{{"path":"a"}}{}"#, "\n".repeat(90_000)), 9_000),
            ("the same item of a list", r#"{"a":1,"b":2},"#.repeat(9_000), 50_000),
        ] {
            let (at, error) = as_arguments(&args).unwrap_or_else(|| panic!("{what} is not found"));
            assert!(at <= most, "{what} ended after {at} bytes");
            assert!(error.message.ends_with("in its arguments"), "{}", error.message);
        }
    }

    /// Broken build: one that ends an answer after some equal lines.
    #[test]
    fn what_repeats_for_a_reason_is_no_loop() {
        let lines = |n: usize, of: &dyn Fn(usize) -> String| (0..n).map(|n| of(n) + "\n").collect::<String>();
        let fenced = |text: String| format!("Here it is:\n\n```\n{text}```\n\nThat is all.\n");
        let texts: [(&str, String); 26] = [
            (
                "a table of equal rows",
                "| name | kind |\n| --- | --- |\n".to_owned() + &"| 0 | 0 | none |\n".repeat(1_000),
            ),
            ("an aligned table", lines(400, &|n| format!("| {:<60} | {:<40} |", format!("row {n}"), "yes"))),
            ("a line of dashes", "-".repeat(2_000)),
            ("a drawing", fenced(format!("{}\n", "#".repeat(100)).repeat(100))),
            (
                "a box",
                fenced(format!("┌{0}┐\n{1}└{0}┘\n", "─".repeat(98), format!("│{}│\n", " ".repeat(98)).repeat(60))),
            ),
            ("a drawing without a fence", format!("{}\n", "*".repeat(78)).repeat(40)),
            ("data with equal rows", fenced("0.0,0.0,0.0,1\n".repeat(1_500))),
            ("data of few rows", fenced(lines(2_000, &|n| ["0,1", "1,0", "1,1"][mixed(n) % 3].to_owned()))),
            ("test output", fenced(lines(1_500, &|n| format!("test store::case_{n} ... ok")))),
            ("dots of a test run", fenced(".".repeat(4_000) + "\n")),
            ("one word a line", "PASS\n".repeat(2_000)),
            ("code with repeated lines", fenced("    assert_eq!(next(), None);\n    step();\n".repeat(300))),
            ("closing braces", fenced(lines(500, &|n| format!("{}}}", " ".repeat(n % 40))))),
            ("a long list", lines(3_000, &|n| format!("{n}. Check the file number {n} and say what is in it."))),
            ("a long list of equal ends", lines(1_000, &|n| format!("- module_{n}: no changes were needed here"))),
            (
                "a poem with a refrain",
                lines(200, &|n| format!("Verse {n} tells of the sea and of {}.\nAnd the wind blows on.", mixed(n))),
            ),
            ("lines to write out", "I must not talk in class.\n".repeat(200)),
            (
                "bytes in hexadecimal",
                fenced(lines(800, &|n| format!("{:08x}  00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00", n * 16))),
            ),
            ("base64 of zeros", fenced("A".repeat(12_000) + "\n")),
            ("a diff", fenced(lines(700, &|n| format!("-    old_call({n});\n+    new_call({n});")))),
            (
                "a log",
                fenced(lines(900, &|n| format!("12:{:02}:{:02} INFO request served in 3 ms", n / 60 % 60, n % 60))),
            ),
            ("a progress bar", lines(100, &|n| format!("[{}{}] {n} %", "=".repeat(n / 2), " ".repeat(50 - n / 2)))),
            ("a matrix", fenced(lines(200, &|n| (0..60).map(|m| if n == m { "1 " } else { "0 " }).collect()))),
            ("HTML", fenced("<tr><td></td><td></td><td></td></tr>\n".repeat(300))),
            (
                "a plan in which steps recur",
                lines(120, &|n| format!("Step {n}: run the tests.\nStep {n}: read what failed.\n")),
            ),
            (
                "an essay",
                lines(2_000, &|n| format!("Sentence {} says {}, and the next one does not.", mixed(n), mixed(n * 3))),
            ),
        ];
        for (what, text) in texts {
            for ended in [as_text(&text), ended_at(&text, Chunk::Reasoning)] {
                let ended = ended.map(|(bytes, error)| (bytes, error.message));
                assert_eq!(ended, None, "{what}");
            }
            let args = serde_json::json!({ "path": "a.txt", "content": text }).to_string();
            assert!(as_arguments(&args).is_none(), "{what} in arguments");
        }
        for (what, args) in [
            ("a file of 2,000 equal rows", "0,0,0,0,0,0,0,0\n".repeat(2_000)),
            ("a test fixture", "The quick brown fox jumps over the lazy dog.\n".repeat(400)),
            ("an empty grid", format!("{}\n", "0 ".repeat(100)).repeat(100)),
        ] {
            let args = serde_json::json!({ "path": "a.txt", "content": args }).to_string();
            assert!(as_arguments(&args).is_none(), "{what}");
        }
    }

    /// Broken build: a long answer that a server sends at once, as gateways without streaming do, is cut.
    #[test]
    fn a_text_that_arrives_in_a_few_pieces_is_complete_already() {
        let mut found = TextLoop::default();
        for _ in 0..100 {
            assert!(found.add(&Chunk::Text("word ".repeat(2_000))).is_ok());
        }
    }

    /// Broken build: one that keeps all of the text to compare its end with.
    #[test]
    fn what_is_kept_of_an_answer_is_the_same_however_long_it_is() {
        let mut cycle = Cycle::default();
        let text: String = (0..400_000).map(|n| format!("{} ", mixed(n))).collect();
        cycle.add(text.as_bytes());
        assert_eq!((cycle.ring.len(), cycle.places.len()), (RING, PLACES));
        assert!(cycle.passage.is_none_or(|it| it.run < 200));
    }
}
