//! One open Session: the client's requests become Inputs, its Events become updates, in one order.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use pixir_core::error::ErrorKind;
use pixir_core::event::{Approval, Form, SettingsChanged, Severity, TurnEnded, TurnStatus, encode_live};
use pixir_core::history::{Settings, starts_turn};
use pixir_core::input::{Message, RuleReach, SettingsChange};
use pixir_core::{Accepted, Code, Error, Event, Fact, Handle, Harness, Input, Live, Watch};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use super::projection::{Moment, Projection, Update};
use super::slash::{self, Meaning};
use super::wire::{Ask, Asked, Client, Failure, Reply, notification};
use super::{Abilities, content, options, question};
use crate::headless;
use crate::headless::host;

/// What a client asks of an open Session.
pub(super) enum Command {
    Prompt {
        reply: Reply,
        params: Value,
    },
    /// Stop everything that the client has asked for.
    Cancel,
    /// Stop the prompt with this id.
    CancelRequest(Value),
    SetMode {
        reply: Reply,
        mode: Value,
    },
    SetOption {
        reply: Reply,
        params: Value,
    },
    /// Any Input, as a host sends it.
    Input {
        reply: Reply,
        input: Value,
    },
    /// Tell the conversation again.
    Load {
        reply: Reply,
    },
    Resume {
        reply: Reply,
    },
    Close {
        reply: Reply,
    },
    /// The client has gone.
    End,
}

impl Command {
    /// Answers a request that no Session takes.
    pub(super) fn refuse(self, failure: &Failure) {
        match self {
            Command::Prompt { reply, .. }
            | Command::SetMode { reply, .. }
            | Command::SetOption { reply, .. }
            | Command::Input { reply, .. }
            | Command::Load { reply }
            | Command::Resume { reply }
            | Command::Close { reply } => reply.send(Err(failure.clone())),
            Command::Cancel | Command::CancelRequest(_) | Command::End => {}
        }
    }
}

/// How a Session is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opening {
    New,
    Load,
    Resume,
}

/// What leaves for the client, in this order.
enum Out {
    Line(String),
    Ask(Ask),
    Reply(Reply, Result<Value, Failure>),
}

/// A prompt without a response.
struct Prompt {
    key: u64,
    reply: Reply,
    text: String,
    turn: Option<u32>,
    /// It waits for the running Turn to end.
    waits: bool,
    cancelled: bool,
    /// Ends the slash command that it is.
    stop: Option<oneshot::Sender<()>>,
}

/// Something that was under way has ended.
enum Done {
    /// The Session has answered the Input of a prompt.
    Submitted {
        key: u64,
        outcome: Result<Accepted, Error>,
    },
    /// The Session has answered an Input that has its own response.
    Answered {
        reply: Reply,
        outcome: Result<Value, Failure>,
    },
    /// The user's answer to a question has become this Input, if there was one.
    Decided {
        call_id: String,
        input: Option<Input>,
    },
    /// A slash command has ended, with a text for the user.
    Said {
        key: u64,
        text: Option<String>,
    },
    /// What a preview asks the user.
    Planned {
        key: u64,
        input: Input,
        outcome: Result<Vec<Event>, Error>,
    },
    /// The user agreed to a preview, or not.
    Agreed {
        key: u64,
        input: Option<Input>,
    },
    /// The queue is empty and the Turn was told to stop.
    Cancelled,
    Nothing,
}

/// The Session with its client.
pub(super) struct Attached {
    id: String,
    client: Client,
    harness: Harness,
    handle: Handle,
    watch: Watch,
    settings: Settings,
    abilities: Abilities,
    projection: Projection,
    out: VecDeque<Out>,
    prompts: Vec<Prompt>,
    next_key: u64,
    /// How the last Turns ended, for prompts whose answer by the Session comes later.
    ended: HashMap<u32, Result<&'static str, Failure>>,
    running: Option<u32>,
    work: FuturesUnordered<BoxFuture<'static, Done>>,
    /// Open questions by their call; dropping one takes it back.
    questions: HashMap<String, oneshot::Sender<()>>,
    shows_events: bool,
    commands: Value,
}

