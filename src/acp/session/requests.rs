//! What the client asks of the Session: each request becomes an Input, and what came of it becomes the answer.

use pixir_core::event::SettingsChanged;
use pixir_core::input::{Message, SettingsChange};
use pixir_core::trust::Contributions;
use pixir_core::{Accepted, Error, Event, Handle, Input, Live, Watch};
use serde_json::{Value, json};

use super::questions::Asking;
use super::{Attached, unless};
use crate::acp::command::Command;
use crate::acp::slash::{self, Meaning};
use crate::acp::{content, options, question};
use crate::headless;
use crate::headless::host;
use crate::json_rpc::{Failure, Reply};

/// Something that was under way has ended.
pub(super) enum Done {
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
    /// The user's answer to a question has become this Input.
    Decided {
        asking: Asking,
        input: Input,
    },
    /// A slash command has ended, with a text for the user.
    Said {
        key: u64,
        text: String,
    },
    /// What the workspace brings along, as a slash command shows it.
    Looked {
        key: u64,
        found: Result<Contributions, Error>,
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
    /// The queue was emptied and the Turn told to stop.
    Cancelled,
    Nothing,
}

/// The Input that brings a message to the Session: a prompt waits for a Turn that runs, a steer joins it.
type Deliver = fn(Message) -> Input;

/// What a change of settings is answered with.
enum Answer {
    Nothing,
    Options,
}

impl Attached {
    pub(super) async fn take(&mut self, command: Command) {
        match command {
            Command::Prompt { reply, params } => match self.read_prompt(&params) {
                Ok((message, deliver)) => self.begin(reply, message, deliver).await,
                Err(failure) => self.answer(reply, Err(failure)),
            },
            Command::Cancel => self.cancel().await,
            Command::CancelRequest(id) => {
                if self.prompts.any(|reply| reply.id == id) {
                    self.cancel().await;
                }
            }
            Command::SetMode { reply, mode } => match options::change(&self.harness, &self.settings, "mode", &mode) {
                Ok(change) => self.set(reply, change, Answer::Nothing).await,
                Err(failure) => self.answer(reply, Err(failure)),
            },
            Command::SetOption { reply, params } => {
                let id = params["configId"].as_str().unwrap_or_default();
                match options::change(&self.harness, &self.settings, id, &params["value"]) {
                    Ok(change) => self.set(reply, change, Answer::Options).await,
                    Err(failure) => self.answer(reply, Err(failure)),
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
                    Err(error) => self.answer(reply, Err(error.into())),
                }
            }
            Command::Load { reply } => self.loads.push_back(reply),
            Command::Resume { reply } => {
                let state = self.state();
                self.answer(reply, Ok(state));
            }
            Command::Close { .. } | Command::End => unreachable!("the loop takes these itself"),
        }
    }

    fn read_prompt(&self, params: &Value) -> Result<(Message, Deliver), Failure> {
        let meta = &params["_meta"]["pixir"];
        let deliver: Deliver = match &meta["delivery"] {
            Value::Null => Input::Prompt,
            Value::String(it) if it == "follow_up" => Input::Prompt,
            Value::String(it) if it == "steer" => Input::Steer,
            other => {
                let message = format!("`_meta.pixir.delivery` is {other}; use \"follow_up\" or \"steer\"");
                return Err(Failure::invalid_params(message));
            }
        };
        let message = content::message(&self.harness, &params["prompt"], &meta["presenter_context"])?;
        if message.text.trim().is_empty() && message.attachments.is_empty() && message.context.is_empty() {
            return Err(Failure::invalid_params("the prompt is empty"));
        }
        Ok((message, deliver))
    }

