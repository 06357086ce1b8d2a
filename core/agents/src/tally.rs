//! What a Turn of a child came to: its last words, and what pixir counted. Nothing is taken from its words.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use files::changes;
use permissions::ONLY_READS;
use protocol::call_info::CallKind;
use protocol::error::{Code, Error, ErrorKind};
use protocol::event::{
    AgentEvent, AgentResult, AgentStatus, Cost, Denial, Entry, Evidence, Fact, FileChange, PermissionDecision, Ran,
    StepOutcome, ToolCall, ToolResult, TurnEnded, TurnStatus, Usage, Verdict, WorkflowEvent,
};
use serde_json::Value;
use storage::blobs::Blobs;
use storage::outputs;

/// The most bytes of the last text that a parent reads.
pub(super) const MAX_TEXT: usize = 4_000;
/// The most bytes that a parent reads of the steps of a run, and of its output.
const MAX_LINES: usize = 2_200;
const MAX_OUTPUT: usize = 700;
/// The least bytes of a line, which hold the name of a step and how it ended.
const LEAST_LINE: usize = 34;
/// The most commands that are named.
const MAX_COMMANDS: usize = 10;
/// The most calls that are named as refused.
const MAX_REFUSED: usize = 20;
/// The most files that are named as read.
const MAX_READ: usize = 100;
/// The most characters of a command.
const MAX_COMMAND: usize = 200;

/// Collects the Entries of one Turn.
#[derive(Debug, Default)]
pub(super) struct Tally {
    texts: Vec<String>,
    calls: BTreeMap<String, ToolCall>,
    evidence: Evidence,
    /// Calls that were allowed to do more than read, its own and those of agents below it.
    acted: u64,
    /// In their order.
    changes: Vec<FileChange>,
    /// Lines that were added and removed.
    lines: (u64, u64),
    usage: Usage,
    cost: Cost,
    end: Option<TurnEnded>,
    /// How its own children ended; `None` while one runs.
    children: BTreeMap<String, Option<AgentStatus>>,
    /// A call of it, or of one below it, was refused for want of permission.
    wants_permission: bool,
    /// Its valid report.
    data: Option<Value>,
    /// It carried out a workflow.
    is_run: bool,
    /// The steps of that, in the order in which they began.
    steps: Vec<StepEnd>,
    /// What it came to, short enough for a model.
    brief: Option<String>,
}

/// How much is told of a run.
#[derive(Debug, Clone, Copy)]
enum Room {
    All,
    /// As much as a model reads.
    Brief,
}

/// What a step of a run came to so far.
#[derive(Debug)]
struct StepEnd {
    id: String,
    outcome: StepOutcome,
    why: String,
}

impl fmt::Display for StepEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.id, self.outcome.name())?;
        if self.why.is_empty() { Ok(()) } else { write!(f, ": {}", self.why) }
    }
}

impl Tally {
    /// Takes the next Entry of the Turn.
    pub(super) fn take(&mut self, entry: &Entry) {
        match &entry.fact {
            Fact::AssistantMessage(it) if !it.text.trim().is_empty() => self.texts.push(it.text.clone()),
            Fact::ToolCall(it) => {
                self.evidence.calls += 1;
                self.calls.insert(it.call_id.clone(), (**it).clone());
            }
            Fact::ToolResult(it) => self.take_result(it),
            Fact::PermissionDecision(it) => match it.verdict {
                Verdict::Deny => self.take_denial(it),
                Verdict::Allow => self.acted += u64::from(it.reason != ONLY_READS),
            },
            Fact::AgentEvent(it) => {
                self.take_child(it);
                // It worked in the same workspace.
                self.take_changes(entry.fact.changes());
            }
            Fact::ProviderUsage(it) => {
                self.usage += it.usage;
                self.cost += it.cost;
            }
            Fact::WorkflowEvent(it) => self.take_step(it),
            Fact::TurnEnded(it) => {
                if self.is_run {
                    self.texts.push(told_of_run(it, &self.steps, Room::All));
                    self.brief = Some(told_of_run(it, &self.steps, Room::Brief));
                    // Its steps tell what they came to.
                    self.evidence.commands.clear();
                }
                self.end = Some((**it).clone());
            }
            fact => self.take_changes(fact.changes()),
        }
    }

