//! Decides where to cut a long History, and writes the summary of the part before the cut.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::conversation::history::{History, is_request, length_of, starts_turn};
use crate::protocol::call_info::CallKind;
use crate::protocol::error::{Code, Error, Result};
use crate::protocol::event::{BranchSummary, Entry, Fact, HistoryCompaction, StepStatus, Trigger};
use crate::protocol::remedy::Remedy;

/// The window that is assumed where neither the model table nor the server states one, in tokens.
const USUAL_WINDOW: u64 = 128_000;
/// The least part of a summary, bytes.
const MIN_SUMMARY: usize = 800;
/// The most of one older prompt in a summary, characters.
const MAX_REQUEST: usize = 400;
/// The most of an earlier summary in a new one, characters.
const MAX_EARLIER: usize = 4_000;

/// The room that a compaction makes, tokens.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    /// The window.
    pub(crate) window: u64,
    /// The part of it that every request repeats.
    pub(crate) fixed: u64,
    /// How often an earlier compaction for the same request was not enough. Each time half as much stays.
    pub(crate) shrink: u32,
}

impl Room {
    /// Tokens that the History may have.
    fn history(self) -> u64 {
        self.window.saturating_sub(self.fixed)
    }

    /// Tokens of the newest History that stay verbatim: a quarter of a small window, a sixteenth of a large one.
    fn verbatim(self) -> u64 {
        let usual = (self.history() / 4).min((self.window / 16).max(USUAL_WINDOW / 16));
        usual >> self.shrink.min(16)
    }

    /// The longest summary, bytes: a quarter of the room, at four bytes a token.
    fn summary(self) -> usize {
        let bytes = self.history() >> self.shrink.min(16);
        usize::try_from(bytes).unwrap_or(usize::MAX).max(MIN_SUMMARY)
    }
}

/// Plans a compaction without a model. The summary lists the user's prompts, files, commands, the plan and the last
/// answer under fixed headings. The newest History stays verbatim, and always the last prompt.
///
/// # Errors
/// `NOTHING_TO_DO` when the whole History is recent enough to stay.
pub(crate) fn plan(
    history: &History,
    trigger: Trigger,
    instructions: Option<&str>,
    room: Option<Room>,
) -> Result<HistoryCompaction> {
    let room = room.unwrap_or(Room { window: USUAL_WINDOW, fixed: 0, shrink: 0 });
    // What an earlier compaction replaced is in its summary, so a compaction costs no more in a long Session. What it left
    // verbatim may be dropped now.
    let recent = history.recent_path();
    let before = (history.path().len() - recent.len()) as u64;
    let earlier = history.recent_path().rev().find_map(|entry| match &entry.fact {
        Fact::HistoryCompaction(it) => Some(it),
        _ => None,
    });
    let path: Vec<&Arc<Entry>> = recent.filter(|entry| !matches!(entry.fact, Fact::HistoryCompaction(_))).collect();
    let cut = find_cut(history, &path, room.verbatim()).ok_or_else(|| {
        Error::new(
            Code::NothingToDo,
            "there is nothing to compact: the whole conversation is recent",
            Remedy::any_of(["continue the conversation".into(), Remedy::NewSession]),
        )
    })?;
    let dropped = &path[..cut];
    let mut it = Gathered::default();
    // An earlier compaction's content is in its summary; only the entries that it left verbatim are gathered again.
    if let Some(earlier) = earlier {
        it.earlier(earlier);
    }
    for entry in dropped.iter().filter(|e| !history.is_untold(&e.fact)) {
        it.gather(&entry.fact);
    }
    let dropped_pins = || history.pinned().filter(|e| e.seq < path[cut].seq);
    let pinned: Vec<u64> = dropped_pins().map(|e| e.seq).collect();
    it.pinned = dropped_pins().filter(|e| !history.is_untold(&e.fact)).filter_map(|e| spoken(&e.fact)).collect();
    let request_is_kept = path[cut..].iter().any(|e| is_request(&e.fact));
    let summary = it.fitting_summary(history, request_is_kept, instructions, room.summary());
    let tokens_before = history.estimated_tokens();
    let kept: u64 = path[cut..].iter().filter(|e| !history.is_untold(&e.fact)).map(|e| tokens(&e.fact)).sum();
    Ok(HistoryCompaction {
        strategy: "deterministic".into(),
        trigger,
        kept_from_seq: path[cut].seq,
        tokens_before,
        tokens_after: kept + summary.len() as u64 / 4,
        entries_dropped: before + cut as u64,
        files_read: it.read.into_iter().collect(),
        files_modified: it.modified.into_iter().collect(),
        summary,
        pinned,
    })
}

