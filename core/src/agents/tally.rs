//! What a Turn of a child came to: its last words, and what pixir counted. Nothing is taken from its words.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use crate::files::changes;
use crate::protocol::call_info::CallKind;
use crate::protocol::error::{Code, Error, ErrorKind};
use crate::protocol::event::{
    AgentResult, AgentStatus, Cost, Entry, Evidence, Fact, FileChange, Ran, ToolCall, ToolResult, TurnEnded,
    TurnStatus, Usage, WorkflowEvent,
};
use crate::storage::blobs::Blobs;
use crate::storage::outputs;
use crate::tools::report;
use serde_json::Value;

/// The most bytes of the last text that a parent reads.
pub(super) const MAX_TEXT: usize = 4_000;
/// The most commands that are named.
const MAX_COMMANDS: usize = 10;
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
    /// In their order.
    changes: Vec<FileChange>,
    /// Lines that were added and removed.
    lines: (u64, u64),
    usage: Usage,
    cost: Cost,
    end: Option<TurnEnded>,
    /// Its valid report.
    data: Option<Value>,
    /// Steps of the workflow that it ran, one line each.
    steps: Vec<String>,
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
            Fact::ProviderUsage(it) => {
                self.usage += it.usage;
                self.cost += it.cost;
            }
            Fact::WorkflowEvent(it) => self.take_step(it),
            Fact::TurnEnded(it) => {
                if let Some(run) = it.details.get("workflow") {
                    self.texts.push(told_of_run(run, &self.steps));
                }
                self.end = Some((**it).clone());
            }
            // Its own children worked in the same workspace.
            fact => self.take_changes(fact.changes()),
        }
    }

    fn take_step(&mut self, event: &WorkflowEvent) {
        match event {
            WorkflowEvent::StepEnded(it) => {
                let why = it.error.as_ref().map_or(String::new(), |error| format!(": {}", error.message));
                self.steps.push(format!("{} {}{why}", it.id, it.status.name()));
            }
            WorkflowEvent::Held(it) => self.steps.push(format!("{} {}: {}", it.id, it.status.name(), it.why)),
            WorkflowEvent::Planned(_)
            | WorkflowEvent::StepStarted(_)
            | WorkflowEvent::GateAnswered { .. }
            | WorkflowEvent::Resumed(_) => {}
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
        let evidence = &mut self.evidence;
        let Some(call) = self.calls.remove(&result.call_id) else { return };
        if call.name == report::NAME && result.ok {
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
        let evidence = self.evidence;
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
        let all = self.texts.join("\n\n");
        let handle = folder.filter(|_| !all.is_empty()).and_then(|folder| keep(folder, name, &all));
        AgentResult {
            name: name.to_owned(),
            session_id: session_id.to_owned(),
            status,
            text: cut(last, handle.as_deref()),
            data: self.data,
            handle,
            evidence,
            changes: changes::net(&self.changes, blobs),
            usage: self.usage,
            cost: self.cost,
            duration_ms: self.end.map_or(0, |end| end.duration_ms),
            error,
            ..AgentResult::default()
        }
    }
}

/// What the parent reads of a run: its counts, a line a step, its output.
fn told_of_run(run: &Value, steps: &[String]) -> String {
    let counts = run["counts"].as_object().into_iter().flatten();
    let some = counts.filter_map(|(name, n)| Some(format!("{} {name}", n.as_u64().filter(|n| *n > 0)?)));
    let status = run["status"].as_str().unwrap_or_default();
    let mut text = format!("{status}: {}\n{}", some.collect::<Vec<_>>().join(", "), steps.join("\n"));
    match &run["output"] {
        Value::Null => {}
        Value::String(output) => text.push_str(&format!("\noutput: {output}")),
        other => text.push_str(&format!("\noutput: {other}")),
    }
    text
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
fn cut(text: &str, handle: Option<&str>) -> String {
    if text.len() <= MAX_TEXT {
        return text.to_owned();
    }
    let whole = handle.map_or(String::new(), |path| format!(", all of it in {path}"));
    // Room for the marker.
    let most = MAX_TEXT.saturating_sub(60 + whole.len());
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
        let short = cut(&text, Some("/out/agent-a.md"));
        assert!(short.len() <= MAX_TEXT, "{}", short.len());
        assert!(short.starts_with("begin") && short.ends_with("the end"));
        assert!(short.contains("bytes cut, all of it in /out/agent-a.md"));
        assert_eq!(cut("short", None), "short");
    }
}
