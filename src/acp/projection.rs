//! Events as the updates of the protocol. A Session that is loaded goes through the same functions as one that runs.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use pixir_core::call_info::CallKind;
use pixir_core::changes;
use pixir_core::event::{
    AgentEvent, Attachment, ChangeKind, Cost, FileChange, LiveEvent, PlanItem, ProviderUsage, SettingsChanged,
    Severity, StepStatus, ToolCall, ToolResult, UserMessage, Verdict,
};
use pixir_core::history::History;
use pixir_core::text::clean::{clean, visible};
use pixir_core::text::encoding;
use pixir_core::text::human::next_attempt;
use pixir_core::{Entry, Fact, Harness, Live};
use serde_json::{Value, json};

use super::Abilities;
use crate::remedies;

/// The most of one side of a diff; a larger one is shown as changed lines, bytes.
const MOST_SIDE: usize = 256 << 10;
/// How much of the output of a running command is shown, bytes.
const TAIL: usize = 4 << 10;
/// The pause between two updates of a running call.
const PAUSE: Duration = Duration::from_millis(250);
/// The longest title of a Session, characters.
const MOST_TITLE: usize = 80;

/// One update.
#[derive(Debug, PartialEq)]
pub(super) enum Update {
    /// As the protocol has it.
    Wire(Value),
    /// The options of the Session, which have changed.
    Options,
}

/// Whether Entries happen now or are told again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Moment {
    Now,
    Before,
}

/// A call without a result.
struct Open {
    is_terminal: bool,
    runs: bool,
    printed: bool,
    tail: String,
    /// When its tail was shown last; none if it has not changed since.
    changed: bool,
    shown: Option<Instant>,
}

/// What the updates of a Session so far have told the client.
pub(super) struct Projection {
    harness: Harness,
    abilities: Abilities,
    turn: u32,
    /// Messages and thoughts that the Turn has recorded.
    messages: u32,
    thoughts: u32,
    /// Attempts of the present request that failed.
    attempts: u32,
    /// What was streamed and is not recorded yet.
    text: String,
    thought: String,
    calls: HashMap<String, Open>,
    /// The call that started a child.
    children: HashMap<String, String>,
    cost: Cost,
    has_title: bool,
    notices: u32,
}

fn block(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

fn content(text: &str) -> Value {
    json!({ "type": "content", "content": block(text) })
}

fn chunk(kind: &str, id: &str, content: Value) -> Update {
    Update::Wire(json!({ "sessionUpdate": kind, "messageId": id, "content": content }))
}

/// A text between fences that are longer than any in it.
fn fenced(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}\n{}\n{fence}", text.trim_end_matches('\n'))
}

/// The protocol's word for what a call does.
pub(super) const fn kind(kind: CallKind) -> &'static str {
    match kind {
        CallKind::Read => "read",
        CallKind::Search => "search",
        CallKind::Edit => "edit",
        CallKind::Execute => "execute",
        CallKind::Plan => "think",
        CallKind::Ask | CallKind::Agent | CallKind::Other => "other",
    }
}

impl Projection {
    pub(super) fn new(harness: Harness, abilities: Abilities) -> Projection {
        Projection {
            harness,
            abilities,
            turn: 0,
            messages: 0,
            thoughts: 0,
            attempts: 0,
            text: String::new(),
            thought: String::new(),
            calls: HashMap::new(),
            children: HashMap::new(),
            cost: Cost::default(),
            has_title: false,
            notices: 0,
        }
    }

    /// Goes on behind these Entries.
    pub(super) fn pass(&mut self, past: &History) {
        let is_prompt = |it: &Arc<Entry>| matches!(it.fact, Fact::UserMessage(_));
        self.has_title = past.settings.name.is_some() || past.path().any(is_prompt);
        // Other branches have cost something too.
        self.cost = past.cost;
    }

    /// The path as an absolute one.
    pub(super) fn absolute(&self, path: &str) -> PathBuf {
        self.harness.workspace().join(path)
    }