impl Attached {
    /// Attaches the client to a Session that has just been opened, and answers the request that opened it.
    pub(super) async fn open(
        client: Client,
        harness: Harness,
        handle: Handle,
        abilities: Abilities,
        opening: Opening,
        reply: Reply,
    ) -> Option<Attached> {
        let Some(watch) = handle.watch().await else {
            let error = Error::new(Code::SessionStartFailed, "the session closed before it began", "try again");
            reply.send(Err(error.into()));
            return None;
        };
        let mut it = Attached {
            id: handle.id().to_string(),
            projection: Projection::new(harness.clone(), abilities),
            settings: watch.past.settings.clone(),
            running: watch.now.turn,
            client,
            harness,
            handle,
            watch,
            abilities,
            out: VecDeque::new(),
            prompts: Vec::new(),
            next_key: 0,
            ended: HashMap::new(),
            work: FuturesUnordered::new(),
            questions: HashMap::new(),
            shows_events: false,
            commands: Value::Null,
        };
        let past = std::mem::take(&mut it.watch.past);
        if opening == Opening::Load {
            it.replay(past.path().map(Arc::as_ref));
        }
        let has_title = past.settings.name.is_some() || past.path().any(|it| matches!(it.fact, Fact::UserMessage(_)));
        it.projection.pass(past.cost, has_title);
        let mut result = it.state();
        if opening == Opening::New {
            result["sessionId"] = json!(it.id);
        }
        it.out.push_back(Out::Reply(reply, Ok(result)));
        it.show_commands();
        Some(it)
    }

    /// Lets the Session read the other folders of the client's project.
    pub(super) async fn add_folders(&mut self, params: &Value) {
        for folder in params["additionalDirectories"].as_array().into_iter().flatten() {
            let Some(path) = folder.as_str().map(str::to_owned) else { continue };
            let asked = Input::AddFolder { path: path.clone(), holds: RuleReach::Session };
            if let Err(error) = self.handle.request(asked).await {
                self.notice(&format!("{path} is not part of this session"), &error.message);
            }
        }
    }

    /// The Session's modes and options, as answers have them.
    fn state(&self) -> Value {
        json!({
            "modes": options::mode_state(&self.settings),
            "configOptions": options::all(&self.harness, &self.settings),
        })
    }