/// Returns the entries that a move of the head leaves behind, and the last entry that both branches share.
pub(crate) fn left_behind(history: &History, to_seq: Option<u64>) -> (Vec<Arc<Entry>>, Option<u64>) {
    let there: Vec<u64> = to_seq.map_or_else(Vec::new, |seq| history.path_of(seq).iter().map(|e| e.seq).collect());
    let shared = history.path().zip(&there).take_while(|(entry, seq)| entry.seq == **seq).count();
    (history.path().skip(shared).cloned().collect(), shared.checked_sub(1).map(|at| there[at]))
}

/// Summarizes the branch that a move of the head leaves, without a model. `None` when there is nothing to summarize.
pub(crate) fn branch(history: &History, to_seq: Option<u64>) -> Option<BranchSummary> {
    let (left, common_seq) = left_behind(history, to_seq);
    let from_seq = left.last()?.seq;
    let mut it = Gathered::default();
    left.iter().filter(|entry| !history.is_untold(&entry.fact)).for_each(|entry| it.gather(&entry.fact));
    let mut text = String::from(
        "The user went back to before this and goes another way. Made from the session log, without a model.\n",
    );
    let shortened = |texts: &[String]| texts.iter().map(|r| format!("- {}", shorten(r, MAX_REQUEST))).collect();
    section(&mut text, "Tried there", shortened(&it.requests));
    section(&mut text, "Files changed there", it.modified.iter().map(|p| format!("- {p}")).collect());
    let recent = it.commands.len().saturating_sub(20);
    section(&mut text, "Commands run there", it.commands[recent..].iter().map(|c| format!("- {c}")).collect());
    section(&mut text, "Your last words there", it.last_words.iter().map(|s| shorten(s, 2_000)).collect());
    Some(BranchSummary {
        strategy: "deterministic".into(),
        from_seq,
        common_seq,
        summary: text,
        files_modified: it.modified.into_iter().collect(),
        model: None,
    })
}