    /// The updates of an Entry.
    pub(super) fn entry(&mut self, entry: &Entry, moment: Moment) -> Vec<Update> {
        if let Some(turn) = entry.turn.filter(|turn| *turn != self.turn) {
            (self.turn, self.messages, self.thoughts, self.attempts) = (turn, 0, 0, 0);
        }
        match &entry.fact {
            Fact::UserMessage(it) => self.prompt(it, entry.seq, moment),
            Fact::AssistantMessage(it) => {
                let streamed = std::mem::take(&mut self.text);
                let ids = (self.text_id(), self.next_text());
                rest("agent_message_chunk", ids, &streamed, &it.text)
            }
            Fact::Reasoning(it) => {
                let streamed = std::mem::take(&mut self.thought);
                let ids = (self.thought_id(), self.next_thought());
                rest("agent_thought_chunk", ids, &streamed, &it.text)
            }
            Fact::UserCommand(it) => vec![self.call(&it.as_call())],
            Fact::ToolCall(it) => vec![self.call(it)],
            Fact::PermissionDecision(it) if it.verdict == Verdict::Allow => self.begins(&it.call_id),
            Fact::ToolResult(it) => vec![self.result(it)],
            Fact::PlanUpdated(it) => vec![plan(&it.items)],
            Fact::ProviderUsage(it) => self.usage(it).into_iter().collect(),
            Fact::HistoryCompaction(it) if self.abilities.compaction => vec![Update::Wire(json!({
                "sessionUpdate": "compaction_update", "compactionId": format!("c{}", entry.seq), "status": "completed",
                "summary": [block(&it.summary)],
            }))],
            Fact::SettingsChanged(it) => self.settings(it, moment),
            Fact::FilesRestored(it) => {
                let paths: Vec<&str> = it.changes.iter().map(|change| change.path.as_str()).collect();
                let left: Vec<String> = it.left.iter().map(|it| format!("{} stays: {}", it.path, it.why)).collect();
                let text = format!("restored {}", paths.join(", "));
                self.notice(moment, Severity::Info, &text, Some(left.join("\n")).filter(|it| !it.is_empty()))
            }
            Fact::SkillActivation(it) => {
                self.notice(moment, Severity::Info, &format!("the skill {} is active", it.name), None)
            }
            Fact::AgentEvent(event) if let AgentEvent::Spawned(it) = &**event => {
                if let Some(call) = &it.call_id {
                    self.children.insert(it.name.clone(), call.clone());
                    return Vec::new();
                }
                self.notice(moment, Severity::Info, &format!("the agent {} begins: {}", it.name, it.task), None)
            }
            Fact::AgentEvent(event)
                if let AgentEvent::Ended(it) = &**event
                    && !self.children.contains_key(&it.name) =>
            {
                let text = format!("the agent {} ended: {}", it.name, it.status.name());
                self.notice(moment, Severity::Info, &text, Some(it.text.clone()).filter(|it| !it.is_empty()))
            }
            Fact::TurnEnded(_) => {
                self.calls.clear();
                Vec::new()
            }
            // The card of its call shows an agent, and of a run a client sees the agents and the questions.
            Fact::AgentEvent(_) | Fact::WorkflowEvent(_) => Vec::new(),
            fact => match fact.headline() {
                Some(it) => self.notice(moment, Severity::Info, &it.to_string(), None),
                None => Vec::new(),
            },
        }
    }

    /// The updates of a live event.
    pub(super) fn live(&mut self, event: &LiveEvent) -> Vec<Update> {
        if let Some(turn) = event.turn.filter(|turn| *turn != self.turn) {
            (self.turn, self.messages, self.thoughts, self.attempts) = (turn, 0, 0, 0);
        }
        match &event.live {
            Live::TextDelta { text } => {
                self.text.push_str(text);
                vec![chunk("agent_message_chunk", &self.text_id(), block(text))]
            }
            Live::ReasoningDelta { text } => {
                self.thought.push_str(text);
                vec![chunk("agent_thought_chunk", &self.thought_id(), block(text))]
            }
            Live::CallPrepared { call_id, info, .. } if info.reads_only => self.begins(call_id),
            Live::ToolOutputDelta { call_id, printed } => self.printed(call_id, &printed.text),
            Live::AgentChanged(state) => {
                let Some(call) = state.path.first().and_then(|name| self.children.get(name)).cloned() else {
                    return Vec::new();
                };
                let text =
                    format!("{}: {} · {} calls · {}", state.name(), state.status.name(), state.calls, state.doing);
                self.tail(&call, |tail| *tail = clean(&text).into_owned())
            }
            Live::RetryScheduled { attempt, of, wait_ms, left_ms, reason } => {
                // The next attempt begins at the start of the answer.
                self.attempts += 1;
                (self.text, self.thought) = (String::new(), String::new());
                let title = format!("the request failed; {}", next_attempt(*attempt, *of, *wait_ms, *left_ms));
                self.notice(Moment::Now, Severity::Warning, &title, Some(reason.clone()))
            }
            Live::Notice { severity, message, remedy, .. } => {
                let remedy = remedy.as_ref().map(remedies::word);
                self.notice(Moment::Now, *severity, message, remedy)
            }
            // The request that these belong to is answered with the error.
            Live::Refused(it) if ["prompt", "set", "decide", "answer"].contains(&it.input.as_str()) => Vec::new(),
            Live::Refused(it) => {
                let remedy = Some(it.error.remediation.clone()).filter(|it| !it.is_empty());
                self.notice(Moment::Now, Severity::Warning, &it.error.message, remedy)
            }
            Live::TrustAsked(it) if it.needs_answer() => {
                let paths: Vec<&str> = it.all.iter().map(|it| it.path.as_str()).collect();
                let text = format!("not in force without your trust: {}", paths.join(", "));
                self.notice(Moment::Now, Severity::Info, &text, Some("/trust shows it, and asks".to_owned()))
            }
            _ => Vec::new(),
        }
    }

