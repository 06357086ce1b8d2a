//! A run of a workflow without a terminal: its events as lines, its end as one document.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use pixir_core::call::agents::AGENT_EVENT;
use pixir_core::error::ErrorBody;
use pixir_core::event::{
    AgentEvent, AgentStatus, Ask, Cost, DecidedBy, Denial, Isolation, LiveEvent, Mode, Planned, StepEnded, StepOutcome,
    TurnEnded, TurnStatus, Usage, WorkflowEvent, encode_live,
};
use pixir_core::{Code, Error, Event, Fact, Handle, Input, Live, Remedy};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::going_on::{going_on, permitting, resumes};
use super::refusals::json_of;
use super::report::of_agent;

use crate::args::Format;
use crate::cli::{Signals, spawn};
use crate::output::{Output, chatter, error_json, exit_code, versioned};
use crate::{next_actions, remedies};

/// A step as the events tell it.
#[derive(Debug, Default)]
struct Step {
    status: Option<StepOutcome>,
    ended: Option<StepEnded>,
    session: Option<String>,
    /// 0 until it begins.
    attempt: u32,
    /// The name of its agent.
    agent: Option<String>,
    by: String,
    why: String,
    ask: Option<Ask>,
    /// The calls that hold it.
    refused: Vec<Denial>,
    /// Its agent came to its answer all the same.
    has_result: bool,
}

struct Run<'a> {
    output: &'a Output,
    session: String,
    /// Its steps may change what is around them.
    writes: bool,
    planned: Planned,
    /// The run has just been resumed; an edited graph may follow.
    goes_on: bool,
    /// In the order in which they were first heard of.
    order: Vec<String>,
    steps: BTreeMap<String, Step>,
    /// Whether an agent changed files in a copy of its own, by its Session.
    kept: BTreeMap<String, bool>,
    usage: Usage,
    cost: Cost,
    end: Option<TurnEnded>,
    refused: Option<Error>,
    /// The run is over, and the Log could not record its end.
    abandoned: Option<Error>,
    /// The Log of an agent could not be written.
    lost: Option<Error>,
    stopped: Option<u8>,
    /// The Sessions of its agents whose lines are printed.
    followed: BTreeSet<String>,
    lines: mpsc::UnboundedSender<String>,
}

/// Carries out an Input that begins a run or goes on with one, to the end of the run, and returns the exit code.
pub(crate) async fn carry_out(handle: &Handle, input: Input, output: &Output, mut signals: Signals) -> u8 {
    let began = Instant::now();
    let Some(mut watch) = handle.watch().await else {
        output.error(&Error::new(
            Code::SessionStartFailed,
            "the session closed before it began",
            Remedy::Retry { after_s: None },
        ));
        return 1;
    };
    let (lines, mut heard) = mpsc::unbounded_channel();
    let mut run = Run {
        output,
        session: handle.id().to_string(),
        writes: watch.past.settings.mode == Mode::Auto,
        planned: Planned::default(),
        goes_on: false,
        order: Vec::new(),
        steps: BTreeMap::new(),
        kept: BTreeMap::new(),
        usage: Usage::default(),
        cost: Cost::default(),
        end: None,
        refused: None,
        abandoned: None,
        lost: None,
        stopped: None,
        followed: BTreeSet::new(),
        lines,
    };
    // What an earlier part of the run did is part of its result.
    let is_new = matches!(input, Input::RunWorkflow(_));
    let past = std::mem::take(&mut watch.past);
    for entry in past.entries() {
        if is_new {
            run.print_line(|| entry.encode());
        } else {
            run.take_past(&entry.fact);
        }
    }
    match handle.request(input).await {
        Err(error) => run.refused = Some(error),
        Ok(_) => {
            while run.end.is_none() && run.abandoned.is_none() {
                tokio::select! {
                    biased;
                    Some(line) = heard.recv() => run.output.line(&line),
                    event = watch.next() => match event {
                        Some(event) => run.take(&event, handle),
                        None => break,
                    },
                    code = signals.next() => {
                        if run.stopped.replace(code).is_some() {
                            break;
                        }
                        handle.send(Input::Interrupt).await;
                    }
                }
                if run.output.is_closed() {
                    handle.send(Input::Interrupt).await;
                }
            }
        }
    }
    handle.close().await;
    while let Some(event) = watch.try_next() {
        run.take(&event, handle);
    }
    while let Ok(line) = heard.try_recv() {
        run.output.line(&line);
    }
    run.conclude(began)
}