    fn replay<'a>(&mut self, path: impl Iterator<Item = &'a pixir_core::Entry>) {
        let mut again = Projection::new(self.harness.clone(), self.abilities);
        for entry in path {
            let updates = again.entry(entry, Moment::Before);
            self.show(updates);
        }
    }

    /// Serves the client until the Session closes.
    ///
    /// Returns the request that closed it, which is answered when the Session has left the list of the open ones.
    pub(super) async fn serve(mut self, commands: &mut mpsc::UnboundedReceiver<Command>) -> Option<Reply> {
        loop {
            let due = self.projection.due();
            tokio::select! {
                command = commands.recv() => match command {
                    None | Some(Command::End) => {
                        self.end().await;
                        return None;
                    }
                    Some(Command::Close { reply }) => {
                        self.end().await;
                        return Some(reply);
                    }
                    Some(command) => self.take(command).await,
                },
                Some(done) = self.work.next() => self.finish(done).await,
                () = self.client.room(), if !self.out.is_empty() => self.send(),
                // A slow client lets events wait in the watch, where deltas are merged.
                event = self.watch.next(), if self.out.is_empty() => match event {
                    Some(event) => self.hear(&event),
                    None => {
                        self.closed().await;
                        return None;
                    }
                },
                () = until(due) => {
                    let updates = self.projection.due_now(Instant::now());
                    self.show(updates);
                }
            }
        }
    }

    /// Sends what waits first. There is room for one update.
    fn send(&mut self) {
        match self.out.pop_front() {
            Some(Out::Line(line)) => self.client.update(line),
            Some(Out::Ask(ask)) => ask.send(&self.client),
            Some(Out::Reply(reply, outcome)) => {
                // There is one for each request, so it takes no room.
                reply.send(outcome);
                self.client.give_back();
            }
            None => self.client.give_back(),
        }
    }

    async fn end(&mut self) {
        self.handle.close().await;
        self.closed().await;
    }

    /// The Session has closed: every prompt gets its response, behind what was heard before.
    async fn closed(&mut self) {
        self.questions.clear();
        self.catch_up();
        for prompt in std::mem::take(&mut self.prompts) {
            self.out.push_back(Out::Reply(prompt.reply, Ok(json!({ "stopReason": "cancelled" }))));
        }
        while !self.out.is_empty() {
            self.client.room().await;
            self.send();
        }
    }

    // ─── the client ───

    async fn take(&mut self, command: Command) {
        match command {
            Command::Prompt { reply, params } => match self.read_prompt(&params) {
                Ok((message, input)) => self.begin(reply, message, input).await,
                Err(failure) => reply.send(Err(failure)),
            },
            Command::Cancel => self.cancel(),
            Command::CancelRequest(id) => {
                if self.prompts.iter().any(|prompt| prompt.reply.id == id) {
                    self.cancel();
                }
            }
            Command::SetMode { reply, mode } => match options::change(&self.harness, &self.settings, "mode", &mode) {
                Ok(change) => self.set(reply, change, Answer::Nothing).await,
                Err(failure) => reply.send(Err(failure)),
            },
            Command::SetOption { reply, params } => {
                let id = params["configId"].as_str().unwrap_or_default();
                match options::change(&self.harness, &self.settings, id, &params["value"]) {
                    Ok(change) => self.set(reply, change, Answer::Options).await,
                    Err(failure) => reply.send(Err(failure)),
                }
            }
            Command::Input { reply, input } => {
                self.shows_events = true;
                match host::read_input(input) {
                    Ok(input) => {
                        let answer = self.handle.submit(input).await;
                        self.work.push(Box::pin(async move {
                            let outcome = answer.await.map(|accepted| json!({ "accepted": accepted }));
                            Done::Answered { reply, outcome: outcome.map_err(Failure::from) }
                        }));
                    }
                    Err(error) => reply.send(Err(error.into())),
                }
            }
            Command::Load { reply } => {
                if let Some(watch) = self.handle.watch().await {
                    // Events that wait are in the past of this watch too.
                    self.replay(watch.past.path().map(Arc::as_ref));
                    self.watch = Watch { past: Default::default(), ..watch };
                }
                let state = self.state();
                self.out.push_back(Out::Reply(reply, Ok(state)));
                self.show_commands();
            }
            Command::Resume { reply } => {
                let state = self.state();
                self.out.push_back(Out::Reply(reply, Ok(state)));
            }
            Command::Close { .. } | Command::End => unreachable!("the loop takes these itself"),
        }
    }

    fn read_prompt(&self, params: &Value) -> Result<(Message, How), Failure> {
        let meta = &params["_meta"]["pixir"];
        let how = match meta["delivery"].as_str() {
            None | Some("follow_up") => How::FollowUp,
            Some("steer") => How::Steer,
            Some(other) => {
                let message = format!("`_meta.pixir.delivery` is {}; use follow_up or steer", other.escape_debug());
                return Err(Failure::invalid_params(message));
            }
        };
        let message = content::message(&self.harness, &params["prompt"], &meta["presenter_context"])?;
        if message.text.trim().is_empty() && message.attachments.is_empty() && message.context.is_empty() {
            return Err(Failure::invalid_params("the prompt is empty"));
        }
        Ok((message, how))
    }

    async fn begin(&mut self, reply: Reply, message: Message, how: How) {
        let key = self.next_key;
        self.next_key += 1;
        let text = message.text.clone();
        let mut prompt = Prompt { key, reply, text, turn: None, waits: false, cancelled: false, stop: None };
        match slash::read(&self.harness, &message.text) {
            Meaning::Message => {
                let input = match how {
                    How::FollowUp => Input::Prompt(message),
                    How::Steer => Input::Steer(message),
                };
                self.prompts.push(prompt);
                self.submit(key, input).await;
            }
            Meaning::Do(input) => {
                self.prompts.push(prompt);
                self.submit(key, input).await;
            }
            Meaning::Preview(input) => {
                let (stop, stopped) = oneshot::channel();
                prompt.stop = Some(stop);
                self.prompts.push(prompt);
                let handle = self.handle.clone();
                self.work.push(Box::pin(unless(stopped, async move {
                    let outcome = headless::request(&handle, input.clone()).await.map(|(_, events)| events);
                    Done::Planned { key, input, outcome }
                })));
            }
            Meaning::Say(text) => {
                self.prompts.push(prompt);
                self.work.push(Box::pin(async move { Done::Said { key, text: Some(text) } }));
            }
        }
    }

    /// Sends an Input before anything that the client asks for later.
    async fn submit(&mut self, key: u64, input: Input) {
        let answer = self.handle.submit(input).await;
        self.work.push(Box::pin(async move { Done::Submitted { key, outcome: answer.await } }));
    }

    async fn set(&mut self, reply: Reply, change: SettingsChange, answer: Answer) {
        let (harness, mut settings) = (self.harness.clone(), self.settings.clone());
        let answered = self.handle.submit(Input::Set(change.clone())).await;
        self.work.push(Box::pin(async move {
            let outcome = answered.await.map(|_| match answer {
                Answer::Nothing => json!({}),
                Answer::Options => {
                    settings.apply(&SettingsChanged::from(change));
                    json!({ "configOptions": options::all(&harness, &settings) })
                }
            });
            Done::Answered { reply, outcome: outcome.map_err(Failure::from) }
        }));
    }

    fn cancel(&mut self) {
        if self.prompts.is_empty() && self.running.is_none() {
            return;
        }
        self.questions.clear();
        for prompt in &mut self.prompts {
            prompt.cancelled = true;
            prompt.stop = None;
        }
        let handle = self.handle.clone();
        self.work.push(Box::pin(async move {
            handle.send(Input::Dequeue).await;
            handle.send(Input::Interrupt).await;
            handle.settle().await;
            Done::Cancelled
        }));
    }

    async fn finish(&mut self, done: Done) {
        match done {
            Done::Submitted { key, outcome: Ok(accepted) } => self.accepted(key, &accepted),
            Done::Submitted { key, outcome: Err(error) } => {
                self.catch_up();
                self.respond(key, Err(error.into()));
            }
            Done::Answered { reply, outcome } => {
                // What the Input led to comes before its answer.
                self.catch_up();
                self.out.push_back(Out::Reply(reply, outcome));
            }
            Done::Decided { call_id, input } => {
                self.questions.remove(&call_id);
                if let Some(input) = input {
                    self.handle.send(input).await;
                }
            }
            Done::Said { key, text } => {
                self.catch_up();
                if let Some(text) = text {
                    self.say(&text);
                }
                self.respond(key, Ok("end_turn"));
            }
            Done::Planned { key, outcome: Err(error), .. } => {
                self.catch_up();
                self.say(&Failure::from(error).message);
                self.respond(key, Ok("end_turn"));
            }
            Done::Planned { key, input, outcome: Ok(events) } => {
                self.catch_up();
                self.agree(key, input, &events);
            }
            Done::Agreed { key, input: None } => {
                self.say("Nothing was changed.");
                self.respond(key, Ok("end_turn"));
            }
            Done::Agreed { key, input: Some(input) } => self.submit(key, input).await,
            Done::Cancelled => self.cancelled(),
            Done::Nothing => {}
        }
    }

    /// The Turn of a prompt is known, or it waits, or it has done all that there was to do.
    fn accepted(&mut self, key: u64, accepted: &Accepted) {
        self.catch_up();
        let Some(prompt) = self.prompts.iter_mut().find(|prompt| prompt.key == key) else { return };
        if prompt.turn.is_some() {
            return;
        }
        prompt.turn = accepted.turn;
        prompt.waits = accepted.turn.is_none() && accepted.queued.is_some();
        match accepted.turn {
            // An Input that begins no Turn is done.
            None if accepted.queued.is_none() => self.respond(key, Ok("end_turn")),
            None => {}
            Some(turn) => {
                if let Some(outcome) = self.ended.get(&turn).cloned() {
                    self.respond(key, outcome);
                }
            }
        }
    }

    /// No message waits any more, and what runs is about to end.
    fn cancelled(&mut self) {
        self.catch_up();
        let still_runs = self.running.is_some();
        let over = |prompt: &Prompt| prompt.cancelled && (prompt.waits || !still_runs);
        let keys: Vec<u64> = self.prompts.iter().filter(|it| over(it)).map(|it| it.key).collect();
        for key in keys {
            self.respond(key, Ok("cancelled"));
        }
    }

    /// The one response of a prompt, behind all updates so far.
    fn respond(&mut self, key: u64, outcome: Result<&'static str, Failure>) {
        let Some(at) = self.prompts.iter().position(|prompt| prompt.key == key) else { return };
        let prompt = self.prompts.remove(at);
        let outcome = if prompt.cancelled { Ok("cancelled") } else { outcome };
        self.out.push_back(Out::Reply(prompt.reply, outcome.map(|reason| json!({ "stopReason": reason }))));
    }

    /// Puts the preview of a slash command to the user.
    fn agree(&mut self, key: u64, input: Input, events: &[Event]) {
        let previewed = events.iter().find_map(|event| match event.live() {
            Some(Live::RestorePreviewed(it)) => {
                let paths: Vec<&str> = it.files.iter().map(|file| file.path.as_str()).collect();
                let title = format!("{} {}", input.name(), paths.join(", "));
                Some((title, question::restore_diffs(it, &self.projection), it.token.clone()))
            }
            Some(Live::CompactionPreviewed(it)) => {
                let title = format!("Compact {} tokens to {}", it.compaction.tokens_before, it.compaction.tokens_after);
                let summary =
                    json!({ "type": "content", "content": { "type": "text", "text": it.compaction.summary } });
                Some((title, vec![summary], it.token.clone()))
            }
            _ => None,
        });
        let Some((title, content, token)) = previewed else {
            self.say("There is nothing to do.");
            return self.respond(key, Ok("end_turn"));
        };
        let params = question::plan(&self.id, &format!("plan-{key}"), &title, content);
        let asked = self.ask("session/request_permission", params);
        let Some(prompt) = self.prompts.iter_mut().find(|prompt| prompt.key == key) else { return };
        let (stop, stopped) = oneshot::channel();
        prompt.stop = Some(stop);
        self.work.push(Box::pin(unless(stopped, async move {
            let answer = asked.answer().await;
            let agrees = question::chosen(answer.as_ref()) == Some(question::ONCE);
            Done::Agreed { key, input: agrees.then(|| slash::carried_out(input, &token)) }
        })));
    }

    fn ask(&mut self, method: &str, params: Value) -> Asked {
        let (ask, asked) = self.client.ask(method, params);
        self.out.push_back(Out::Ask(ask));
        asked
    }

    // ─── the Session ───

    fn catch_up(&mut self) {
        while let Some(event) = self.watch.try_next() {
            self.hear(&event);
        }
    }

    fn hear(&mut self, event: &Event) {
        if self.shows_events {
            let line = match event {
                Event::Recorded(entry) => entry.encode(),
                Event::Live(event) => encode_live(event),
            };
            if let Some(event) = line.ok().and_then(|line| serde_json::from_str::<Value>(&line).ok()) {
                let params = json!({ "sessionId": self.id, "event": event });
                self.out.push_back(Out::Line(notification("_pixir/event", &params)));
            }
        }
        match event {
            Event::Recorded(entry) => {
                match &entry.fact {
                    Fact::SettingsChanged(it) => self.settings.apply(it),
                    Fact::PermissionDecision(it) => drop(self.questions.remove(&it.call_id)),
                    Fact::ToolResult(it) => drop(self.questions.remove(&it.call_id)),
                    Fact::UserMessage(it) => self.delivered(entry.turn, &it.text),
                    _ => {}
                }
                if starts_turn(&entry.fact) || matches!(entry.fact, Fact::AssistantMessage(_) | Fact::AgentEvent(_)) {
                    self.running = entry.turn.or(self.running);
                }
                let updates = self.projection.entry(entry, Moment::Now);
                self.show(updates);
                if let Fact::SkillIndex(_) = &entry.fact {
                    self.show_commands();
                }
                if let (Fact::TurnEnded(it), Some(turn)) = (&entry.fact, entry.turn) {
                    self.turn_ended(turn, it);
                }
            }
            Event::Live(event) => {
                match &event.live {
                    Live::ApprovalRequested(it) => self.approval(it),
                    Live::FormOpened(it) => self.form(it),
                    Live::AnswerTaken { call_id, .. } => drop(self.questions.remove(call_id)),
                    Live::Refused(it) if it.input == "follow_up" || it.input == "steer" => {
                        // The Session could not begin the Turn of the oldest message that waited.
                        if let Some(key) = self.prompts.iter().find(|prompt| prompt.waits).map(|prompt| prompt.key) {
                            self.respond(key, Err((&it.error).into()));
                        }
                    }
                    _ => {}
                }
                if event.agent_path.is_empty() || matches!(event.live, Live::AgentChanged(_)) {
                    let updates = self.projection.live(event);
                    self.show(updates);
                }
            }
        }
    }

    /// A message of the queue has begun a Turn, or joined one.
    fn delivered(&mut self, turn: Option<u32>, text: &str) {
        let waiting = |prompt: &&mut Prompt| prompt.turn.is_none() && prompt.text == text;
        if let Some(prompt) = self.prompts.iter_mut().find(waiting) {
            (prompt.turn, prompt.waits) = (turn, false);
        }
    }

    fn turn_ended(&mut self, turn: u32, end: &TurnEnded) {
        self.running = None;
        self.questions.clear();
        let outcome = stop_reason(end);
        let over = |it: &Prompt| it.turn == Some(turn) || (it.cancelled && !it.waits && it.stop.is_none());
        let keys: Vec<u64> = self.prompts.iter().filter(|it| over(it)).map(|it| it.key).collect();
        for key in keys {
            self.respond(key, outcome.clone());
        }
        // Only prompts that the Session has not answered yet can belong to a Turn that has ended.
        self.ended.retain(|other, _| other + 8 > turn);
        self.ended.insert(turn, outcome);
    }

    fn show(&mut self, updates: Vec<Update>) {
        for update in updates {
            let update = match update {
                Update::Wire(update) => update,
                Update::Options => {
                    let all = options::all(&self.harness, &self.settings);
                    json!({ "sessionUpdate": "config_option_update", "configOptions": all })
                }
            };
            let params = json!({ "sessionId": self.id, "update": update });
            self.out.push_back(Out::Line(notification("session/update", &params)));
        }
    }

    /// Shows the commands if they are not those that the client knows.
    fn show_commands(&mut self) {
        let commands = slash::commands(&self.harness);
        if commands != self.commands {
            self.commands = commands.clone();
            self.show(vec![Update::Wire(commands)]);
        }
    }

    /// A text of pixir's own, as the answer to a slash command.
    fn say(&mut self, text: &str) {
        let content = json!({ "type": "text", "text": text });
        self.show(vec![Update::Wire(json!({ "sessionUpdate": "agent_message_chunk", "content": content }))]);
    }

    pub(super) fn notice(&mut self, title: &str, text: &str) {
        let updates = self.projection.notice(Moment::Now, Severity::Warning, title, Some(text.to_owned()));
        self.show(updates);
    }

    // ─── questions ───

    fn approval(&mut self, it: &Approval) {
        let params = question::permission(&self.id, it, &self.projection);
        let call = params["toolCall"].clone();
        let asked = self.ask("session/request_permission", params);
        let (stop, stopped) = oneshot::channel();
        self.questions.insert(it.call_id.clone(), stop);
        let (client, id, it) = (self.client.clone(), self.id.clone(), it.clone());
        self.work.push(Box::pin(unless(stopped, async move {
            let answer = asked.answer().await;
            let mut decision = question::decision(question::chosen(answer.as_ref()));
            let mut word = None;
            if let Some(confirmation) = question::confirmation(&it, &decision) {
                let (ask, asked) =
                    client.ask("session/request_permission", question::confirm(&id, &call, &confirmation));
                client.room().await;
                ask.send(&client);
                let answer = asked.answer().await;
                if question::chosen(answer.as_ref()) == Some(question::ONCE) {
                    word = Some(confirmation.word);
                } else {
                    decision = question::decision(None);
                }
            }
            let input = Input::Decide { call_id: it.call_id.clone(), decision, word };
            Done::Decided { call_id: it.call_id, input: Some(input.for_asker(it.agent.as_ref())) }
        })));
    }

    fn form(&mut self, form: &Form) {
        let as_form = self.abilities.forms;
        let params =
            if as_form { Some(question::elicitation(&self.id, form)) } else { question::as_options(&self.id, form) };
        let form = form.clone();
        let Some(params) = params else {
            self.notice("a form was declined", "this client can show neither forms nor several answers");
            let handle = self.handle.clone();
            return self.work.push(Box::pin(async move {
                handle.send(question::answering(&form, None)).await;
                Done::Nothing
            }));
        };
        let method = if as_form { "elicitation/create" } else { "session/request_permission" };
        let asked = self.ask(method, params);
        let (stop, stopped) = oneshot::channel();
        self.questions.insert(form.call_id.clone(), stop);
        self.work.push(Box::pin(unless(stopped, async move {
            let answer = asked.answer().await;
            let answers = if as_form {
                question::answers(&form, answer.as_ref())
            } else {
                question::of_option(&form, question::chosen(answer.as_ref()))
            };
            Done::Decided { call_id: form.call_id.clone(), input: Some(question::answering(&form, answers)) }
        })));
    }
}