    // ─── messages ───

    fn text_id(&self) -> String {
        let again = "'".repeat(self.attempts as usize);
        format!("t{}.{}{again}", self.turn, self.messages)
    }

    fn thought_id(&self) -> String {
        let again = "'".repeat(self.attempts as usize);
        format!("r{}.{}{again}", self.turn, self.thoughts)
    }

    /// Counts a recorded message, and gives the id of one that was not streamed.
    fn next_text(&mut self) -> String {
        let id = format!("t{}.{}", self.turn, self.messages);
        self.messages += 1;
        self.attempts = 0;
        id
    }

    fn next_thought(&mut self) -> String {
        let id = format!("r{}.{}", self.turn, self.thoughts);
        self.thoughts += 1;
        id
    }

    /// A client shows what its user sent by itself.
    fn prompt(&mut self, it: &UserMessage, seq: u64, moment: Moment) -> Vec<Update> {
        let mut updates = Vec::new();
        if moment == Moment::Before {
            let id = format!("u{seq}");
            updates.push(chunk("user_message_chunk", &id, block(&it.text)));
            let images = it.attachments.iter().filter_map(|image| self.image(image));
            updates.extend(images.map(|image| chunk("user_message_chunk", &id, image)));
        }
        if !std::mem::replace(&mut self.has_title, true) {
            let line = it.text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
            let title: String = clean(line.trim()).chars().take(MOST_TITLE).collect();
            updates.push(Update::Wire(json!({ "sessionUpdate": "session_info_update", "title": title })));
        }
        updates
    }

    fn image(&self, it: &Attachment) -> Option<Value> {
        let bytes = self.harness.blobs().get(&it.blob).ok()?;
        let data = base64::engine::general_purpose::STANDARD.encode(bytes);
        Some(json!({ "type": "image", "mimeType": it.media_type, "data": data }))
    }

    // ─── calls ───

    fn call(&mut self, it: &ToolCall) -> Update {
        let info = it.about();
        let is_terminal = self.abilities.terminal_output && info.kind == CallKind::Execute;
        let open = Open { is_terminal, runs: false, printed: false, tail: String::new(), changed: false, shown: None };
        self.calls.insert(it.call_id.clone(), open);
        let locations: Vec<Value> = info.paths.iter().map(|path| json!({ "path": self.absolute(path) })).collect();
        let mut update = json!({
            "sessionUpdate": "tool_call", "toolCallId": it.call_id, "title": visible(&info.title), "name": it.name,
            "kind": kind(info.kind), "status": "pending", "rawInput": it.args,
        });
        if !locations.is_empty() {
            update["locations"] = json!(locations);
        }
        if is_terminal {
            update["content"] = json!([{ "type": "terminal", "terminalId": it.call_id }]);
            update["_meta"] =
                json!({ "terminal_info": { "terminal_id": it.call_id, "cwd": self.harness.workspace() } });
        }
        Update::Wire(update)
    }

    fn begins(&mut self, call_id: &str) -> Vec<Update> {
        let Some(open) = self.calls.get_mut(call_id).filter(|open| !open.runs) else { return Vec::new() };
        open.runs = true;
        vec![Update::Wire(
            json!({ "sessionUpdate": "tool_call_update", "toolCallId": call_id, "status": "in_progress" }),
        )]
    }

