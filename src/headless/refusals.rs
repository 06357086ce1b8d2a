//! The calls of a headless run that were not permitted: those of the model, and those of its agents.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use pixir_core::call_info::{CallInfo, CallKind};
use pixir_core::event::{AgentEvent, AgentStatus, DecidedBy, Denial, Fact, Rule, Verdict};
use pixir_core::{Code, Error, Remedy, rules};
use serde_json::{Value, json};

use super::going_on::permitting;
use crate::next_actions::quoted;

/// How the command line leaves calls to be judged.
#[derive(Debug, Clone, Default)]
pub(crate) struct Judging {
    /// Rules of the command line say what may run, in place of a mode. What they do not name is refused as a change is: the user
    /// chose no mode that asks.
    pub(crate) by_rules: bool,
    pub(crate) workspace: PathBuf,
}

/// The calls of a run that were refused so far.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    all: Vec<Denial>,
    /// What the calls that have no result yet are about.
    calls: BTreeMap<String, CallInfo>,
    /// The rules that would have allowed refused calls; `None` is that of a call which no simple rule allows.
    rules: BTreeSet<Option<String>>,
    judging: Judging,
    /// An agent is held, whatever holds it.
    is_held: bool,
    /// The run may change files.
    writes: bool,
}

impl Refusals {
    pub(super) fn of_run(writes: bool, judging: Judging) -> Refusals {
        Refusals { writes, judging, ..Refusals::default() }
    }

    pub(super) fn take(&mut self, fact: &Fact) {
        match fact {
            Fact::ToolCall(it) => {
                self.calls.insert(it.call_id.clone(), it.about().into_owned());
            }
            Fact::PermissionDecision(it) if it.verdict == Verdict::Deny => {
                let call = self.calls.get(&it.call_id);
                self.rules.insert(call.and_then(|call| self.rule_for(call)));
                let title = call.map(|call| call.title.clone()).unwrap_or_default();
                self.all.push(Denial::of(it, title));
            }
            Fact::ToolResult(it) => {
                self.calls.remove(&it.call_id);
            }
            Fact::AgentEvent(event) if let AgentEvent::Ended(it) = &**event => {
                self.is_held |= it.status == AgentStatus::Held;
                self.rules.extend(it.evidence.refused.iter().map(|_| None));
                self.all.extend(it.evidence.refused.iter().map(|denial| denial.clone().below(&it.name)));
            }
            _ => {}
        }
    }

    pub(super) fn json(&self) -> Vec<Value> {
        self.all.iter().map(json_of).collect()
    }

    /// The flags with which a run of a workflow in the Session goes on.
    pub(super) fn flags(&self) -> String {
        permitting(&self.all, self.writes)
    }

    /// Work is missing for want of permission, also where the model found another way.
    pub(super) fn error(&self, session: &str) -> Option<Error> {
        let Some(first) = self.all.iter().find(|it| it.wants_permission()) else {
            let fix = Remedy::text("permit the step, and go on: ").and_command(format!("pixir resume {session}"));
            return self.is_held.then(|| Error::new(Code::MutationBlocked, "a step of a workflow is held", fix));
        };
        let code = match first.by {
            DecidedBy::Mode | DecidedBy::Role | DecidedBy::User | DecidedBy::Task => Code::MutationBlocked,
            DecidedBy::Rule => Code::PermissionDenied,
            DecidedBy::NoAsker if self.judging.by_rules => Code::MutationBlocked,
            DecidedBy::NoAsker | DecidedBy::Unknown => Code::InputRequired,
        };
        let n = self.all.len();
        let were = if n == 1 { "was" } else { "were" };
        let message = if self.all.iter().all(|it| it.agent.is_empty()) {
            format!("{n} of the model's calls {were} refused")
        } else {
            format!("{n} of the calls of the model and its agents {were} refused; {}", first.line())
        };
        Some(Error::new(code, message, self.permitting(first, session)))
    }

    /// The rule that would allow such calls, where one does and destroys nothing.
    fn rule_for(&self, call: &CallInfo) -> Option<String> {
        let text = match (call.kind, call.paths.as_slice()) {
            (CallKind::Execute, _) => format!("bash({})", rules::pattern_of(&call.target, &self.judging.workspace)?),
            (CallKind::Edit, [path]) if !path.contains(['*', '?', '[', '{', '\\', '(', ')']) => {
                format!("files({path})")
            }
            _ => return None,
        };
        let scope = rules::parse(&text).ok()?;
        let is_plain = !text.contains('\'') && rules::danger_of(&scope).is_none();
        is_plain.then_some(text)
    }

    /// Every change, or what a rule names: the rule that allows everything that was refused, or its form.
    fn or_by_rule(&self) -> Remedy {
        let only = Some(&self.rules).filter(|it| it.len() == 1).and_then(|it| it.first()?.as_deref());
        let rule = only.map_or_else(|| "RULE".to_owned(), quoted);
        Remedy::text("run it again with ")
            .and_flag("--write")
            .and_text(", with ")
            .and_flag(format!("--allow {rule}"))
            .and_text(" to allow one kind of call, or with ")
            .and_flag("--dry-run")
            .and_text(" to preview the changes")
    }

    /// What permits a call that was refused.
    fn permitting(&self, denial: &Denial, session: &str) -> Remedy {
        let other_role = || {
            let text = Remedy::text("have a role do it that may: ");
            text.and_command(format!("pixir resume {session} PROMPT"))
        };
        match denial.by {
            // The mode of the run allows it, and that of the agent does not.
            DecidedBy::Mode if self.writes => other_role(),
            DecidedBy::Mode => self.or_by_rule(),
            DecidedBy::NoAsker if self.judging.by_rules => self.or_by_rule(),
            DecidedBy::Role => other_role(),
            DecidedBy::Rule => Remedy::text("revoke the rule that refuses it: ").and_command("pixir permissions list"),
            DecidedBy::NoAsker | DecidedBy::Unknown | DecidedBy::User | DecidedBy::Task => {
                let rule = match &denial.rule {
                    Some(Rule::Allow(scope)) => quoted(&rules::shown(scope)),
                    Some(Rule::Deny(_)) | None => "RULE".to_owned(),
                };
                Remedy::text("run it in the terminal, where you can answer, or with ")
                    .and_flag(format!("--allow {rule}"))
            }
        }
    }
}

/// A refused call in a document.
pub(super) fn json_of(it: &Denial) -> Value {
    let mut document = json!({ "call_id": it.call_id, "by": it.by, "reason": it.reason });
    if !it.call.is_empty() {
        document["call"] = json!(it.call);
    }
    if !it.agent.is_empty() {
        document["agent"] = json!(it.agent.join("/"));
    }
    document
}
