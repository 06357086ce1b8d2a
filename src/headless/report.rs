//! The result of a headless run, collected from the Events of its Session.

use std::io::{IsTerminal as _, Write as _};
use std::mem;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::time::{Duration, Instant};

use pixir_core::call::agents::{AGENT_EVENT, AGENT_REPORT};
use pixir_core::changes::FileDiff;
use pixir_core::error::ErrorBody;
use pixir_core::event::{AgentEvent, Cost, Mode, Status, TurnEnded, TurnStatus, Usage, encode_live};
use pixir_core::now::Now;
use pixir_core::remedy::{Limit, Remedy};
use pixir_core::store::Store;
use pixir_core::text::human::human_duration;
use pixir_core::{Blobs, Code, Error, Event, Fact, Handle, Input, Live, NewFile, Result, Watch};
use serde_json::{Value, json};

use super::agents::Agents;
use super::going_on::{going_on, resumes};
use super::narration::{self, Narrator};
use super::refusals::{Judging, Refusals};
use super::{Answer, AnswerSchema, Job, Narrate};
use crate::args::Format;
use crate::cli::Signals;
use crate::output::{Output, chatter, count, error_json, exit_code, versioned};
use crate::{next_actions, remedies};

/// Whether what stdout prints appears where stderr does: on the terminal, or in one file or pipe, as behind `2>&1`.
fn is_shown_by_stdout() -> bool {
    let place = |fd: BorrowedFd<'_>| rustix::fs::fstat(fd).map(|it| (it.st_dev, it.st_ino));
    let (stdout, stderr) = (std::io::stdout(), std::io::stderr());
    stdout.is_terminal()
        || matches!((place(stdout.as_fd()), place(stderr.as_fd())), (Ok(one), Ok(other)) if one == other)
}

/// The most characters of one file's diff in a result.
const MOST_DIFF: usize = 20_000;
/// The most characters of a prompt that the notes on stderr repeat.
const LONGEST_ECHO: usize = 200;

/// What a headless run waits for besides its own work.
#[expect(clippy::large_enum_variant, reason = "nearly all of them are events")]
pub(super) enum Heard {
    Event(Event),
    /// A signal asks pixir to stop, with this exit code.
    Signal(u8),
    /// The Session has closed.
    Closed,
}

impl Heard {
    pub(super) async fn next(watch: &mut Watch, signals: &mut Signals) -> Heard {
        tokio::select! {
            event = watch.next() => event.map_or(Heard::Closed, Heard::Event),
            code = signals.next() => Heard::Signal(code),
        }
    }

    /// Whether the Session comes to rest here, or is to come to rest.
    pub(super) fn is_a_rest(&self) -> bool {
        match self {
            Heard::Event(Event::Live(event)) => match &event.live {
                Live::Status { status } => *status == Status::Idle,
                Live::AgentChanged(agent) => !agent.status.is_open(),
                // What was to go on does not.
                Live::Refused(_) | Live::TurnAbandoned { .. } => true,
                _ => false,
            },
            Heard::Event(Event::Recorded(_)) => false,
            Heard::Signal(_) | Heard::Closed => true,
        }
    }
}

/// The result of a run, collected from its events.
pub(super) struct Report<'a> {
    output: &'a Output,
    narrate: Narrate,
    narrator: Narrator,
    session: String,
    answer: Answer,
    /// Narration that is printed when another entry follows it.
    held: Option<String>,
    streamed: String,
    usage: Usage,
    /// pixir estimated a part of the tokens.
    usage_estimated: bool,
    cost: Cost,
    tool_calls: u64,
    blobs: Blobs,
    refusals: Refusals,
    judging: Judging,
    pub(super) agents: Agents,
    /// When a run whose agents still work ends all the same.
    deadline: Option<(Instant, Duration)>,
    is_late: bool,
    /// A Turn belongs to the run, and must have ended.
    pub(super) expects_turn: bool,
    /// What happens is the output of the run, as no model answers.
    pub(super) is_command: bool,
    pub(super) refused: Option<Error>,
    /// The Log of the Session, or that of an agent, could not be written.
    lost: Option<Error>,
    /// The exit code of the signal that asked pixir to stop.
    pub(super) stopped: Option<u8>,
    /// The answer as the value that fits its schema.
    value: Option<Value>,
    answer_file: Option<PathBuf>,
    store: Store,
    is_kept: bool,
}