    fn printed(&mut self, call_id: &str, text: &str) -> Vec<Update> {
        let mut updates = self.begins(call_id);
        let Some(open) = self.calls.get_mut(call_id) else { return updates };
        if open.is_terminal {
            open.printed = true;
            updates.push(terminal(call_id, json!({ "terminal_output": { "terminal_id": call_id, "data": text } })));
            return updates;
        }
        updates.extend(self.tail(call_id, |tail| {
            tail.push_str(text);
            let from = tail.ceil_char_boundary(tail.len().saturating_sub(TAIL));
            tail.drain(..from);
        }));
        updates
    }

    /// Changes what is shown of a running call, and shows it if it was not shown a moment ago.
    fn tail(&mut self, call_id: &str, change: impl FnOnce(&mut String)) -> Vec<Update> {
        let Some(open) = self.calls.get_mut(call_id) else { return Vec::new() };
        change(&mut open.tail);
        open.changed = true;
        self.due_now(Instant::now())
    }

    /// When the next tail is to be shown, if one has changed.
    pub(super) fn due(&self) -> Option<Instant> {
        let waiting = self.calls.values().filter(|open| open.changed);
        waiting.filter_map(|open| open.shown.map(|at| at + PAUSE)).min()
    }

    /// The tails that are to be shown now.
    pub(super) fn due_now(&mut self, now: Instant) -> Vec<Update> {
        let mut updates = Vec::new();
        for (call_id, open) in &mut self.calls {
            if open.changed && open.shown.is_none_or(|at| now >= at + PAUSE) {
                (open.changed, open.shown) = (false, Some(now));
                let content = [content(&fenced(&open.tail))];
                updates.push(Update::Wire(
                    json!({ "sessionUpdate": "tool_call_update", "toolCallId": call_id, "content": content }),
                ));
            }
        }
        updates
    }

    fn result(&mut self, it: &ToolResult) -> Update {
        let open = self.calls.remove(&it.call_id);
        let is_terminal = open.as_ref().is_some_and(|open| open.is_terminal);
        let mut all: Vec<Value> = it.changes.iter().map(|change| self.diff(change)).collect();
        if is_terminal {
            all.push(json!({ "type": "terminal", "terminalId": it.call_id }));
        } else if !it.output.trim().is_empty() {
            all.push(content(&fenced(&it.output)));
        }
        let mut raw = json!({});
        if let Some(code) = it.exit_code {
            raw["exit_code"] = json!(code);
        }
        if let Some(truncated) = &it.truncated {
            raw["truncated"] = json!(truncated);
        }
        if let Some(path) = &it.overflow_path {
            raw["overflow_path"] = json!(path);
        }
        if let Some(error) = &it.error {
            raw["error"] = json!({ "code": error.code, "message": error.message });
        }
        let status = if it.ok { "completed" } else { "failed" };
        let mut update = json!({
            "sessionUpdate": "tool_call_update", "toolCallId": it.call_id, "status": status, "content": all,
            "rawOutput": raw,
        });
        if is_terminal {
            let id = &it.call_id;
            let mut meta = json!({ "terminal_exit": { "terminal_id": id, "exit_code": it.exit_code, "signal": null } });
            if !open.is_some_and(|open| open.printed) {
                meta["terminal_output"] = json!({ "terminal_id": id, "data": it.output });
            }
            update["_meta"] = meta;
        }
        Update::Wire(update)
    }

    /// A file as it was and as it is, from the stored versions.
    fn diff(&self, it: &FileChange) -> Value {
        let bytes = |blob: &Option<String>| blob.as_ref().and_then(|name| self.harness.blobs().get(name).ok());
        let (before, after) = (bytes(&it.before_blob), bytes(&it.after_blob));
        let is_short = |bytes: &Option<Vec<u8>>| bytes.as_ref().is_none_or(|it| it.len() <= MOST_SIDE);
        let texts = (is_short(&before) && is_short(&after))
            .then(|| encoding::both(before.as_deref().unwrap_or_default(), after.as_deref().unwrap_or_default()))
            .flatten();
        let path = self.absolute(&it.path);
        let (old, new) = texts.unzip();
        let (old, new) = (old.filter(|_| before.is_some()), new.filter(|_| after.is_some()));
        let is_whole = match it.kind {
            ChangeKind::Created => new.is_some(),
            ChangeKind::Modified => old.is_some() && new.is_some(),
            ChangeKind::Deleted => old.is_some(),
        };
        if is_whole {
            return json!({ "type": "diff", "path": path, "oldText": old, "newText": new.unwrap_or_default() });
        }
        let (lines, ..) = changes::unified(&it.path, before.as_deref(), after.as_deref());
        content(&fenced(&clean(&lines)))
    }

    // ─── the rest ───

