//! Collects what a summary is made of: the Turns, files and commands before the cut.

use std::collections::BTreeSet;
use std::sync::Arc;

pub(super) use crate::title::start;
use crate::title::words;
use conversation::history::{History, is_request};
use protocol::call_info::CallKind;
use protocol::event::{Entry, Fact, HistoryCompaction, Notes, StepStatus, ToolResult, TurnDigest};

/// The most of a request in a digest, characters.
pub(super) const MAX_REQUEST: usize = 400;
/// The most of the end of an answer in a digest, characters.
pub(super) const MAX_ANSWER: usize = 1_200;
/// The most of a command line, characters.
const MAX_COMMAND: usize = 120;
/// The most commands that a summary lists.
const MAX_COMMANDS: usize = 20;
/// The most failed calls of one Turn in a digest.
const MAX_FAILED: usize = 3;
/// The most changed files of one Turn in a digest.
const MAX_CHANGED: usize = 12;

/// A text that a summary repeats word for word, and its Entry.
#[derive(Debug, Clone)]
pub(super) struct Verbatim {
    pub(super) seq: u64,
    pub(super) text: String,
}

/// What is before the cut. Lists of files have the last used last.
#[derive(Debug, Default)]
pub(super) struct Digest {
    pub(super) instructions: Option<String>,
    pub(super) notes: Option<Box<Notes>>,
    pub(super) turns: Vec<TurnDigest>,
    pub(super) turns_left_out: u64,
    pub(super) read: Vec<String>,
    pub(super) changed: Vec<String>,
    pub(super) commands: Vec<String>,
    pub(super) pinned: Vec<Verbatim>,
    pub(super) skills: Vec<Verbatim>,
    pub(super) plan: Vec<String>,
    /// The request that the kept messages continue, word for word.
    pub(super) continued: Option<String>,
    /// The last request so far, word for word.
    request: Option<String>,
    /// Skills of earlier compactions, by their Entries.
    earlier_skills: Vec<u64>,
    /// Calls without a result so far: call id, and what the user sees of the call.
    running: Vec<(String, String, CallKind)>,
}

impl Digest {
    /// Continues what an earlier compaction has collected.
    pub(super) fn new(earlier: Option<&Fact>, instructions: Option<&str>) -> Digest {
        let mut it = Digest { instructions: instructions.map(str::to_owned), ..Digest::default() };
        if let Some(Fact::HistoryCompaction(earlier)) = earlier {
            it.continue_from(earlier);
        }
        it
    }

    fn continue_from(&mut self, earlier: &HistoryCompaction) {
        self.read.clone_from(&earlier.files_read);
        self.changed.clone_from(&earlier.files_modified);
        self.earlier_skills.clone_from(&earlier.skills);
        self.turns.clone_from(&earlier.turns);
        self.turns_left_out = earlier.turns_left_out;
        self.notes.clone_from(&earlier.notes);
        // An older build recorded the text alone.
        if earlier.turns.is_empty() && earlier.turns_left_out == 0 && earlier.notes.is_none() {
            self.notes = Some(Box::new(Notes { state: earlier.summary.clone(), ..Notes::default() }));
        }
    }

    /// Adds one Entry.
    pub(super) fn take(&mut self, entry: &Entry) {
        let turn = entry.turn.unwrap_or(0);
        match &entry.fact {
            Fact::UserMessage(it) if is_request(&entry.fact) => {
                self.request = Some(it.text.clone());
                self.turns.push(TurnDigest { turn, request: start(&it.text, MAX_REQUEST), ..TurnDigest::default() });
            }
            Fact::UserMessage(it) => {
                let digest = self.turn(turn);
                let joined = format!("{} · then: {}", digest.request, it.text);
                digest.request = start(&joined, MAX_REQUEST);
                if let Some(request) = &mut self.request {
                    *request = format!("{request}\n\nSaid while you worked: {}", it.text);
                }
            }
            Fact::UserCommand(it) if it.send_to_model => {
                let request = format!("the user ran `{}`", start(&it.command, MAX_COMMAND));
                self.turns.push(TurnDigest { turn, request, ..TurnDigest::default() });
                self.running.push((it.call_id.clone(), it.command.clone(), CallKind::Execute));
            }
            Fact::AssistantMessage(it) => {
                let said = end(&it.text, MAX_ANSWER);
                self.turn(turn).answer = if it.partial { format!("{said} [the answer broke off here]") } else { said };
            }
            Fact::SkillActivation(it) => {
                let heading = format!("### {}\n", it.name);
                self.skills.retain(|skill| !skill.text.starts_with(&heading));
                self.skills.push(Verbatim { seq: entry.seq, text: format!("{heading}{}", it.body) });
            }
            Fact::ToolCall(it) => {
                let about = it.about();
                match about.kind {
                    CallKind::Read | CallKind::Execute => {
                        about.paths.iter().for_each(|path| touch(&mut self.read, path));
                    }
                    CallKind::Search
                    | CallKind::Edit
                    | CallKind::Plan
                    | CallKind::Ask
                    | CallKind::Agent
                    | CallKind::Other => {}
                }
                self.running.push((it.call_id.clone(), about.target.clone(), about.kind));
            }
            Fact::ToolResult(it) => self.result(turn, it),
            // A digest has requests, answers, calls and skills only.
            _ => {}
        }
    }

