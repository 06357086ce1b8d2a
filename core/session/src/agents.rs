//! The child Sessions of a Session: what it records of them, what its model hears of them, and what the user asks of them.

use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::{Session, Work};
use call::agent_end::{MOST_TOLD, reported_within};
use call::agents::{AGENT_EVENT, AGENT_REPORT, AgentNews, Order, OrderedBy, Stop};
use door::{Handle, Reply};
use protocol::agent::AgentState;
use protocol::error::{Code, Error, Result};
use protocol::event::{AgentEvent, Event, Fact, Live, LiveEvent, Status, Telling};
use protocol::input::{Accepted, Input, RestoreOptions};
use turn::Turn;

/// Ends that come within this time start one Turn.
const GATHER: Duration = Duration::from_millis(500);

impl Session {
    /// # Errors
    /// An event of a child could not be recorded. A Turn that runs must not go on then.
    async fn take_agent_news(&mut self, news: AgentNews) -> Result<()> {
        match news {
            AgentNews::Record { event, reply } => {
                // A child's work belongs to the Turn that started it, or to the last one.
                let turn = Some(self.history.turns).filter(|turn| *turn > 0);
                let recorded = self.record(turn, Fact::AgentEvent(event)).await;
                let _ = reply.send(recorded.clone());
                return recorded;
            }
            AgentNews::History { reply } => drop(reply.send(Box::new(self.history.clone()))),
            AgentNews::Live { path, live } => self.pass_on(path, *live),
            AgentNews::Tell { name, text } => self.to_tell.push(AgentEvent::Reported { name, text }),
            AgentNews::Report(result) => {
                self.reports_due.push_back(*result);
                self.gather_reports();
            }
        }
        Ok(())
    }

    pub(super) async fn on_agent_news(&mut self, news: AgentNews) {
        if let Err(error) = self.take_agent_news(news).await {
            self.on_lost_agent_event(error).await;
        }
    }

    /// An event of a child could not be recorded: the running Turn ends, as with every other Entry that is lost.
    async fn on_lost_agent_event(&mut self, error: Error) {
        if self.work.as_ref().and_then(Work::turn).is_some() {
            self.abandon(error).await;
        } else {
            self.refuse(AGENT_EVENT, &error);
        }
    }

    /// Publishes what is about a child, and keeps what waits for the user.
    fn pass_on(&mut self, agent_path: Vec<String>, live: Live) {
        if let Live::AnswerTaken { call_id, agent } = &live {
            self.asked.retain(|it| !is_about(&it.live, call_id) || it.agent_path != agent.path);
        }
        let turn = self.work.as_ref().and_then(Work::turn).map(|turn| turn.number);
        let event = LiveEvent { session_id: self.id.clone(), turn, agent_path, live };
        if matches!(event.live, Live::ApprovalRequested(_) | Live::FormOpened(_)) {
            self.asked.push(event.clone());
        }
        self.publish_event(Event::Live(event));
    }

    /// An idle Session starts a Turn with what its children reported. After an interrupt it waits for the user.
    pub(super) fn gather_reports(&mut self) {
        let may =
            self.work.is_none() && !self.reports_due.is_empty() && self.may_wake && self.services.options.agents.wake;
        if may && self.wake_at.is_none() {
            self.wake_at = Some(Instant::now() + GATHER);
        }
    }

    /// Whether a Turn is about to begin with what children reported. News that the Session has not taken yet may be a report.
    pub(super) fn is_waking(&self) -> bool {
        let has_news = !self.reports_due.is_empty() || !self.agent_news.is_empty();
        has_news && self.work.is_none() && self.may_wake && self.services.options.agents.wake
    }