    fn usage(&mut self, it: &ProviderUsage) -> Option<Update> {
        self.cost += it.cost;
        let size = self.harness.providers().window(&it.provider, &it.model)?;
        let mut update =
            json!({ "sessionUpdate": "usage_update", "used": it.usage.input + it.usage.output, "size": size });
        if self.cost.usd > 0.0 {
            update["cost"] = json!({ "amount": self.cost.usd, "currency": "USD" });
        }
        Some(Update::Wire(update))
    }

    fn settings(&mut self, it: &SettingsChanged, moment: Moment) -> Vec<Update> {
        if moment == Moment::Before && it.name.is_none() {
            // The answer to the request has the options as they are.
            return Vec::new();
        }
        let mut updates = Vec::new();
        if moment == Moment::Now {
            updates.push(Update::Options);
        }
        if let Some(mode) = it.mode.filter(|_| moment == Moment::Now) {
            updates.push(Update::Wire(json!({ "sessionUpdate": "current_mode_update", "currentModeId": mode.name() })));
        }
        if let Some(name) = &it.name {
            self.has_title = true;
            let title = Some(clean(name)).filter(|name| !name.is_empty());
            updates.push(Update::Wire(json!({ "sessionUpdate": "session_info_update", "title": title })));
        }
        if let Some(reason) = &it.reason {
            updates.extend(self.notice(moment, Severity::Info, reason, None));
        }
        updates
    }

    /// Something for the user that is no part of the conversation. A client that shows no notices gets warnings as thoughts.
    pub(super) fn notice(
        &mut self,
        moment: Moment,
        severity: Severity,
        title: &str,
        description: Option<String>,
    ) -> Vec<Update> {
        if moment == Moment::Before {
            return Vec::new();
        }
        if self.abilities.notices {
            let name = match severity {
                Severity::Info => "info",
                Severity::Warning => "warning",
            };
            let mut update = json!({ "sessionUpdate": "notice", "severity": name, "title": clean(title) });
            if let Some(text) = description {
                update["description"] = json!(clean(&text));
            }
            return vec![Update::Wire(update)];
        }
        match severity {
            Severity::Info => Vec::new(),
            Severity::Warning => {
                self.notices += 1;
                let more = description.map_or_else(String::new, |it| format!("\n{it}"));
                let text = format!("{title}{more}");
                vec![chunk("agent_thought_chunk", &format!("n{}", self.notices), block(&clean(&text)))]
            }
        }
    }
}

/// What of a recorded text was not streamed.
fn rest(kind: &str, (streaming, whole): (String, String), streamed: &str, text: &str) -> Vec<Update> {
    match text.strip_prefix(streamed) {
        Some("") => Vec::new(),
        Some(rest) => vec![chunk(kind, if streamed.is_empty() { &whole } else { &streaming }, block(rest))],
        None => vec![chunk(kind, &format!("{whole}*"), block(text))],
    }
}

fn terminal(call_id: &str, meta: Value) -> Update {
    Update::Wire(json!({ "sessionUpdate": "tool_call_update", "toolCallId": call_id, "_meta": meta }))
}

fn plan(items: &[PlanItem]) -> Update {
    let entries: Vec<Value> = items
        .iter()
        .map(|it| {
            let status = match it.status {
                StepStatus::Pending => "pending",
                StepStatus::InProgress => "in_progress",
                StepStatus::Completed => "completed",
            };
            json!({ "content": it.step, "priority": "medium", "status": status })
        })
        .collect();
    Update::Wire(json!({ "sessionUpdate": "plan", "entries": entries }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recorded_text_sends_only_what_was_not_streamed() {
        let ids = || ("s".to_owned(), "w".to_owned());
        let told = |streamed: &str, text: &str| match rest("k", ids(), streamed, text).pop() {
            None => "nothing".to_owned(),
            Some(Update::Wire(it)) => format!("{} {}", it["messageId"], it["content"]["text"]),
            Some(Update::Options) => unreachable!("a text changes no options"),
        };
        assert_eq!(told("abc", "abc"), "nothing");
        assert_eq!(told("ab", "abc"), r#""s" "c""#);
        assert_eq!(told("", "abc"), r#""w" "abc""#);
        assert_eq!(told("xyz", "abc"), r#""w*" "abc""#);
    }

    #[test]
    fn a_fence_is_longer_than_those_inside() {
        assert_eq!(fenced("a\n"), "```\na\n```");
        assert_eq!(fenced("````\nx"), "`````\n````\nx\n`````");
    }
}