    fn take_denial(&mut self, decision: &PermissionDecision) {
        let call = self.calls.get(&decision.call_id).map_or(String::new(), |call| call.about().title.clone());
        self.refuse(Denial::of(decision, call));
    }

    /// Counts a call that was not permitted; several parts of it are one.
    fn refuse(&mut self, denial: Denial) {
        self.wants_permission |= denial.wants_permission();
        let refused = &mut self.evidence.refused;
        let is_same = |it: &Denial| it.call_id == denial.call_id && it.agent == denial.agent && it.by == denial.by;
        if refused.len() < MAX_REFUSED && !refused.iter().any(is_same) {
            refused.push(denial);
        }
    }

    fn take_child(&mut self, event: &AgentEvent) {
        match event {
            AgentEvent::Ended(it) => {
                self.children.insert(it.name.clone(), Some(it.status));
                for denial in &it.evidence.refused {
                    self.refuse(denial.clone().below(&it.name));
                }
                self.wants_permission |= it.status == AgentStatus::Held;
                self.acted += it.evidence.acted.unwrap_or(it.evidence.calls);
            }
            AgentEvent::Resumed { name } => {
                self.children.insert(name.clone(), None);
            }
            AgentEvent::Spawned(_)
            | AgentEvent::Told { .. }
            | AgentEvent::Changed { .. }
            | AgentEvent::Reported { .. }
            | AgentEvent::Adopting(_)
            | AgentEvent::Adopted(_) => {}
        }
    }

    /// What the work of its own children is missing, whatever the answer says.
    fn missing(&self) -> Option<Error> {
        let ended = self.children.iter().filter_map(|(name, status)| Some((name, (*status)?)));
        let left = ended.filter(|(_, status)| is_missing(*status));
        let left: Vec<String> = left.map(|(name, status)| format!("{name} ({})", status.name())).collect();
        let all = self.children.len();
        let code = if left.len() < all { Code::AgentsPartial } else { Code::AgentsFailed };
        let names = left.join(", ");
        let message = format!("{} of {all} agents that it started did not complete: {names}", left.len());
        (!left.is_empty()).then(|| Error::new(code, message, "read what it says, and have what is missing done"))
    }

    fn take_step(&mut self, event: &WorkflowEvent) {
        self.is_run |= event.begins();
        let (id, outcome, why) = match event {
            // What has begun and has no end when the Turn ends was cut off with it.
            WorkflowEvent::StepStarted(it) => (&it.id, StepOutcome::Interrupted, String::new()),
            WorkflowEvent::StepEnded(it) => {
                (&it.id, it.status, it.error.as_ref().map_or(String::new(), |error| error.message.clone()))
            }
            WorkflowEvent::Held(it) => (&it.id, it.status, it.why.clone()),
            WorkflowEvent::Planned(_)
            | WorkflowEvent::GateAnswered { .. }
            | WorkflowEvent::Resumed(_)
            | WorkflowEvent::ChangedSince(_) => return,
        };
        match self.steps.iter_mut().find(|step| step.id == *id) {
            Some(step) => (step.outcome, step.why) = (outcome, why),
            None => self.steps.push(StepEnd { id: id.clone(), outcome, why }),
        }
    }

    fn take_changes(&mut self, changes: &[FileChange]) {
        for change in changes {
            self.lines.0 += change.added;
            self.lines.1 += change.removed;
            if !self.evidence.changed.contains(&change.path) {
                self.evidence.changed.push(change.path.clone());
            }
        }
        self.changes.extend_from_slice(changes);
    }

    fn take_result(&mut self, result: &ToolResult) {
        let evidence = &mut self.evidence;
        if let Some(error) = &result.error {
            let is_refused = matches!(error.kind, ErrorKind::PermissionDenied | ErrorKind::OutsideWorkspace);
            *(if is_refused { &mut evidence.denials } else { &mut evidence.failures }) += 1;
        } else if !result.ok {
            evidence.failures += 1;
        }
        self.take_changes(&result.changes);
        let Some(call) = self.calls.remove(&result.call_id) else { return };
        let evidence = &mut self.evidence;
        if call.name == call::agents::REPORT && result.ok {
            self.data = Some(call.args.value());
            return;
        }
        let about = call.about();
        match about.kind {
            CallKind::Execute => {
                let line = about.target.lines().next().unwrap_or_default();
                let command = line.chars().take(MAX_COMMAND).collect();
                evidence.commands.push(Ran { command, exit_code: result.exit_code });
                let extra = evidence.commands.len().saturating_sub(MAX_COMMANDS);
                evidence.commands.drain(..extra);
            }
            CallKind::Read if result.ok => {
                for path in &about.paths {
                    if evidence.read.len() < MAX_READ && !evidence.read.contains(path) {
                        evidence.read.push(path.clone());
                    }
                }
            }
            _ => {}
        }
    }