    async fn begin(&mut self, reply: Reply, message: Message, deliver: Deliver) {
        let key = self.prompts.add(reply);
        if !message.text.starts_with('/') {
            return self.submit(key, deliver(message)).await;
        }
        let Some(watch) = self.handle.watch().await else {
            let over = self.prompts.end(key, Ok("cancelled"));
            return self.respond(over);
        };
        match slash::read(&self.harness, &watch, &message) {
            Meaning::Message => self.submit(key, deliver(message)).await,
            Meaning::Do(mut inputs, text) => {
                let Some(last) = inputs.pop() else { return };
                for input in inputs {
                    self.handle.send(input).await;
                }
                self.prompts.tells(key, text);
                self.submit(key, last).await;
            }
            Meaning::Trust => {
                let Some(stopped) = self.prompts.until_cancelled(key) else { return };
                let handle = self.handle.clone();
                self.work.push(Box::pin(unless(stopped, async move {
                    let found = contributions(&handle, watch).await;
                    Done::Looked { key, found }
                })));
            }
            Meaning::Preview(input, text) => {
                self.prompts.tells(key, text);
                let Some(stopped) = self.prompts.until_cancelled(key) else { return };
                let handle = self.handle.clone();
                self.work.push(Box::pin(unless(stopped, async move {
                    let outcome = headless::request(&handle, input.clone()).await.map(|(_, events)| events);
                    Done::Planned { key, input, outcome }
                })));
            }
            Meaning::Show(input) => {
                let handle = self.handle.clone();
                self.work.push(Box::pin(async move {
                    let outcome = headless::request(&handle, input).await;
                    let text = outcome.map_or_else(|e| Failure::from(e).message, |(_, events)| slash::shown(&events));
                    Done::Said { key, text }
                }));
            }
            Meaning::Prompt { name, args } => {
                let Some(stopped) = self.prompts.until_cancelled(key) else { return };
                let harness = self.harness.clone();
                self.work.push(Box::pin(unless(stopped, async move {
                    let text = match harness.server_prompt(&name, &args).await {
                        Ok(text) => {
                            format!("/{name} gives this text. It was not sent; send what you want of it:\n\n{text}")
                        }
                        Err(e) => Failure::from(e).message,
                    };
                    Done::Said { key, text }
                })));
            }
            Meaning::Say(text) => self.work.push(Box::pin(async move { Done::Said { key, text } })),
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

    async fn cancel(&mut self) {
        if self.prompts.is_empty() && self.running.is_none() {
            return;
        }
        // The question of an agent is taken back when the agent stops.
        self.questions.retain(|asking, _| asking.is_of_agent());
        self.prompts.cancel();
        self.interrupt().await;
    }

    /// A prompt that the Session held back during an undo, a fork or a move of the head begins its Turn behind the interrupt.
    async fn interrupt_again(&mut self) {
        let is_cancelled = self.running.is_some_and(|turn| self.prompts.is_cancelled(turn));
        if is_cancelled && self.interrupts == 0 {
            self.interrupt().await;
        }
    }

    /// Stops the Session before anything that the client asks for later.
    async fn interrupt(&mut self) {
        self.handle.send(Input::Dequeue).await;
        self.handle.send(Input::Interrupt).await;
        self.interrupts += 1;
        let handle = self.handle.clone();
        self.work.push(Box::pin(async move {
            handle.settle().await;
            Done::Cancelled
        }));
    }

    pub(super) async fn finish(&mut self, done: Done) {
        let over = match done {
            Done::Submitted { key, outcome } => {
                self.catch_up();
                let text = self.prompts.told(key);
                let over = match outcome {
                    Ok(accepted) => {
                        if let Some(id) = &accepted.forked {
                            self.say(&format!("The new session is {id}; it has the conversation so far."));
                        }
                        if !text.is_empty() {
                            self.say(&text);
                            // What is trusted now brings commands along, or takes them away.
                            self.show_commands();
                        }
                        self.prompts.accepted(key, &accepted)
                    }
                    Err(error) => self.prompts.end(key, Err(error.into())),
                };
                self.respond(over);
                return self.interrupt_again().await;
            }
            Done::Answered { reply, outcome } => {
                // What the Input led to comes before its answer.
                self.catch_up();
                return self.answer(reply, outcome);
            }
            Done::Decided { asking, input } => {
                self.questions.remove(&asking);
                return self.handle.send(input).await;
            }
            Done::Said { key, text } => {
                self.catch_up();
                self.say(&text);
                self.prompts.end(key, Ok("end_turn"))
            }
            Done::Looked { key, found } => {
                self.catch_up();
                return self.ask_for_trust(key, found);
            }
            Done::Planned { key, outcome: Err(error), .. } => {
                self.catch_up();
                self.say(&Failure::from(error).message);
                self.prompts.end(key, Ok("end_turn"))
            }
            Done::Planned { key, input, outcome: Ok(events) } => {
                self.catch_up();
                return self.agree(key, input, &events);
            }
            Done::Agreed { key, input: None } => {
                self.say("Nothing was changed.");
                self.prompts.end(key, Ok("end_turn"))
            }
            Done::Agreed { key, input: Some(input) } => {
                self.prompts.sent(key);
                if let Input::AnswerTrust { answer, .. } = &input {
                    self.prompts.tells(key, question::trusted(*answer).to_owned());
                }
                return self.submit(key, input).await;
            }
            Done::Cancelled => {
                self.catch_up();
                self.interrupts -= 1;
                let over = self.prompts.stopped();
                self.respond(over);
                return self.interrupt_again().await;
            }
            Done::Nothing => return,
        };
        self.respond(over);
    }
}

/// What the workspace brings along; the Session reads it beside its other work.
async fn contributions(handle: &Handle, mut watch: Watch) -> Result<Contributions, Error> {
    handle.request(Input::ShowTrust).await?;
    handle.settle().await;
    let mut found = Vec::new();
    while let Some(event) = watch.try_next() {
        if let Some(Live::TrustAsked(it)) = event.live() {
            found.push(it.clone());
        }
    }
    // One question at a time: about the first that has none yet, else about the workspace.
    let at = found.iter().position(Contributions::needs_answer).unwrap_or(0);
    Ok(if found.is_empty() { Contributions::default() } else { found.swap_remove(at) })
}
