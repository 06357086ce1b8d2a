//! Writes the text of a summary within its budget.
//!
//! What the user pinned, the plan, active skills and an unfinished request are repeated word for word, whatever they need.
//! The rest shares what is left of the budget: newer Turns in more detail, the oldest ones not at all.

use super::digest::{Digest, MAX_ANSWER, MAX_REQUEST, Verbatim, end, start};
use protocol::event::{Notes, TurnDigest};

/// How much of a Turn is told, by how many newer Turns there are: characters of the request and of the answer.
const DETAIL: [(usize, usize, usize); 3] = [(3, MAX_REQUEST, MAX_ANSWER), (12, 200, 400), (usize::MAX, 100, 160)];
/// The least that is left for what may be shortened, bytes.
const MIN_SHARED: usize = 400;

/// A summary.
#[derive(Debug)]
pub(super) struct Made {
    pub(super) text: String,
    /// Where the texts begin that are repeated word for word.
    pub(super) appended_from: usize,
    /// The Turns that it tells of, as shortened as in the text.
    pub(super) turns: Vec<TurnDigest>,
    /// Turns that it does not tell of.
    pub(super) left_out: u64,
    pub(super) limitations: Vec<String>,
}

/// A summary from the Log alone.
pub(super) fn without_model(digest: &Digest, most: usize) -> Made {
    let fixed = word_for_word(digest);
    let shared = most.saturating_sub(fixed.len()).max(MIN_SHARED);
    let mut limitations =
        vec!["no model wrote this summary: it has requests, the ends of answers, files and commands".into()];
    let mut text = String::new();
    if let Some(instructions) = &digest.instructions {
        section(&mut text, "The user asked to keep in mind", [instructions.clone()]);
    }
    // Half of these bytes are for the model's earlier notes and the Turns; `lists` gives an eighth to each of its lists.
    let mut room = shared / 2;
    if let Some(notes) = &digest.notes {
        let told = cut(&rendered(notes), room / 2);
        room -= told.len();
        section(&mut text, "What you noted earlier", [told]);
    }
    let (turns, lines, dropped) = told_turns(&digest.turns, room);
    let left_out = digest.turns_left_out + dropped;
    if left_out > 0 {
        limitations.push(format!("{left_out} older turns are left out"));
    }
    let missing = (left_out > 0).then(|| {
        format!("- The {left_out} oldest turns are left out here. Search them with recall (run: memory search).")
    });
    section(&mut text, "Turns so far, oldest first", missing.into_iter().chain(lines));
    text.push_str(&lists(digest, shared));
    let appended_from = text.len();
    text.push_str(&fixed);
    let (text, appended_from) = without_lead(text, appended_from);
    Made { text, appended_from, turns, left_out, limitations }
}

/// A summary with what a model wrote about the conversation.
pub(super) fn with_notes(digest: &Digest, notes: &Notes, most: usize) -> Made {
    let fixed = word_for_word(digest);
    let shared = most.saturating_sub(fixed.len()).max(MIN_SHARED);
    let mut limitations = Vec::new();
    let mut text = String::new();
    let all = rendered(notes);
    let told = cut(&all, shared / 4 * 3);
    if told.len() < all.len() {
        limitations.push("the model's notes were shortened to fit".to_owned());
    }
    section(&mut text, "Notes", [told]);
    text.push_str(&lists(digest, shared));
    let appended_from = text.len();
    text.push_str(&fixed);
    let (text, appended_from) = without_lead(text, appended_from);
    Made { text, appended_from, turns: Vec::new(), left_out: 0, limitations }
}

/// The first section needs no empty line above it.
fn without_lead(text: String, appended_from: usize) -> (String, usize) {
    match text.strip_prefix('\n') {
        Some(rest) => (rest.to_owned(), appended_from.saturating_sub(1)),
        None => (text, appended_from),
    }
}

/// What the user pinned, the plan, active skills, and the request that the kept messages continue.
fn word_for_word(digest: &Digest) -> String {
    let mut text = String::new();
    let texts = |all: &[Verbatim]| all.iter().map(|it| it.text.clone()).collect::<Vec<_>>();
    section(&mut text, "Plan", digest.plan.iter().cloned());
    section(&mut text, "Active skills", texts(&digest.skills));
    section(&mut text, "Pinned by the user, word for word", texts(&digest.pinned));
    section(&mut text, "The request that the messages below continue, word for word", digest.continued.iter().cloned());
    text
}