    /// Lines that were added and removed so far.
    pub(super) fn lines(&self) -> (u64, u64) {
        self.lines
    }

    /// The result of the Turn. All its texts go to the folder of the parent's saved outputs, if there is one. It reads file
    /// versions.
    pub(super) fn result(self, name: &str, session_id: &str, folder: Option<&Path>, blobs: &Blobs) -> AgentResult {
        let last = self.texts.last().map(String::as_str).unwrap_or_default();
        let (mut status, mut error) = match &self.end {
            // Written by the repair of a Log whose process died.
            Some(end) if end.details.get("reason").is_some_and(|it| it == "crash") => {
                (AgentStatus::Detached, Some(detached().body()))
            }
            Some(end) => (status_of(end.status), end.error.as_deref().cloned()),
            None => (AgentStatus::Detached, Some(detached().body())),
        };
        if status == AgentStatus::Completed && last.trim().is_empty() && self.data.is_none() {
            status = AgentStatus::Failed;
            error = Some(empty(name).body());
        }
        // Refused work is not done work, and a run whose step was refused says so by its code.
        let is_held = match (self.is_run, status) {
            (true, _) => error.as_ref().is_some_and(|it| it.code == Code::WorkflowHeld.name()),
            (false, AgentStatus::Completed) => self.wants_permission,
            (false, _) => false,
        };
        if is_held {
            status = AgentStatus::Held;
        } else if status == AgentStatus::Completed
            && !self.is_run
            && let Some(missing) = self.missing()
        {
            (status, error) = (AgentStatus::Failed, Some(missing.body()));
        }
        // No message continues a run, and the model cannot resume it.
        if self.is_run
            && let Some(body) = error.take()
        {
            let remedy = format!("the user goes on with the run {session_id}");
            error = Some(Error { remedy: remedy.into(), ..body.into() }.body());
        }
        let all = self.texts.join("\n\n");
        let handle = folder.filter(|_| !all.is_empty()).and_then(|folder| keep(folder, name, &all));
        AgentResult {
            name: name.to_owned(),
            session_id: session_id.to_owned(),
            status,
            text: self.brief.unwrap_or_else(|| cut(last, MAX_TEXT, handle.as_deref())),
            data: self.data,
            handle,
            evidence: Evidence { acted: Some(self.acted), ..self.evidence },
            changes: changes::net(&self.changes, blobs),
            usage: self.usage,
            cost: self.cost,
            duration_ms: self.end.map_or(0, |end| end.duration_ms),
            error,
            ..AgentResult::default()
        }
    }
}

/// What the parent reads of a run: its counts, a line a step, its output. A run that was stopped has counted nothing itself.
fn told_of_run(end: &TurnEnded, steps: &[StepEnd], room: Room) -> String {
    let run = end.details.get("workflow").unwrap_or(&Value::Null);
    let some: Vec<String> = match run["counts"].as_object() {
        Some(counts) => {
            counts.iter().filter_map(|(name, n)| Some(format!("{} {name}", n.as_u64().filter(|n| *n > 0)?))).collect()
        }
        None => StepOutcome::ALL
            .into_iter()
            .map(|outcome| (steps.iter().filter(|step| step.outcome == outcome).count(), outcome.name()))
            .filter(|(n, _)| *n > 0)
            .map(|(n, name)| format!("{n} {name}"))
            .collect(),
    };
    let status = run["status"].as_str().unwrap_or(end.status.name());
    let mut text = format!("{status}: {}\n", some.join(", "));
    match room {
        Room::All => steps.iter().for_each(|step| text.push_str(&format!("{step}\n"))),
        Room::Brief => text.push_str(&brief_lines(steps)),
    }
    let output = match &run["output"] {
        Value::Null => return text,
        Value::String(output) => output.clone(),
        other => other.to_string(),
    };
    text.push_str("output: ");
    text.push_str(&match room {
        Room::All => output,
        Room::Brief => cut(&output, MAX_OUTPUT, None),
    });
    text
}