fn section(text: &mut String, title: &str, lines: Vec<String>) {
    if !lines.is_empty() {
        text.push_str(&format!("\n## {title}\n{}\n", lines.join("\n")));
    }
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

/// Returns the earliest cut with at most `keep` tokens after it: at the start of a Turn, else between two rounds.
fn find_cut(history: &History, path: &[&Arc<Entry>], keep: u64) -> Option<usize> {
    let mut after = 0;
    let mut whole_turn = None;
    let mut step = None;
    let mut unanswered = 0_i64;
    for at in (0..path.len()).rev() {
        let fact = &path[at].fact;
        after += if history.is_untold(fact) { 0 } else { tokens(fact) };
        match fact {
            Fact::ToolResult(_) => unanswered += 1,
            Fact::ToolCall(_) | Fact::UserCommand(_) => unanswered -= 1,
            _ => {}
        }
        if after > keep && (whole_turn.is_some() || step.is_some()) {
            break;
        }
        if starts_turn(fact) {
            whole_turn = Some(at);
        }
        let new_step =
            at > 0 && matches!(path[at - 1].fact, Fact::ToolResult(_)) && !matches!(fact, Fact::ToolResult(_));
        if unanswered == 0 && new_step {
            step = Some(at);
        }
    }
    // A cut before the first Turn would leave nothing to summarize.
    whole_turn.filter(|at| *at > 0).or_else(|| step.filter(|at| *at > 0 && after > keep))
}

fn tokens(fact: &Fact) -> u64 {
    let bytes = match fact {
        Fact::UserCommand(it) => it.command.len(),
        other => length_of(other),
    };
    bytes as u64 / 4
}

#[derive(Default)]
struct Gathered {
    earlier: Option<String>,
    requests: Vec<String>,
    steers: Vec<String>,
    read: BTreeSet<String>,
    modified: BTreeSet<String>,
    commands: Vec<String>,
    /// Commands without a result so far: call id and command line.
    running: Vec<(String, String)>,
    skills: Vec<String>,
    pinned: Vec<String>,
    last_words: Option<String>,
}

impl Gathered {
    fn earlier(&mut self, it: &HistoryCompaction) {
        self.earlier = Some(it.summary.clone());
        self.read.extend(it.files_read.iter().cloned());
        self.modified.extend(it.files_modified.iter().cloned());
    }

    fn gather(&mut self, fact: &Fact) {
        match fact {
            Fact::UserMessage(it) if is_request(fact) => self.requests.push(it.text.clone()),
            Fact::UserMessage(it) => self.steers.push(it.text.clone()),
            Fact::AssistantMessage(it) if !it.partial => self.last_words = Some(it.text.clone()),
            Fact::SkillActivation(it) => self.skills.push(format!("### {}\n{}", it.name, it.body)),
            Fact::UserCommand(it) if it.send_to_model => {
                self.running.push((it.call_id.clone(), it.command.clone()));
            }
            Fact::ToolCall(it) => {
                let about = it.about();
                match about.kind {
                    CallKind::Read | CallKind::Execute => self.read.extend(about.paths.iter().cloned()),
                    CallKind::Search | CallKind::Edit | CallKind::Plan | CallKind::Ask | CallKind::Other => {}
                }
                if about.kind == CallKind::Execute {
                    self.running.push((it.call_id.clone(), about.target.clone()));
                }
            }
            Fact::ToolResult(it) => {
                self.modified.extend(it.changes.iter().map(|c| c.path.clone()));
                if let Some(at) = self.running.iter().position(|(id, _)| *id == it.call_id) {
                    let (_, command) = self.running.remove(at);
                    let exit = it.exit_code.map_or("not run".to_owned(), |code| format!("exit {code}"));
                    self.commands.push(format!("`{}` → {exit}", shorten(&command, 120)));
                }
            }
            Fact::SessionStarted(_)
            | Fact::SettingsChanged(_)
            | Fact::UserCommand(_)
            | Fact::AssistantMessage(_)
            | Fact::Reasoning(_)
            | Fact::PermissionDecision(_)
            | Fact::PlanUpdated(_)
            | Fact::ProviderUsage(_)
            | Fact::HistoryCompaction(_)
            | Fact::SessionFork(_)
            | Fact::HeadMoved(_)
            | Fact::BranchSummary(_)
            | Fact::FilesRestored(_)
            | Fact::Label(_)
            | Fact::MemoryFact(_)
            | Fact::TurnEnded(_)
            | Fact::LogRepaired(_)
            | Fact::Unknown { .. } => {}
        }
    }

    /// Returns a summary of at most this many bytes. The oldest commands and files, then the longest texts give way.
    fn fitting_summary(
        &mut self,
        history: &History,
        request_is_kept: bool,
        instructions: Option<&str>,
        most: usize,
    ) -> String {
        let mut summary = self.summary(history, request_is_kept, instructions);
        // Each pass halves the lists and texts.
        for pass in 1..=8 {
            if summary.len() <= most {
                return summary;
            }
            let characters = (most >> pass).max(80);
            halve(&mut self.commands);
            halve(&mut self.steers);
            self.halve_requests();
            for files in [&mut self.read, &mut self.modified] {
                let mut names: Vec<String> = std::mem::take(files).into_iter().collect();
                halve(&mut names);
                *files = names.into_iter().collect();
            }
            for text in self.earlier.iter_mut().chain(&mut self.last_words).chain(&mut self.pinned) {
                *text = shorten(text, characters);
            }
            for text in self.requests.iter_mut().chain(&mut self.skills).chain(&mut self.commands) {
                *text = shorten(text, characters);
            }
            summary = self.summary(history, request_is_kept, instructions);
        }
        let mut end = most.min(summary.len());
        while !summary.is_char_boundary(end) {
            end -= 1;
        }
        summary.truncate(end);
        summary
    }

    /// Drops the older half of the requests, but never the current one.
    fn halve_requests(&mut self) {
        let half = self.requests.len() / 2;
        self.requests.drain(..half);
    }

    fn summary(&self, history: &History, request_is_kept: bool, instructions: Option<&str>) -> String {
        let mut text = String::from(
            "This summary was made without a model from the session log; older messages are not in your context any more.\n",
        );
        let mut section = |title: &str, lines: Vec<String>| section(&mut text, title, lines);
        section("The user asked to keep in mind", instructions.map(str::to_owned).into_iter().collect());
        section("Before that", self.earlier.iter().map(|s| shorten(s, MAX_EARLIER)).collect());
        let (last, older) = match self.requests.split_last() {
            Some((last, older)) if !request_is_kept => (Some(last.clone()), older),
            Some(_) | None => (None, self.requests.as_slice()),
        };
        section("Requests so far", older.iter().map(|r| format!("- {}", shorten(r, MAX_REQUEST))).collect());
        section("The current request, verbatim", last.into_iter().collect());
        section(
            "Said while you worked",
            self.steers.iter().map(|s| format!("- {}", shorten(s, MAX_REQUEST))).collect(),
        );
        section("Files changed", self.modified.iter().map(|p| format!("- {p}")).collect());
        section(
            "Files read",
            self.read.iter().filter(|p| !self.modified.contains(*p)).map(|p| format!("- {p}")).collect(),
        );
        let recent = self.commands.len().saturating_sub(20);
        section("Commands run, newest last", self.commands[recent..].iter().map(|c| format!("- {c}")).collect());
        let steps = history.plan.iter().map(|item| {
            let mark = match item.status {
                StepStatus::Completed => "x",
                StepStatus::InProgress => "~",
                StepStatus::Pending => " ",
            };
            format!("- [{mark}] {}", item.step)
        });
        section("Plan", steps.collect());
        section("Pinned by the user, word for word", self.pinned.clone());
        section("Active skills", self.skills.clone());
        section("You said last", self.last_words.iter().map(|s| shorten(s, 2_000)).collect());
        text
    }
}

/// Drops the older half of a list.
fn halve(list: &mut Vec<String>) {
    list.drain(..list.len().div_ceil(2));
}

fn shorten(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most).chain("…".chars()).collect()
}