/// Files and commands, as far as there is room; the last used are the ones that are listed.
fn lists(digest: &Digest, shared: usize) -> String {
    let mut text = String::new();
    let bullets = |names: &[String]| names.iter().map(|it| format!("- {it}")).collect::<Vec<_>>();
    let read: Vec<String> = digest.read.iter().filter(|it| !digest.changed.contains(*it)).cloned().collect();
    section(&mut text, "Files changed", last_that_fit(bullets(&digest.changed), shared / 8, "files"));
    section(&mut text, "Files read", last_that_fit(bullets(&read), shared / 8, "files"));
    section(&mut text, "Commands run, newest last", last_that_fit(bullets(&digest.commands), shared / 8, "commands"));
    text
}

/// Returns the Turns that fit, the lines about them, and how many are left out. Oldest first.
fn told_turns(turns: &[TurnDigest], room: usize) -> (Vec<TurnDigest>, Vec<String>, u64) {
    let (mut told, mut lines) = (Vec::new(), Vec::new());
    let mut left = room;
    for (newer, turn) in turns.iter().rev().enumerate() {
        let (_, request, answer) = *DETAIL.iter().find(|(until, ..)| newer < *until).expect("the last has no end");
        // The newest Turn is always told, shortened to the room if it must be.
        let scale = if newer == 0 { room.max(MIN_SHARED) / 4 } else { usize::MAX };
        let short = TurnDigest {
            request: start(&turn.request, request.min(scale)),
            answer: end_again(&turn.answer, answer.min(scale)),
            ..turn.clone()
        };
        let line = line(&short);
        if line.len() > left && newer > 0 {
            break;
        }
        left = left.saturating_sub(line.len() + 1);
        told.push(short);
        lines.push(line);
    }
    told.reverse();
    lines.reverse();
    let left_out = (turns.len() - told.len()) as u64;
    (told, lines, left_out)
}

/// Shortens the end of an answer that an earlier compaction may have shortened already.
fn end_again(answer: &str, most: usize) -> String {
    if answer.chars().count() <= most + 1 { answer.to_owned() } else { end(answer, most) }
}

fn line(turn: &TurnDigest) -> String {
    let mut text = match turn.request.as_str() {
        "" => format!("- Turn {}, continued", turn.turn),
        request => format!("- Turn {}: {request}", turn.turn),
    };
    match turn.answer.as_str() {
        "" => text.push_str("\n  - You gave no answer."),
        answer => text.push_str(&format!("\n  - You answered: {answer}")),
    }
    if !turn.changed.is_empty() {
        text.push_str(&format!("\n  - Changed: {}", turn.changed.join(", ")));
    }
    if !turn.failed.is_empty() {
        text.push_str(&format!("\n  - Failed: {}", turn.failed.join(", ")));
    }
    text
}

/// The notes as Markdown.
pub(super) fn rendered(notes: &Notes) -> String {
    let mut text = String::new();
    let one = |title: &str, text: &str| (!text.is_empty()).then(|| format!("**{title}:** {text}"));
    let lines = [one("Goal", &notes.goal), one("State", &notes.state), one("Next step", &notes.next_step)];
    text.push_str(&lines.into_iter().flatten().collect::<Vec<_>>().join("\n\n"));
    let lists = [
        ("Open tasks", &notes.open_tasks),
        ("Decisions", &notes.decisions),
        ("Findings", &notes.findings),
        ("Pitfalls", &notes.pitfalls),
        ("Files", &notes.files),
        ("Commands", &notes.commands),
    ];
    for (title, list) in lists.into_iter().filter(|(_, list)| !list.is_empty()) {
        let bullets: String = list.iter().map(|it| format!("- {it}\n")).collect();
        text.push_str(&format!("\n\n**{title}:**\n\n{}", bullets.trim_end()));
    }
    text
}

pub(super) fn section(text: &mut String, title: &str, lines: impl IntoIterator<Item = String>) {
    let lines: Vec<String> = lines.into_iter().collect();
    if !lines.is_empty() {
        text.push_str(&format!("\n## {title}\n{}\n", lines.join("\n")));
    }
}

/// The last lines that fit into this many bytes, and how many more there are.
fn last_that_fit(lines: Vec<String>, most: usize, noun: &str) -> Vec<String> {
    let mut left = most;
    let mut from = lines.len();
    while from > 0 && lines[from - 1].len() < left {
        from -= 1;
        left -= lines[from].len() + 1;
    }
    let more = (from > 0).then(|| format!("- {from} more {noun}"));
    more.into_iter().chain(lines.into_iter().skip(from)).collect()
}

/// The beginning of a text, at most this many bytes, up to the end of a line where there is one.
fn cut(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let mut at = most;
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    let whole = text[..at].rfind('\n').filter(|end| *end > at / 2).unwrap_or(at);
    format!("{}\n…", &text[..whole])
}