    /// Starts a Turn with the reports that are due.
    pub(super) async fn wake(&mut self) {
        self.wake_at = None;
        if self.work.is_some() {
            return;
        }
        let mut due = self.reports().into_iter();
        let Some(first) = due.next() else { return };
        // The model reads the others before the first request of the Turn.
        self.to_tell.extend(due);
        if let Err(error) = self.begin(AGENT_REPORT, first.into(), Turn::run, Status::Thinking).await {
            self.refuse(AGENT_REPORT, &error);
        }
    }

    /// The reports that are due, none longer than its share of a request.
    fn reports(&mut self) -> Vec<AgentEvent> {
        let due = std::mem::take(&mut self.reports_due);
        let mut left = due.len();
        let told = due.iter().map(|result| {
            left -= 1;
            let most = self.services.agents.as_ref().map_or(MOST_TOLD, |agents| agents.share(left));
            AgentEvent::Reported { name: result.name.clone(), text: reported_within(result, most) }
        });
        told.collect()
    }

    /// Between two requests the model reads what its children reported.
    pub(super) async fn deliver_reports(&mut self, turn: Option<u32>) -> Result<()> {
        for event in std::mem::take(&mut self.to_tell).into_iter().chain(self.reports()) {
            self.record(turn, event.into()).await?;
        }
        if let Some(agents) = &self.services.agents {
            agents.begin_request();
        }
        Ok(())
    }

    /// Whether a child runs, or is about to.
    pub(super) fn agents_run(&self) -> bool {
        self.services.agents.as_ref().is_some_and(|agents| agents.list().iter().any(|it| it.status.is_open()))
    }

    /// Stops children, and records their ends meanwhile.
    pub(super) async fn stop_agents(&mut self, which: Stop) {
        let Some(agents) = self.services.agents.clone() else { return };
        let stopped = agents.stop(which);
        self.while_stopping(stopped).await;
    }

    /// No child is left, and none is started any more.
    pub(super) async fn close_agents(&mut self) {
        let Some(agents) = self.services.agents.clone() else { return };
        let stopped = agents.close();
        self.while_stopping(stopped).await;
    }

    async fn while_stopping(&mut self, stopped: impl Future<Output = ()>) {
        tokio::pin!(stopped);
        loop {
            tokio::select! {
                biased;
                Some(news) = self.agent_news.recv() => self.take_news_while_stopping(news).await,
                () = &mut stopped => break,
            }
        }
        while let Ok(news) = self.agent_news.try_recv() {
            self.take_news_while_stopping(news).await;
        }
    }

    /// The Turn that the children belong to is ending already.
    async fn take_news_while_stopping(&mut self, news: AgentNews) {
        if let Err(error) = self.take_agent_news(news).await {
            self.refuse(AGENT_EVENT, &error);
        }
    }

    // ─── Inputs ───

    /// Sends an Input to a child. When the child reads a message of the user, its parent records it.
    pub(super) fn pass_to_agent(&mut self, path: Vec<String>, input: Input, reply: Option<Reply>) {
        let Some(agents) = self.services.agents.clone() else {
            return self.answer_input(TO_AGENT, reply, Err(none_here()));
        };
        self.errands.spawn(task::boxed(async move {
            let outcome = agents.pass(&path, input).await;
            Errand { input: TO_AGENT, reply, outcome }
        }));
    }

    /// Tells a child something, or a child of a child, for the model of a Session above.
    pub(super) fn tell_agent(
        &mut self,
        name: String,
        how: Telling,
        text: String,
        reply: oneshot::Sender<Result<AgentState>>,
    ) {
        let agents = self.services.agents.clone();
        task::spawn(async move {
            let told = match agents {
                Some(agents) => agents.tell(&name, how, text, OrderedBy::Above).await,
                None => Err(none_here()),
            };
            let _ = reply.send(told);
        });
    }

    /// Opens the door to a child for the caller that asked.
    pub(super) fn open_agent(&mut self, path: Vec<String>, reply: oneshot::Sender<Result<Handle>>) {
        let agents = self.services.agents.clone();
        task::spawn(async move {
            let opened = match agents {
                Some(agents) => agents.open(&path).await,
                None => Err(none_here()),
            };
            let _ = reply.send(opened);
        });
    }

