//! `pixir_task`: a Turn in a Session of its own, to the end of what it began.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use pixir_core::event::{AgentEvent, SessionId, Verdict};
use pixir_core::{Entry, Error, Event, Fact, Handle, Input, Live};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::{Server, question, result};
use crate::headless::{Agents, Answer, is_at_rest};
use crate::json_rpc::Failure;
use crate::remedies;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Task {
    task: String,
    session: Option<String>,
}

/// What the events of the Turn say.
#[derive(Default)]
struct Told {
    answer: Answer,
    denials: usize,
    agents: Agents,
    steps: u64,
}

impl Server {
    /// Carries out a task. None if the client has taken it back; then the Turn has been interrupted.
    pub(super) async fn task(
        &self,
        arguments: Value,
        progress: Option<Value>,
        stopped: oneshot::Receiver<()>,
    ) -> Option<Result<Value, Failure>> {
        let task: Task = match serde_json::from_value(arguments) {
            Ok(task) => task,
            Err(e) => return Some(Err(Failure::invalid_params(format!("{e}; pixir_task {{task, session?}}")))),
        };
        let opened = match self.open(task.session.as_deref()).await {
            Ok(opened) => opened,
            Err(failure) => return Some(Err(failure)),
        };
        let outcome = self.follow(&opened, task.task, progress, stopped).await;
        opened.close().await;
        outcome
    }

    async fn open(&self, session: Option<&str>) -> Result<Handle, Failure> {
        let harness = self.harness().await?;
        let session = match session {
            Some(text) => Some(SessionId::parse(text)?),
            None => None,
        };
        let opening = move || match session {
            Some(id) => harness.resume(&id),
            None => harness.start(),
        };
        Ok(tokio::task::spawn_blocking(opening).await.map_err(|_| Failure::internal())??)
    }

    async fn follow(
        &self,
        handle: &Handle,
        task: String,
        progress: Option<Value>,
        mut stopped: oneshot::Receiver<()>,
    ) -> Option<Result<Value, Failure>> {
        let closed = || Some(Err(Failure::new(-32603, "the session closed before it began")));
        let Some(mut watch) = handle.watch().await else { return closed() };
        if let Err(error) = handle.request(Input::Prompt(task.into())).await {
            return Some(Err(error.into()));
        }
        let session = handle.id().to_string();
        let mut told = Told::default();
        let mut questions: FuturesUnordered<BoxFuture<'_, Input>> = FuturesUnordered::new();
        let mut is_stopped = false;
        loop {
            if told.answer.end.is_some() && (is_stopped || is_at_rest(handle).await) {
                break;
            }
            tokio::select! {
                event = watch.next() => {
                    let Some(event) = event else { break };
                    match &event {
                        Event::Recorded(entry) => {
                            told.record(entry);
                            if let Fact::ToolCall(call) = &entry.fact {
                                told.steps += 1;
                                let title = call.about();
                                self.progress(progress.as_ref(), told.steps, &title.title).await;
                            }
                        }
                        Event::Live(event) => match &event.live {
                            // The Log has no end of the Turn that the client waits for.
                            Live::TurnAbandoned { error, .. } if event.agent_path.is_empty() => {
                                return Some(Err(Error::from((**error).clone()).into()));
                            }
                            Live::ApprovalRequested(it) => {
                                let it = it.clone();
                                questions.push(Box::pin(async move {
                                    let (decision, word) = question::decide(self, &it).await;
                                    let input = Input::Decide { call_id: it.call_id, decision, word };
                                    input.for_asker(it.agent.as_ref())
                                }));
                            }
                            Live::FormOpened(form) => {
                                let (form, session) = (form.clone(), session.clone());
                                questions.push(Box::pin(async move { question::answer(self, &session, &form).await }));
                            }
                            _ => {}
                        },
                    }
                }
                Some(input) = questions.next(), if !questions.is_empty() => handle.send(input).await,
                _ = &mut stopped, if !is_stopped => {
                    is_stopped = true;
                    questions.clear();
                    handle.send(Input::Interrupt).await;
                }
            }
        }
        while let Some(event) = watch.try_next() {
            if let Event::Recorded(entry) = &event {
                told.record(entry);
            }
        }
        if is_stopped { None } else { Some(self.told(told, &session).await) }
    }

    async fn told(&self, told: Told, session: &str) -> Result<Value, Failure> {
        let harness = self.harness().await?;
        let files = told.answer.files(harness.blobs());
        let files: Vec<Value> = files.iter().map(|it| json!({ "path": it.path, "kind": it.kind })).collect();
        let missing = told.agents.missing();
        let is_done = told.answer.is_complete() && missing.is_none();
        let Answer { mut text, end, .. } = told.answer;
        let status = end.as_ref().map_or("failed", |it| it.status.name());
        let error = end.as_ref().and_then(|it| it.error.as_deref()).map(|it| Error::from(it.clone()));
        let mut add = |more: String| {
            let gap = if text.is_empty() { "" } else { "\n\n" };
            text = format!("{}{gap}{more}", text.trim_end());
        };
        if let Some(error) = &error {
            add(format!("[{status}] {}; {}", error.message, remedies::word(&error.remedy)));
        }
        if let Some(missing) = missing {
            add(format!("[{}]", missing.message));
        }
        if told.denials > 0 {
            add(format!("[{} calls were refused: {}]", told.denials, self.why_refused()));
        }
        let data = json!({ "session": session, "status": status, "denials": told.denials, "files_changed": files });
        Ok(result(&text, &data, !is_done))
    }

    fn why_refused(&self) -> &'static str {
        match self.0.cli.options.mode.as_deref() {
            Some("read-only") => "this server is read-only; its user can start it with --mode ask or --mode auto",
            _ if self.asks() => "the user said no, or a rule did",
            _ => "they need an approval, and this client cannot ask its user",
        }
    }
}

impl Told {
    fn record(&mut self, entry: &Arc<Entry>) {
        self.answer.take(entry);
        match &entry.fact {
            Fact::PermissionDecision(it) if it.verdict == Verdict::Deny => self.denials += 1,
            Fact::AgentEvent(event) => {
                self.agents.take(event);
                if let AgentEvent::Ended(it) = &**event {
                    self.denials += it.evidence.refused.len();
                }
            }
            _ => {}
        }
    }
}
