//! One open Session: the client's requests become Inputs, its Events become updates, in one order.

use std::collections::{HashMap, VecDeque};
use std::path::Path;
use std::time::Instant;

use futures_util::future::{BoxFuture, FutureExt as _};
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use pixir_core::event::{LiveEvent, Severity, Status, encode_live};
use pixir_core::history::{History, Settings, starts_turn};
use pixir_core::input::{FolderAccess, RuleReach};
use pixir_core::text::json_rpc::notification;
use pixir_core::{Code, Entry, Error, Event, Fact, Handle, Harness, Input, Live, Watch};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use super::Abilities;
use super::command::{Command, Opening};
use super::projection::{Moment, Projection, Update};
use super::prompts::{self, Outcome, Prompts};
use super::{options, slash};
use crate::json_rpc::{Ask, Asked, Client, Failure, Reply};

mod mirror; // changes repeated in the editor's buffers
mod questions; // what only the user decides
mod requests; // what the client asks for, and how each request ends

use mirror::Mirror;
use questions::Asking;
use requests::Done;

/// What leaves for the client, in this order.
enum Out {
    Line(String),
    Ask(Ask),
    Reply(Reply, Result<Value, Failure>),
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
    prompts: Prompts<Reply>,
    running: Option<u32>,
    /// The last refusal that the Session told of.
    refusal: Option<Failure>,
    /// Interrupts that the Session has not answered.
    interrupts: usize,
    /// Requests to tell the conversation again; it is told once at a time.
    loads: VecDeque<Reply>,
    work: FuturesUnordered<BoxFuture<'static, Done>>,
    /// Open questions; dropping one takes it back.
    questions: HashMap<Asking, oneshot::Sender<()>>,
    mirror: Mirror,
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
        let Some(mut watch) = handle.watch().await else {
            let error = Error::new(Code::SessionStartFailed, "the session closed before it began", "try again");
            reply.send(Err(error.into()));
            return None;
        };
        let past = std::mem::take(&mut watch.past);
        let mut it = Attached {
            id: handle.id().to_string(),
            projection: Projection::new(harness.clone(), abilities),
            settings: past.settings.clone(),
            running: watch.now.turn,
            refusal: None,
            interrupts: 0,
            loads: VecDeque::new(),
            client,
            harness,
            handle,
            watch,
            abilities,
            out: VecDeque::new(),
            prompts: Prompts::new(),
            work: FuturesUnordered::new(),
            questions: HashMap::new(),
            mirror: Mirror::default(),
            shows_events: false,
            commands: Value::Null,
        };
        if opening == Opening::Load {
            it.replay(&past);
        }
        it.projection.pass(&past);
        let mut result = it.state();
        if opening == Opening::New {
            result["sessionId"] = json!(it.id);
        }
        it.answer(reply, Ok(result));
        it.show_commands();
        Some(it)
    }

    /// Lets the Session read the other folders of the client's project.
    pub(super) async fn add_folders(&mut self, params: &Value) {
        for folder in params["additionalDirectories"].as_array().into_iter().flatten() {
            let Some(path) = folder.as_str().map(str::to_owned) else { continue };
            let real = Path::new(&path).canonicalize();
            if real.is_ok_and(|real| real.starts_with(self.harness.workspace())) {
                continue;
            }
            // A refusal is an event too, which the client is shown.
            let _ = self
                .handle
                .request(Input::AddFolder { path, access: FolderAccess::Read, holds: RuleReach::Session })
                .await;
        }
    }

    /// The Session's modes and options, as answers have them.
    fn state(&self) -> Value {
        json!({
            "modes": options::mode_state(&self.settings),
            "configOptions": options::all(&self.harness, &self.settings),
        })
    }

    /// Sends the conversation from its beginning. What follows goes on behind it.
    fn replay(&mut self, past: &History) {
        self.projection = Projection::new(self.harness.clone(), self.abilities);
        for entry in past.told() {
            let updates = self.projection.entry(entry, Moment::Before);
            self.show(updates);
        }
    }

    /// Sends the conversation of a Session that is open already, with the part of an answer that has arrived.
    async fn replay_all(&mut self) {
        let Some(watch) = self.handle.watch().await else { return };
        self.replay(&watch.past);
        self.projection.pass(&watch.past);
        for live in watch.now.as_live() {
            let (session_id, agent_path) = (self.handle.id().clone(), Vec::new());
            let updates = self.projection.live(&LiveEvent { session_id, turn: watch.now.turn, agent_path, live });
            self.show(updates);
        }
        // The replay has shown what waits in the old watch; prompts and questions do not know of it yet.
        let last = watch.past.entries().last().map_or(0, |entry| entry.seq);
        while let Some(event) = self.watch.try_next() {
            match &event {
                Event::Recorded(entry) if entry.seq <= last => self.follow_entry(entry, Moment::Before),
                Event::Recorded(_) => break,
                Event::Live(event) if event.agent_path.is_empty() => self.follow_queue(&event.live),
                Event::Live(_) => {}
            }
        }
        self.questions.retain(|asking, _| asking.is_open(&watch.now));
        for approval in &watch.now.approvals {
            if !self.questions.contains_key(&Asking::new(&approval.call_id, approval.agent.as_ref())) {
                self.approval(approval);
            }
        }
        for form in &watch.now.forms {
            if !self.questions.contains_key(&Asking::new(&form.call_id, form.agent.as_ref())) {
                self.form(form);
            }
        }
        (self.running, self.settings) = (watch.now.turn, watch.past.settings.clone());
        self.watch = Watch { past: Default::default(), ..watch };
    }

    /// Serves the client until the Session closes.
    ///
    /// Returns the request that closed it, which is answered when the Session has left the list of the open ones.
    pub(super) async fn serve(mut self, commands: &mut mpsc::UnboundedReceiver<Command>) -> Option<Reply> {
        loop {
            let due = self.projection.due();
            tokio::select! {
                // What the client said first counts first: work that it has cancelled must not be finished by an answer that
                // came behind the cancel. The flood of the watch comes last, so that it holds up nothing else.
                biased;
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
                () = until(due) => {
                    let updates = self.projection.due_now(Instant::now());
                    self.show(updates);
                }
                () = self.client.room(), if !self.out.is_empty() => self.send(),
                () = std::future::ready(()), if self.out.is_empty() && !self.loads.is_empty() => self.load().await,
                // A slow client lets events wait in the watch, where deltas are merged.
                event = self.watch.next(), if self.out.is_empty() => match event {
                    Some(event) => self.follow(&event),
                    None => {
                        self.closed().await;
                        return None;
                    }
                },
            }
        }
    }

    /// Tells the conversation from its beginning, as a request wants it.
    async fn load(&mut self) {
        let Some(reply) = self.loads.pop_front() else { return };
        self.replay_all().await;
        let state = self.state();
        self.answer(reply, Ok(state));
        self.show_commands();
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

    /// The Session has closed: every prompt gets its response, behind the events before it.
    async fn closed(&mut self) {
        self.questions.clear();
        self.catch_up();
        // What the Session has not answered fails at once, now that it is closed.
        while let Some(Some(done)) = self.work.next().now_or_never() {
            self.finish(done).await;
        }
        let rest = self.prompts.close();
        self.respond(rest);
        for reply in std::mem::take(&mut self.loads) {
            self.answer(reply, Err(super::not_open(&self.id)));
        }
        while !self.out.is_empty() {
            self.client.room().await;
            self.send();
        }
    }

    // ─── events ───

    /// Follows the events that have happened already.
    fn catch_up(&mut self) {
        while let Some(event) = self.watch.try_next() {
            self.follow(&event);
        }
    }

    fn follow(&mut self, event: &Event) {
        if self.shows_events {
            let line = match event {
                Event::Recorded(entry) => entry.encode(),
                Event::Live(event) => encode_live(event),
            };
            if let Some(event) = line.ok().and_then(|line| serde_json::from_str::<Value>(&line).ok()) {
                let params = json!({ "sessionId": self.id, "event": event });
                self.out.push_back(Out::Line(notification("_pixir/event", &params).to_string()));
            }
        }
        match event {
            Event::Recorded(entry) => self.follow_entry(entry, Moment::Now),
            Event::Live(event) => self.follow_live(event),
        }
    }

    fn follow_entry(&mut self, entry: &Entry, moment: Moment) {
        match &entry.fact {
            Fact::SettingsChanged(it) => self.settings.apply(it),
            Fact::PermissionDecision(it) => drop(self.questions.remove(&Asking::new(&it.call_id, None))),
            Fact::ToolResult(it) => {
                self.questions.remove(&Asking::new(&it.call_id, None));
                self.mirror.changed(&self.harness, it);
            }
            _ => {}
        }
        if starts_turn(&entry.fact) {
            self.refusal = None;
        }
        if starts_turn(&entry.fact) || matches!(entry.fact, Fact::AssistantMessage(_) | Fact::AgentEvent(_)) {
            self.running = entry.turn.or(self.running);
        }
        if moment == Moment::Now {
            let updates = self.projection.entry(entry, moment);
            self.show(updates);
        }
        if let Fact::SkillIndex(_) = &entry.fact {
            self.show_commands();
        }
        if let (Fact::TurnEnded(it), Some(turn)) = (&entry.fact, entry.turn) {
            self.end_turn(turn, prompts::outcome(it));
        }
    }

    fn end_turn(&mut self, turn: u32, outcome: Outcome) {
        self.running = None;
        // Agents outlive the Turn, and so do their questions.
        self.questions.retain(|asking, _| asking.is_of_agent());
        self.mirror.clear();
        let over = self.prompts.turn_ended(turn, outcome);
        self.respond(over);
    }

    /// What an event means for the prompts.
    fn follow_queue(&mut self, live: &Live) {
        match live {
            Live::QueueLeft { id, to } => {
                let over = self.prompts.left_queue(*id, to.clone());
                self.respond(over);
            }
            Live::Refused(it) => self.refusal = Some((&it.error).into()),
            // The Log has no end of a Turn that could not record it.
            Live::Status { status: Status::Idle } => {
                if let Some(turn) = self.running {
                    let failure = self.refusal.take().unwrap_or_else(Failure::internal);
                    self.end_turn(turn, Err(failure));
                }
            }
            _ => {}
        }
    }

    fn follow_live(&mut self, event: &LiveEvent) {
        if event.agent_path.is_empty() {
            self.follow_queue(&event.live);
        }
        match &event.live {
            Live::ApprovalRequested(it) => self.approval(it),
            Live::FormOpened(it) => self.form(it),
            Live::AnswerTaken { call_id, agent } => drop(self.questions.remove(&Asking::new(call_id, Some(agent)))),
            Live::CallPrepared { call_id, info, .. } => self.read_before(call_id, info),
            _ => {}
        }
        if event.agent_path.is_empty() || matches!(event.live, Live::AgentChanged(_)) {
            let updates = self.projection.live(event);
            self.show(updates);
        }
    }

    // ─── updates ───

    /// Sends the one response of each of these prompts, behind all updates so far.
    fn respond(&mut self, over: impl IntoIterator<Item = (Reply, Outcome)>) {
        for (reply, outcome) in over {
            self.answer(reply, prompts::response(outcome));
        }
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
            self.out.push_back(Out::Line(notification("session/update", &params).to_string()));
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

    /// Answers a request behind all updates so far.
    fn answer(&mut self, reply: Reply, outcome: Result<Value, Failure>) {
        self.out.push_back(Out::Reply(reply, outcome));
    }

    fn ask(&mut self, method: &str, params: Value) -> Asked {
        let (ask, asked) = self.client.ask(method, params);
        self.out.push_back(Out::Ask(ask));
        asked
    }
}

/// The work, until it is stopped; then what it waits for is dropped.
async fn unless(stopped: oneshot::Receiver<()>, work: impl Future<Output = Done>) -> Done {
    tokio::select! {
        // What the client has cancelled does nothing, also if the user's answer is there.
        biased;
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