    pub(super) fn spawn_agent(&mut self, order: Order, reply: Option<Reply>) {
        let Some(agents) = self.services.agents.clone() else {
            return self.answer_input(SPAWN_AGENT, reply, Err(none_here()));
        };
        self.errands.spawn(task::boxed(async move {
            let outcome = agents.spawn(order).await.map(|_| Accepted::default());
            Errand { input: SPAWN_AGENT, reply, outcome }
        }));
    }

    pub(super) fn stop_agent(&mut self, path: Vec<String>, reply: Option<Reply>) {
        let Some(agents) = self.services.agents.clone() else {
            return self.answer_input(STOP_AGENTS, reply, Ok(Accepted::default()));
        };
        self.errands.spawn(task::boxed(async move {
            let outcome = match path.as_slice() {
                [] => {
                    agents.stop(Stop::All).await;
                    Ok(Accepted::default())
                }
                [name] => {
                    let known = agents.list().iter().any(|it| it.path.last() == Some(name));
                    agents.stop(Stop::One(path.clone())).await;
                    if known { Ok(Accepted::default()) } else { Err(not_known(name)) }
                }
                [name, rest @ ..] => match agents.open(std::slice::from_ref(name)).await {
                    Ok(door) => door.request(Input::StopAgents { path: rest.to_vec() }).await,
                    Err(error) => Err(error),
                },
            };
            Errand { input: STOP_AGENTS, reply, outcome }
        }));
    }

    /// Decides about the files of an agent's copy.
    pub(super) fn adopt(&mut self, path: Vec<String>, options: RestoreOptions, later: bool, reply: Option<Reply>) {
        let Some(agents) = self.services.agents.clone() else {
            return self.answer_input(ADOPT, reply, Err(none_here()));
        };
        self.errands.spawn(task::boxed(async move {
            let outcome = match path.as_slice() {
                [] => Err(not_known("")),
                [name] => agents.adopt(name, options, later).await.map(|()| Accepted::default()),
                [name, rest @ ..] => match agents.open(std::slice::from_ref(name)).await {
                    Ok(door) => door.request(Input::Adopt { path: rest.to_vec(), options, later }).await,
                    Err(error) => Err(error),
                },
            };
            Errand { input: ADOPT, reply, outcome }
        }));
    }

    pub(super) async fn on_errand(&mut self, done: std::result::Result<Errand, tokio::task::JoinError>) {
        // What it recorded or published is seen before its answer.
        while let Ok(news) = self.agent_news.try_recv() {
            self.on_agent_news(news).await;
        }
        match done {
            Ok(Errand { input, reply, outcome }) => self.answer_input(input, reply, outcome),
            Err(e) => tracing::error!(session = %self.id, "work for an agent broke off: {e}"),
        }
    }
}

/// Work for a child that is answered when it is done.
pub(super) struct Errand {
    input: &'static str,
    reply: Option<Reply>,
    outcome: Result<Accepted>,
}

/// Names of Inputs, as a refusal says them.
const TO_AGENT: &str = "to_agent";
const SPAWN_AGENT: &str = "spawn_agent";
const STOP_AGENTS: &str = "stop_agents";
const ADOPT: &str = "adopt";

fn is_about(live: &Live, call: &str) -> bool {
    match live {
        Live::ApprovalRequested(it) => it.call_id == call,
        Live::FormOpened(it) => it.call_id == call,
        _ => false,
    }
}

fn none_here() -> Error {
    Error::new(Code::CommandFailed, "this session can have no agents", "do the work here")
}

fn not_known(name: &str) -> Error {
    Error::new(
        Code::NotFound,
        format!("there is no agent `{}`", name.escape_debug()),
        "one that the list of agents has",
    )
}