/// How a prompt reaches a Turn that runs.
#[derive(Debug, Clone, Copy)]
enum How {
    FollowUp,
    Steer,
}

/// What a change of settings is answered with.
enum Answer {
    Nothing,
    Options,
}

/// The reason for which a Turn ended, as the protocol has it.
fn stop_reason(end: &TurnEnded) -> Result<&'static str, Failure> {
    let error = || end.error.as_ref().map_or_else(Failure::internal, Failure::from);
    match (end.status, end.error.as_ref()) {
        (TurnStatus::Completed, _) => Ok("end_turn"),
        (TurnStatus::Interrupted, _) => Ok("cancelled"),
        (TurnStatus::Incomplete, Some(it)) if it.kind == ErrorKind::IterationCap => Ok("max_turn_requests"),
        (TurnStatus::Incomplete | TurnStatus::PartialFailed | TurnStatus::Failed, Some(it))
            if it.code == Code::Refused.name() =>
        {
            Ok("refusal")
        }
        (TurnStatus::Incomplete, _) if end.details.contains_key("output_truncation") => Ok("max_tokens"),
        (TurnStatus::Incomplete | TurnStatus::PartialFailed | TurnStatus::Failed | TurnStatus::TimedOut, _) => {
            Err(error())
        }
    }
}

/// The work, until it is stopped; then what it waits for is dropped.
async fn unless(stopped: oneshot::Receiver<()>, work: impl Future<Output = Done>) -> Done {
    tokio::select! {
        _ = stopped => Done::Nothing,
        done = work => done,
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at.into()).await,
        None => std::future::pending().await,
    }
}