/// A line a step, all together within [`MAX_LINES`]. Where not all fit, those that did not complete come first.
fn brief_lines(steps: &[StepEnd]) -> String {
    let most = (MAX_LINES / steps.len().max(1)).clamp(LEAST_LINE, 300);
    let line = |step: &StepEnd| {
        let line = step.to_string();
        match line.len() < most {
            true => format!("{line}\n"),
            false => format!("{}…\n", &line[..line.floor_char_boundary(most - '…'.len_utf8() - 1)]),
        }
    };
    let mut order: Vec<&StepEnd> = steps.iter().collect();
    if steps.len() * LEAST_LINE > MAX_LINES {
        order.sort_by_key(|step| step.outcome.is_done());
    }
    let mut text = String::new();
    for (n, step) in order.iter().enumerate() {
        let line = line(step);
        if text.len() + line.len() > MAX_LINES {
            text.push_str(&format!("… and {} more steps\n", order.len() - n));
            break;
        }
        text.push_str(&line);
    }
    text
}

/// Whether what a child was to do is missing. Who stopped one knows that, and what was refused to it counts as refused.
fn is_missing(status: AgentStatus) -> bool {
    match status {
        AgentStatus::Failed | AgentStatus::Incomplete | AgentStatus::TimedOut | AgentStatus::Detached => true,
        AgentStatus::Completed
        | AgentStatus::Held
        | AgentStatus::Interrupted
        | AgentStatus::Queued
        | AgentStatus::Running
        | AgentStatus::Waiting => false,
    }
}

fn status_of(status: TurnStatus) -> AgentStatus {
    match status {
        TurnStatus::Completed => AgentStatus::Completed,
        TurnStatus::Incomplete => AgentStatus::Incomplete,
        TurnStatus::PartialFailed | TurnStatus::Failed => AgentStatus::Failed,
        TurnStatus::Interrupted => AgentStatus::Interrupted,
        TurnStatus::TimedOut => AgentStatus::TimedOut,
    }
}

/// The error of a child whose process died under it.
pub(super) fn detached() -> Error {
    let message = "pixir was killed while this agent ran";
    Error::new(Code::Detached, message, "tell_agent to let it go on; what it did until then is kept")
}

fn empty(name: &str) -> Error {
    Error::new(
        Code::EmptyAnswer,
        format!("{name} ended without an answer"),
        "look at what it did, or ask another agent",
    )
}

/// The end of a text that is too long is what counts: an agent sums up last.
fn cut(text: &str, most: usize, handle: Option<&str>) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let whole = handle.map_or(String::new(), |path| format!(", all of it in {path}"));
    // Room for the marker.
    let most = most.saturating_sub(60 + whole.len());
    let (head, tail) = (text.floor_char_boundary(most / 4), text.ceil_char_boundary(text.len() - most / 4 * 3));
    format!("{}\n…[{} bytes cut{whole}]…\n{}", &text[..head], tail - head, &text[tail..])
}

/// Saves all texts of a Turn, and returns the file's path. A result is worth having without its file.
fn keep(folder: &Path, name: &str, text: &str) -> Option<String> {
    let write = || -> std::io::Result<String> {
        let folder = outputs::folder(folder)?;
        let path = folder.join(format!("agent-{name}.md"));
        let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&path)?;
        let end = usize::try_from(outputs::MAX_SPILL).unwrap_or(usize::MAX).min(text.len());
        file.write_all(&text.as_bytes()[..end])?;
        Ok(path.display().to_string())
    };
    write().inspect_err(|e| tracing::warn!("the texts of an agent were not saved: {e}")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_report_keeps_its_end_and_says_what_is_cut_and_where_it_is() {
        let text = format!("begin {} the end", "é".repeat(5_000));
        let short = cut(&text, MAX_TEXT, Some("/out/agent-a.md"));
        assert!(short.len() <= MAX_TEXT, "{}", short.len());
        assert!(short.starts_with("begin") && short.ends_with("the end"));
        assert!(short.contains("bytes cut, all of it in /out/agent-a.md"));
        assert_eq!(cut("short", MAX_TEXT, None), "short");
    }
}