impl Step {
    /// How it ended. What had begun and has no end was stopped with the run; `None` for what an earlier part of the run held,
    /// and this one has not come to.
    fn status(&self) -> Option<StepOutcome> {
        self.status.or((self.attempt > 0).then_some(StepOutcome::Interrupted))
    }

    /// It is held because calls of its agent were refused.
    fn has_refused_agent(&self) -> bool {
        self.status == Some(StepOutcome::Held) && self.has_result
    }

    /// Its calls that were not permitted.
    fn denials(&self) -> &[Denial] {
        let of_end = || self.ended.as_ref().map_or(&[] as &[Denial], |it| &it.denials);
        if self.refused.is_empty() { of_end() } else { &self.refused }
    }
}

impl Run<'_> {
    fn take(&mut self, event: &Event, handle: &Handle) {
        match event {
            Event::Recorded(entry) => {
                self.print_line(|| entry.encode());
                self.take_fact(&entry.fact);
            }
            Event::Live(event) => {
                self.print_line(|| encode_live(event));
                self.take_fault(event);
                // It is open from now on; when it was started, it may have had to wait for its place.
                if let Live::AgentChanged(it) = &event.live
                    && let ([name], AgentStatus::Running) = (it.path.as_slice(), it.status)
                    && self.output.format == Format::Jsonl
                    && self.followed.insert(it.session_id.clone())
                {
                    spawn(follow(handle.clone(), name.clone(), self.lines.clone()));
                }
            }
        }
    }

    /// A Log that could not be written ends the run, or the step of the agent whose Log it is.
    fn take_fault(&mut self, event: &LiveEvent) {
        match &event.live {
            Live::TurnAbandoned { error, .. } if event.agent_path.is_empty() => {
                self.abandoned.get_or_insert_with(|| (**error).clone().into());
            }
            Live::TurnAbandoned { error, .. } => self.lose(&event.agent_path, error),
            Live::Refused(it) if it.input == AGENT_EVENT => self.lose(&event.agent_path, &it.error),
            _ => {}
        }
    }

    /// The user reads at once what is in no Log.
    fn lose(&mut self, agent: &[String], error: &ErrorBody) {
        let error = Error::from(error.clone());
        self.output.aside(&format!("• {}", of_agent(agent, &error)));
        self.lost.get_or_insert(error);
    }

    fn take_past(&mut self, fact: &Fact) {
        if !matches!(fact, Fact::TurnEnded(_)) {
            self.note(fact, false);
        }
    }

    fn take_fact(&mut self, fact: &Fact) {
        self.note(fact, true);
    }

    fn note(&mut self, fact: &Fact, narrates: bool) {
        match fact {
            Fact::WorkflowEvent(event) => self.note_event(event, narrates),
            Fact::ProviderUsage(it) => {
                self.usage += it.usage;
                self.cost += it.cost;
            }
            Fact::AgentEvent(event) if let AgentEvent::Ended(it) = &**event => {
                self.usage += it.usage;
                self.cost += it.cost;
                let keeps = it.isolation == Isolation::Copy && !it.evidence.changed.is_empty();
                self.kept.insert(it.session_id.clone(), keeps);
            }
            Fact::TurnEnded(it) => self.end = Some((**it).clone()),
            _ => {}
        }
    }

    fn note_event(&mut self, event: &WorkflowEvent, narrates: bool) {
        if let Some(id) = event.step()
            && !self.steps.contains_key(id)
        {
            self.order.push(id.to_owned());
        }
        let step = event.step().map(|id| self.steps.entry(id.to_owned()).or_default());
        match (event, step) {
            (WorkflowEvent::Planned(it), _) => {
                // Without a resume before it, a run of its own begins in the session.
                if !std::mem::take(&mut self.goes_on) {
                    self.order.clear();
                    self.steps.clear();
                }
                self.planned = (**it).clone();
            }
            (WorkflowEvent::Resumed(_), _) => {
                self.goes_on = true;
                // What waited or was held is judged anew.
                for step in self.steps.values_mut() {
                    if matches!(step.status, Some(StepOutcome::Held | StepOutcome::Waiting)) {
                        step.status = None;
                        step.refused.clear();
                    }
                }
            }
            (WorkflowEvent::StepStarted(it), Some(step)) => {
                *step = Step {
                    session: it.session_id.clone(),
                    agent: it.agent.clone(),
                    attempt: it.attempt,
                    ..Step::default()
                };
            }
            (WorkflowEvent::StepEnded(it), Some(step)) => {
                step.status = Some(it.status);
                step.session = it.session_id.clone().or(step.session.take());
                step.ended = Some((**it).clone());
            }
            (WorkflowEvent::Held(it), Some(step)) => {
                step.status = Some(it.status);
                (step.by, step.why, step.ask) = (it.by.clone(), it.why.clone(), it.ask.clone());
                step.refused.clone_from(&it.denials);
                step.has_result = it.ended.is_some();
            }
            (WorkflowEvent::GateAnswered { .. } | WorkflowEvent::ChangedSince(_), _) | (_, None) => {}
        }
        if narrates && matches!(self.output.format, Format::Plain | Format::Tsv) {
            chatter(&event.headline().line());
        }
    }

    fn print_line(&self, line: impl FnOnce() -> pixir_core::Result<String>) {
        if self.output.format == Format::Jsonl
            && let Ok(line) = line()
        {
            self.output.line(&line);
        }
    }

    fn conclude(self, began: Instant) -> u8 {
        let error = self.error();
        let exit = match (self.stopped, &error) {
            (Some(code), _) => code,
            (None, Some(error)) => exit_code(error.code),
            (None, None) => 0,
        };
        let about = self.end.as_ref().and_then(|it| it.details.get("workflow")).cloned().unwrap_or(Value::Null);
        let status = match (&self.end, about["status"].as_str()) {
            (_, Some(word)) => word.to_owned(),
            (Some(end), None) => end.status.name().to_owned(),
            (None, None) => "failed".to_owned(),
        };
        // A run that was stopped has counted nothing itself.
        let counts = match &about["counts"] {
            Value::Null if !self.order.is_empty() => self.counts(),
            counts => counts.clone(),
        };
        let resume = self.resume();
        let mut next = Vec::new();
        let mut result = json!({
            "ok": exit == 0,
            "status": status,
            "session_id": self.session,
            "workflow": self.planned.name,
            "hash": self.planned.hash,
            "counts": counts,
            "work_complete": about["work_complete"].as_bool().unwrap_or(false),
            "steps": self.order.iter().filter_map(|id| self.step(id)).collect::<Vec<_>>(),
            "denials": self.denials().map(|(id, it)| with_step(id, it)).collect::<Vec<_>>(),
            "output": about["output"],
            "usage": self.usage,
            "cost": self.cost,
            "exit_code": exit,
            "duration_ms": u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
        });
        if let Some(error) = &error {
            result["error"] = error_json(error);
            result["code"] = json!(error.code.name());
            result["remediation"] = json!(remedies::word(&error.remedy));
        }
        if exit != 0 && self.refused.is_none() {
            let waiting = self.order.iter().filter_map(|id| Some((id, self.steps[id].ask.as_ref()?)));
            for (id, ask) in waiting.filter(|(id, _)| self.steps[*id].status == Some(StepOutcome::Waiting)) {
                for choice in &ask.choices {
                    next.push(match choice.as_str() {
                        "rerun" | "done" | "skip" => format!("{resume} --{choice} {id}"),
                        _ => format!("{resume} --answer '{id}={choice}'"),
                    });
                }
            }
            next.extend(self.files_that_wait());
            if !next.iter().any(|it| it.starts_with(&resume)) {
                next.push(resume.clone());
            }
            // What the agent did all the same may be enough.
            let refused = self.order.iter().filter(|id| self.steps[*id].has_refused_agent());
            next.extend(refused.map(|id| format!("{resume} --done {id}")));
            result["resume_command"] = json!(resume);
        }
        if let Some(error) = error.as_ref().filter(|_| next.is_empty()) {
            next = next_actions::after(error);
        }
        result["next_actions"] = json!(next);
        match self.output.format {
            Format::Json => self.output.document(result),
            Format::Jsonl => {
                result["type"] = json!("result");
                self.output.line(&versioned(result).to_string());
            }
            Format::Plain | Format::Tsv => {
                match &result["output"] {
                    Value::Null => {}
                    Value::String(text) => self.output.line(text.trim_end()),
                    other => self.output.line(&other.to_string()),
                }
                chatter(&format!("{} · {status} · {}", self.session, counted(&counts)));
                next.iter().for_each(|it| chatter(&format!("next: {it}")));
            }
        }
        if let Some(error) = &error {
            self.output.error(error);
        }
        exit
    }

    /// The command that goes on with the run: with what it was allowed, and with what permits what was refused, as far as flags do.
    fn resume(&self) -> String {
        let refused = || self.denials().map(|(_, it)| it);
        let is_held = |step: &Step| step.status == Some(StepOutcome::Held) && step.by == "permissions";
        // What waits in a copy is adopted in mode auto.
        let has_files = self.steps.values().any(|step| is_held(step) && step.refused.is_empty());
        let writes = self.writes || has_files || refused().any(|it| it.by == DecidedBy::Mode);
        let permitting = permitting(refused(), writes);
        let write = if writes && permitting.is_empty() { " --write" } else { "" };
        format!("pixir workflow resume {}{write}{permitting}", self.session)
    }

    /// Calls of steps that were not permitted, by step.
    fn denials(&self) -> impl Iterator<Item = (&str, &Denial)> {
        self.order.iter().flat_map(|id| self.steps[id].denials().iter().map(move |it| (id.as_str(), it)))
    }

    /// How the user takes over the files that steps left in their copies.
    fn files_that_wait(&self) -> Vec<String> {
        let mut all = Vec::new();
        for id in &self.order {
            let step = &self.steps[id];
            if let (Some(agent), Some(changed)) = (&step.agent, step.session.as_ref().and_then(|it| self.kept.get(it)))
                && step.status() != Some(StepOutcome::Completed)
                && *changed
            {
                all.push(format!("pixir agents adopt {} {agent} --dry-run", self.session));
            }
        }
        all
    }

    /// How many steps ended how; items count in place of their step.
    fn counts(&self) -> Value {
        let has_items =
            |id: &str| self.order.iter().any(|it| it.strip_prefix(id).is_some_and(|it| it.starts_with('.')));
        let ends = self.order.iter().filter(|id| !has_items(id)).filter_map(|id| self.steps[id].status());
        let mut counts: BTreeMap<&str, u64> = StepOutcome::ALL.iter().map(|it| (it.name(), 0)).collect();
        ends.for_each(|end| *counts.entry(end.name()).or_default() += 1);
        json!(counts)
    }

    fn step(&self, id: &str) -> Option<Value> {
        let step = &self.steps[id];
        let status = step.status().map_or("not_run", StepOutcome::name);
        let mut it = json!({ "id": id, "status": status });
        if let Some(session) = &step.session {
            it["session_id"] = json!(session);
        }
        if step.attempt > 1 {
            it["attempt"] = json!(step.attempt);
        }
        if let Some(ended) = &step.ended {
            it["duration_ms"] = json!(ended.duration_ms);
            it["usage"] = json!(ended.usage);
            it["cost"] = json!(ended.cost);
            it["output"] = ended.output.clone();
            if let Some(code) = ended.exit_code {
                it["exit_code"] = json!(code);
            }
            if !ended.stderr.is_empty() {
                it["stderr"] = json!(ended.stderr);
            }
            if !ended.checks.is_empty() {
                it["checks"] = json!(ended.checks);
            }
            if !ended.changes.is_empty() {
                it["changes"] = ended.changes.iter().map(|left| Value::from(left.path.as_str())).collect();
            }
            if let Some(error) = &ended.error {
                it["error"] = json!({ "code": error.code, "message": error.message });
            }
        }
        if !step.denials().is_empty() {
            it["denials"] = step.denials().iter().map(json_of).collect();
        }
        if !step.by.is_empty() {
            (it["by"], it["why"]) = (json!(step.by), json!(step.why));
        }
        if let Some(ask) = &step.ask {
            it["ask"] = json!(ask);
        }
        Some(it)
    }

    /// Why the exit code is not 0.
    fn error(&self) -> Option<Error> {
        if let Some(refused) = &self.refused {
            return Some(refused.clone());
        }
        let resume = || Remedy::command(self.resume());
        if let Some(fault) = self.abandoned.as_ref().or(self.lost.as_ref()) {
            return Some(fault.clone());
        }
        match &self.end {
            Some(TurnEnded { status: TurnStatus::Completed, .. }) => None,
            // A run goes on by a command, not by a message.
            Some(TurnEnded { status: TurnStatus::Interrupted, error: Some(body), .. }) => Some(Error::new(
                Code::from_name(&body.code).unwrap_or(Code::CommandFailed),
                "the run was interrupted",
                resume(),
            )),
            Some(TurnEnded { error: Some(body), .. }) => {
                let error = Error::from((**body).clone());
                let remedy = match resumes(&error.remedy) {
                    true => going_on(error.remedy, &self.resume()),
                    false => Remedy::any_of([resume(), error.remedy]),
                };
                Some(Error { remedy, ..error })
            }
            Some(_) | None => Some(Error::new(Code::CommandFailed, "the run did not end", resume())),
        }
    }
}