impl<'a> Report<'a> {
    pub(super) fn new(handle: &Handle, job: &Job<'a>) -> Report<'a> {
        Report {
            output: job.output,
            narrate: job.narrate,
            narrator: Narrator::default(),
            session: handle.id().to_string(),
            answer: Answer::default(),
            held: None,
            streamed: String::new(),
            usage: Usage::default(),
            usage_estimated: false,
            cost: Cost::default(),
            tool_calls: 0,
            blobs: job.blobs.clone(),
            refusals: Refusals::of_run(false, job.judging.clone()),
            judging: job.judging.clone(),
            agents: Agents::default(),
            deadline: job.deadline.map(|limit| (Instant::now() + limit, limit)),
            is_late: false,
            expects_turn: true,
            is_command: false,
            refused: None,
            lost: None,
            stopped: None,
            value: None,
            answer_file: job.answer_file.clone(),
            store: job.store.clone(),
            // The demo deletes its workspace and its Session when it ends.
            is_kept: job.is_kept && job.narrate == Narrate::OnStderr,
        }
    }

    /// The run may change files, as far as roles leave that.
    pub(super) fn writes(&mut self, mode: Mode) {
        let writes = mode == Mode::Auto;
        (self.agents, self.refusals) = (Agents::of_run(writes), Refusals::of_run(writes, self.judging.clone()));
    }

    /// Follows the Turn to its end, and the agents that it leaves behind to theirs: what they report starts Turns of the
    /// same run.
    pub(super) async fn follow(&mut self, handle: &Handle, watch: &mut Watch, signals: &mut Signals) {
        let mut may_be_done = true;
        while self.refused.is_none() && !(may_be_done && self.is_done(handle).await) {
            let late = self.deadline.filter(|_| self.answer.end.is_some()).map(|(at, _)| at);
            let heard = tokio::select! {
                heard = Heard::next(watch, signals) => heard,
                () = until(late) => return self.too_late(),
            };
            may_be_done = heard.is_a_rest() || self.agents.is_empty();
            if !self.take(heard, handle).await {
                return;
            }
        }
    }

    /// Whether nothing of the run is still to come. Agents of a Turn that did not complete are not waited for.
    async fn is_done(&self, handle: &Handle) -> bool {
        match &self.answer.end {
            None => false,
            Some(end) if end.status != TurnStatus::Completed || self.agents.is_empty() => true,
            Some(_) if self.stopped.is_some() || self.output.is_closed() => true,
            Some(_) => is_at_rest(handle).await,
        }
    }

    /// Makes sure that the answer fits its schema: the model is told once what is wrong with it.
    pub(super) async fn fit(
        &mut self,
        schema: &AnswerSchema,
        handle: &Handle,
        watch: &mut Watch,
        signals: &mut Signals,
    ) {
        for is_last in [false, true] {
            if !self.answer.is_complete() || self.refused.is_some() || self.stopped.is_some() {
                return;
            }
            let faults = match schema.value(&self.answer.text) {
                Ok(value) => {
                    self.value = Some(value);
                    return;
                }
                Err(faults) if is_last => {
                    self.refused = Some(AnswerSchema::error(&faults));
                    return;
                }
                Err(faults) => faults,
            };
            self.answer.begin_again();
            let answer = handle.submit(Input::Prompt(schema.again(&faults).into())).await;
            match self.wait_for(handle, watch, signals, answer).await {
                Some(Ok(_)) => self.follow(handle, watch, signals).await,
                Some(Err(error)) => self.refused = Some(error),
                None => return,
            }
        }
    }

    /// Writes the answer to the file that the user named: all of it, in one step.
    fn save_answer(&self, path: &Path, answer: &str) -> Result<()> {
        let folder = path.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let write = || -> std::io::Result<()> {
            std::fs::metadata(folder)?;
            let mut file = NewFile::create(path, &self.store.running())?;
            file.write_all(answer.trim_end().as_bytes())?;
            file.write_all(b"\n")?;
            file.finish()
        };
        write().map_err(|e| {
            let shown = path.display().to_string();
            let fix = "name a file in a folder that can be written";
            Error::new(Code::WriteFailed, format!("write the answer to {shown}: {e}"), fix).with("input", shown)
        })
    }

    fn too_late(&mut self) {
        let Some((_, limit)) = self.deadline else { return };
        let message = format!("the run reached its deadline of {} s while its agents still worked", limit.as_secs());
        let more = Remedy::RaiseLimit { limit: Limit::Deadline };
        let error = Error::new(Code::DeadlineReached, message, more);
        self.is_late = true;
        if let Some(end) = &mut self.answer.end {
            end.status = TurnStatus::Incomplete;
            end.error = Some(error.body().into());
        }
    }

    /// Handles events until something else is done. None if there is nothing more to wait for.
    pub(super) async fn wait_for<T>(
        &mut self,
        handle: &Handle,
        watch: &mut Watch,
        signals: &mut Signals,
        done: impl Future<Output = T>,
    ) -> Option<T> {
        let mut done = pin!(done);
        let outcome = loop {
            let heard = tokio::select! {
                outcome = &mut done => break outcome,
                heard = Heard::next(watch, signals) => heard,
            };
            if !self.take(heard, handle).await {
                return None;
            }
        };
        self.catch_up(watch);
        Some(outcome)
    }

    /// Handles the events that are there already.
    pub(super) fn catch_up(&mut self, watch: &mut Watch) {
        while let Some(event) = watch.try_next() {
            self.handle_event(&event);
        }
    }

    /// Handles what was heard. False if there is nothing more to wait for: the Session has closed, or a second signal came.
    pub(super) async fn take(&mut self, heard: Heard, handle: &Handle) -> bool {
        match heard {
            Heard::Event(event) => {
                self.handle_event(&event);
                if self.output.is_closed() {
                    handle.send(Input::Interrupt).await;
                }
                true
            }
            Heard::Signal(_) if self.stopped.is_some() => false,
            Heard::Signal(code) => {
                self.stopped = Some(code);
                handle.send(Input::Interrupt).await;
                true
            }
            Heard::Closed => false,
        }
    }

    pub(super) fn handle_event(&mut self, event: &Event) {
        match event {
            Event::Recorded(entry) => {
                // How a run ends that was too late is known already.
                if !(self.is_late && matches!(entry.fact, Fact::TurnEnded(_))) {
                    self.answer.take(entry);
                }
                self.record(&entry.fact);
                self.print_line(|| entry.encode());
                if let Some(text) = self.narrator.entry(&entry.fact) {
                    self.tell(&text);
                    self.narrate_entry(&entry.fact, text);
                }
            }
            Event::Live(event) => {
                match &event.live {
                    Live::TextDelta { text } => self.streamed.push_str(text),
                    Live::Refused(refusal) if refusal.input == "prompt" => {
                        self.refused.get_or_insert_with(|| refusal.error.clone().into());
                    }
                    // A Session can accept an Input, and then not record its Turn.
                    Live::TurnAbandoned { error, .. } if event.agent_path.is_empty() => {
                        self.refused.get_or_insert_with(|| (**error).clone().into());
                    }
                    Live::TurnAbandoned { error, .. } => self.lose(&event.agent_path, error),
                    Live::Refused(refusal) if [AGENT_EVENT, AGENT_REPORT].contains(&refusal.input.as_str()) => {
                        self.lose(&event.agent_path, &refusal.error);
                    }
                    // The next attempt begins at the start of the answer.
                    Live::RetryScheduled { .. } => self.streamed.clear(),
                    Live::CompactionPreviewed(it) => {
                        let it = &it.compaction;
                        let (before, after) = (it.tokens_before, it.tokens_after);
                        self.tell(&format!("would compact: {before} → {after} tokens\n\n{}", it.summary));
                    }
                    Live::RestorePreviewed(it) => {
                        let paths: Vec<&str> = it.files.iter().map(|file| file.path.as_str()).collect();
                        self.tell(&format!("would restore: {}", paths.join(", ")));
                    }
                    Live::AgentChanged(state) => self.agents.follow(state),
                    _ => {}
                }
                self.print_line(|| encode_live(event));
                if let Some(text) = narration::live(&event.live) {
                    self.narrate(&text);
                }
            }
        }
    }

    /// Something of an agent is not in a Log: the user reads it at once, and the run does not end with success.
    fn lose(&mut self, agent: &[String], error: &ErrorBody) {
        let error = Error::from(error.clone());
        self.output.aside(&format!("• {}", of_agent(agent, &error)));
        self.lost.get_or_insert(error);
    }

    /// Adds what a command did to the output of its run.
    fn tell(&mut self, text: &str) {
        if !self.is_command {
            return;
        }
        let answer = &mut self.answer.text;
        let gap = if answer.is_empty() { "" } else { "\n" };
        *answer = format!("{answer}{gap}{}", text.trim_end().trim_start_matches("• "));
    }

    fn record(&mut self, fact: &Fact) {
        self.refusals.take(fact);
        match fact {
            // The message has it, and may be megabytes long.
            Fact::AssistantMessage(_) => self.streamed = String::new(),
            Fact::ProviderUsage(it) => {
                self.usage += it.usage;
                self.usage_estimated |= it.estimated;
                self.cost += it.cost;
            }
            Fact::ToolCall(_) => self.tool_calls += 1,
            Fact::AgentEvent(event) => {
                self.agents.take(event);
                match &**event {
                    AgentEvent::Ended(it) => {
                        self.usage += it.usage;
                        self.cost += it.cost;
                    }
                    AgentEvent::Spawned(_)
                    | AgentEvent::Reported { .. }
                    | AgentEvent::Told { .. }
                    | AgentEvent::Changed { .. }
                    | AgentEvent::Resumed { .. }
                    | AgentEvent::Adopting(_)
                    | AgentEvent::Adopted(_) => {}
                }
            }
            _ => {}
        }
    }

    fn print_line(&self, line: impl FnOnce() -> Result<String>) {
        if self.output.format == Format::Jsonl
            && let Ok(line) = line()
        {
            self.output.line(&line);
        }
    }

    /// Holds back the answer if stdout shows it in the same place.
    fn narrate_entry(&mut self, fact: &Fact, text: String) {
        if let Some(held) = self.held.take() {
            self.narrate(&held);
        }
        let is_answer = matches!(fact, Fact::AssistantMessage(it) if !it.partial);
        let is_own = matches!(fact, Fact::UserMessage(_)) && self.narrate == Narrate::OnStderr;
        let text = if is_own { beginning(&text) } else { text };
        if is_answer && self.narrate == Narrate::OnStderr && is_shown_by_stdout() {
            self.held = Some(text);
        } else {
            self.narrate(&text);
        }
    }

    fn narrate(&self, text: &str) {
        match (self.output.format, self.narrate) {
            (Format::Plain, Narrate::OnStdout) => self.output.line(text),
            (Format::Plain | Format::Tsv, _) => chatter(text),
            (Format::Json | Format::Jsonl, _) => {}
        }
    }

    /// Prints the result and returns the exit code.
    pub(super) fn conclude(mut self, began: Instant) -> u8 {
        let is_answered = self.answer.is_complete();
        if let Some(path) = self.answer_file.take().filter(|_| is_answered && self.refused.is_none())
            && let Err(e) = self.save_answer(&path, &self.answer.text)
        {
            self.refused = Some(e);
        }
        let error = self.error();
        let files = self.answer.files(&self.blobs);
        let exit = self.exit(error.as_ref());
        let status = match &self.answer.end {
            Some(end) => end.status.name(),
            None if error.is_none() => TurnStatus::Completed.name(),
            None => "failed",
        };
        let resume = self.is_kept.then(|| format!("pixir resume {}", self.session));
        let output = mem::take(if self.answer.text.is_empty() { &mut self.streamed } else { &mut self.answer.text });
        let mut result = json!({
            "ok": exit == 0,
            "status": status,
            "session_id": self.session,
            "output": "",
            "usage": self.usage,
            "usage_estimated": self.usage_estimated,
            "cost": self.cost,
            "tool_calls": self.tool_calls,
            "files_changed": files.iter().map(file_json).collect::<Vec<_>>(),
            "denials": self.refusals.json(),
            "agents": self.agents.json(&self.session),
            "resume_command": &resume,
            "exit_code": exit,
            "duration_ms": u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
        });
        result["output"] = Value::String(output);
        if let Some(value) = self.value.take() {
            result["structured_output"] = value;
        }
        let mut next = Vec::new();
        if let Some(error) = &error {
            result["error"] = error_json(error);
            result["code"] = json!(error.code.name());
            result["remediation"] = json!(remedies::word(&error.remedy));
            next.extend(next_actions::after(error));
        }
        for command in resume.into_iter().chain(self.agents.commands(&self.session)) {
            if !next.contains(&command) {
                next.push(command);
            }
        }
        result["next_actions"] = json!(next);
        match self.output.format {
            Format::Json => self.output.document(result),
            Format::Jsonl => {
                result["type"] = json!("result");
                self.output.line(&versioned(result).to_string());
            }
            Format::Plain | Format::Tsv => {
                if self.narrate == Narrate::OnStdout {
                    files.iter().for_each(|file| self.output.line(file.text.trim_end()));
                } else {
                    let answer = result["output"].as_str().unwrap_or_default().trim_end();
                    // A run without an answer has an empty stdout.
                    if !answer.is_empty() {
                        self.output.line(answer);
                    }
                }
                let cost = Some(self.cost.to_string())
                    .filter(|it| !it.is_empty())
                    .map_or(String::new(), |it| format!(" · {it}"));
                chatter(&format!(
                    "{} · {} · {} in, {} out{cost}",
                    self.session,
                    human_duration(began.elapsed()),
                    self.usage.input,
                    self.usage.output
                ));
            }
        }
        // A reader that has enough, such as `head`, ends the run and is no fault to tell of.
        let has_reader = !self.output.is_closed() || self.output.failure().is_some();
        if let Some(error) = error.filter(|_| has_reader) {
            self.output.error_with_exit(&error.with("session_id", self.session.as_str()), exit);
        }
        exit
    }

    /// Why the exit code is not 0.
    fn error(&self) -> Option<Error> {
        if let Some(refused) = &self.refused {
            return Some(refused.clone());
        }
        let failed = match &self.answer.end {
            Some(TurnEnded { status: TurnStatus::Completed, .. }) => None,
            Some(TurnEnded { error: Some(body), .. }) => Some(self.of_turn((**body).clone().into())),
            None if !self.expects_turn && self.stopped.is_none() => None,
            Some(_) | None => Some(Error::new(Code::CommandFailed, "the turn did not end", self.resume())),
        };
        // The process ends with the signal, so no reader is left for a message.
        let stopped = self.stopped.map(|_| self.resume());
        let failed = failed.map(|error| Error { remedy: stopped.unwrap_or(error.remedy), ..error });
        let of_agents = || self.agents.missing().or_else(|| self.agents.waiting(&self.session));
        let lost = || self.lost.clone();
        failed
            .or_else(lost)
            .or_else(|| self.refusals.error(&self.session))
            .or_else(|| of_agents().filter(|_| !self.is_command))
    }

    /// Why the Turn did not complete. A run of a workflow in this Session goes on by a command of its own.
    fn of_turn(&self, error: Error) -> Error {
        if !resumes(&error.remedy) {
            return error;
        }
        let resume = format!("pixir workflow resume {}{}", self.session, self.refusals.flags());
        Error { remedy: going_on(error.remedy, &resume), ..error }
    }

    fn resume(&self) -> Remedy {
        Remedy::Resume { id: self.session.to_string() }
    }

    fn exit(&self, error: Option<&Error>) -> u8 {
        if let Some(code) = self.stopped {
            return code;
        }
        match (&self.answer.end, error) {
            // A run of a workflow waits, and no limit has ended it.
            (Some(_), Some(error)) if matches!(error.code, Code::WorkflowHeld | Code::InputRequired) => {
                exit_code(error.code)
            }
            (Some(TurnEnded { status: TurnStatus::Incomplete, .. }), _) => 14,
            (Some(TurnEnded { status: TurnStatus::TimedOut, .. }), _) => 8,
            (_, Some(error)) => exit_code(error.code),
            (_, None) => 0,
        }
    }
}

/// A fault of the Log, with the agent whose work is not recorded.
pub(super) fn of_agent(agent: &[String], error: &Error) -> String {
    let what = format!("{}; {}", error.message, remedies::word(&error.remedy));
    if agent.is_empty() { what } else { format!("agent {}: {what}", agent.join("/")) }
}

/// Whether the Session does nothing, and its agents neither.
pub(crate) async fn is_at_rest(handle: &Handle) -> bool {
    handle.settle().await;
    let Some(Watch { now: Now { turn, children, waking, .. }, .. }) = handle.watch().await else { return true };
    turn.is_none() && !waking && !children.iter().any(|child| child.status.is_open())
}

/// The first line of a prompt, which its user knows: with a document from stdin, it can have a megabyte.
fn beginning(text: &str) -> String {
    let mut lines = text.trim_end().lines();
    let first = lines.next().unwrap_or_default();
    let end = first.char_indices().nth(LONGEST_ECHO).map_or(first.len(), |(at, _)| at);
    let (cut, more) = (if end < first.len() { "…" } else { "" }, lines.count());
    let more = if more == 0 { String::new() } else { format!("\n  … and {}", count(more, "more line")) };
    format!("{}{cut}{more}\n", &first[..end])
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at.into()).await,
        None => std::future::pending().await,
    }
}

fn file_json(it: &FileDiff) -> Value {
    let most = it.text.char_indices().nth(MOST_DIFF).map_or(it.text.len(), |(at, _)| at);
    json!({ "path": it.path, "kind": it.kind, "added": it.added, "removed": it.removed, "diff": &it.text[..most], "diff_truncated": most < it.text.len() })
}