    fn result(&mut self, turn: u32, it: &ToolResult) {
        for change in &it.changes {
            touch(&mut self.changed, &change.path);
            let changed = &mut self.turn(turn).changed;
            if changed.len() < MAX_CHANGED && !changed.contains(&change.path) {
                changed.push(change.path.clone());
            }
        }
        let Some(at) = self.running.iter().position(|(id, ..)| *id == it.call_id) else { return };
        let (_, target, kind) = self.running.remove(at);
        let target = start(&target, MAX_COMMAND);
        let ended = match it.exit_code {
            Some(code) => format!("exit {code}"),
            None if it.ok => "done".to_owned(),
            None => "not run".to_owned(),
        };
        if kind == CallKind::Execute {
            self.commands.push(format!("`{target}` → {ended}"));
            let excess = self.commands.len().saturating_sub(MAX_COMMANDS);
            self.commands.drain(..excess);
        }
        if !it.ok && !target.is_empty() {
            let failed = &mut self.turn(turn).failed;
            failed.push(format!("`{target}` → {ended}"));
            // The last ones are those that may still fail.
            failed.drain(..failed.len().saturating_sub(MAX_FAILED));
        }
    }

    /// The digest of this Turn. An earlier compaction may have begun it.
    fn turn(&mut self, turn: u32) -> &mut TurnDigest {
        if self.turns.last().is_none_or(|last| last.turn != turn) {
            self.turns.push(TurnDigest { turn, ..TurnDigest::default() });
        }
        self.turns.last_mut().expect("it was just pushed")
    }

    /// Adds what is not before the cut alone: pinned messages, skills and the plan.
    /// `kept` are the Entries that stay in the conversation.
    pub(super) fn finish(&mut self, history: &History, kept: &BTreeSet<u64>, continues: bool) {
        let is_gone = |e: &&Arc<Entry>| !kept.contains(&e.seq) && !history.is_untold(&e.fact);
        let dropped_pins = history.pinned().filter(is_gone);
        self.pinned = dropped_pins.filter_map(|e| Some(Verbatim { seq: e.seq, text: spoken(&e.fact)? })).collect();
        let earlier = std::mem::take(&mut self.earlier_skills);
        let mut skills: Vec<Verbatim> = Vec::new();
        for entry in earlier.iter().filter_map(|seq| history.entry(*seq)) {
            if let Fact::SkillActivation(it) = &entry.fact {
                let heading = format!("### {}\n", it.name);
                if !self.skills.iter().any(|skill| skill.text.starts_with(&heading)) {
                    skills.push(Verbatim { seq: entry.seq, text: format!("{heading}{}", it.body) });
                }
            }
        }
        skills.append(&mut self.skills);
        self.skills = skills;
        self.plan = history
            .plan
            .iter()
            .map(|item| {
                let mark = match item.status {
                    StepStatus::Completed => "x",
                    StepStatus::InProgress => "~",
                    StepStatus::Pending => " ",
                };
                format!("- [{mark}] {}", item.step)
            })
            .collect();
        if continues {
            // An earlier compaction may have dropped the message itself.
            let of_turn = |entry: &&Arc<Entry>| !kept.contains(&entry.seq) && is_request(&entry.fact);
            self.continued = self.request.clone().or_else(|| match &history.path().rev().find(of_turn)?.fact {
                Fact::UserMessage(it) => Some(it.text.clone()),
                _ => None,
            });
        }
    }
}

/// Moves a name to the end of a list, which has each name once.
fn touch(names: &mut Vec<String>, name: &str) {
    names.retain(|it| it != name);
    names.push(name.to_owned());
}

/// Returns the text of an entry that a summary repeats word for word.
fn spoken(fact: &Fact) -> Option<String> {
    match fact {
        Fact::UserMessage(it) => Some(format!("The user: {}", it.text)),
        Fact::UserCommand(it) => Some(format!("The user ran: {}", it.command)),
        Fact::AssistantMessage(it) => Some(format!("You: {}", it.text)),
        Fact::ToolResult(it) => Some(format!("A tool: {}", it.output)),
        Fact::BranchSummary(it) => Some(it.summary.clone()),
        Fact::SkillActivation(it) => Some(it.body.clone()),
        _ => None,
    }
}

/// The end of a text, on one line.
pub(super) fn end(text: &str, most: usize) -> String {
    let skipped = text.chars().count().saturating_sub(most * 2 + 1);
    let line = words(text.chars().skip(skipped).collect());
    let excess = line.chars().count().saturating_sub(most);
    if skipped == 0 && excess == 0 { line } else { "…".chars().chain(line.chars().skip(excess)).collect() }
}