fn with_step(id: &str, denial: &Denial) -> Value {
    let mut it = json_of(denial);
    it["step"] = json!(id);
    it
}

/// Prints the events of an agent, each with the name of the agent.
async fn follow(handle: Handle, name: String, lines: mpsc::UnboundedSender<String>) {
    let Ok(agent) = handle.agent(std::slice::from_ref(&name)).await else { return };
    drop(handle);
    let Some(mut watch) = agent.watch().await else { return };
    // The agent closes when its work is over.
    drop(agent);
    let named = |line: String| -> Option<String> {
        let mut value: Value = serde_json::from_str(&line).ok()?;
        value["agent"] = json!(name);
        Some(value.to_string())
    };
    let past = std::mem::take(&mut watch.past);
    for entry in past.entries() {
        if let Some(line) = entry.encode().ok().and_then(&named) {
            let _ = lines.send(line);
        }
    }
    while let Some(event) = watch.next().await {
        let line = match &event {
            Event::Recorded(entry) => entry.encode(),
            Event::Live(live) => encode_live(live),
        };
        if let Some(line) = line.ok().and_then(&named) {
            let _ = lines.send(line);
        }
    }
}

fn counted(counts: &Value) -> String {
    let counts = counts.as_object().into_iter().flatten();
    let some = counts.filter_map(|(name, n)| Some((name, n.as_u64().filter(|n| *n > 0)?)));
    some.map(|(name, n)| format!("{n} {}", name.replace('_', " "))).collect::<Vec<_>>().join(", ")
}
