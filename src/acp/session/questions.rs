//! What only the user decides: each question goes to the client, and its answer comes back as an Input.

use pixir_core::agent::Asker;
use pixir_core::event::{Approval, Form, RestorePreview};
use pixir_core::now::Now;
use pixir_core::trust::{Contribution, Contributions, Standing};
use pixir_core::{Error, Event, Input, Live};
use serde_json::json;
use tokio::sync::oneshot;

use super::requests::Done;
use super::{Attached, unless};
use crate::acp::{question, slash};
use crate::json_rpc::Failure;

/// What a question is about: a call of the Session, or of an agent below it. Two agents can have calls of the same id.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Asking {
    agent: Vec<String>,
    call_id: String,
}

impl Asking {
    pub(super) fn new(call_id: &str, agent: Option<&Asker>) -> Asking {
        Asking { agent: agent.map_or_else(Vec::new, |it| it.path.clone()), call_id: call_id.to_owned() }
    }

    pub(super) fn is_open(&self, now: &Now) -> bool {
        let approvals = now.approvals.iter().map(|it| Asking::new(&it.call_id, it.agent.as_ref()));
        approvals.chain(now.forms.iter().map(|it| Asking::new(&it.call_id, it.agent.as_ref()))).any(|it| it == *self)
    }

    pub(super) fn is_of_agent(&self) -> bool {
        !self.agent.is_empty()
    }
}

impl Attached {
    pub(super) fn approval(&mut self, it: &Approval) {
        let params = question::permission(&self.id, it, &self.projection);
        let call = params["toolCall"].clone();
        let asked = self.ask("session/request_permission", params);
        let (stop, stopped) = oneshot::channel();
        let asking = Asking::new(&it.call_id, it.agent.as_ref());
        self.questions.insert(asking.clone(), stop);
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
            let input = Input::Decide { call_id: it.call_id, decision, word };
            Done::Decided { asking, input: input.for_asker(it.agent.as_ref()) }
        })));
    }

    pub(super) fn form(&mut self, form: &Form) {
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
        let asking = Asking::new(&form.call_id, form.agent.as_ref());
        self.questions.insert(asking.clone(), stop);
        self.work.push(Box::pin(unless(stopped, async move {
            let answer = asked.answer().await;
            let answers = if as_form {
                question::answers(&form, answer.as_ref())
            } else {
                question::of_option(&form, question::chosen(answer.as_ref()))
            };
            Done::Decided { asking, input: question::answering(&form, answers) }
        })));
    }

    /// Puts the preview of a slash command to the user.
    pub(super) fn agree(&mut self, key: u64, input: Input, events: &[Event]) {
        let previewed = events.iter().find_map(|event| match event.live() {
            Some(Live::RestorePreviewed(it)) => {
                let what = if let Input::MoveHead { .. } = input { "rewind" } else { input.name() };
                let title = format!("{what} {}", paths(it));
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
            let over = self.prompts.end(key, Ok("end_turn"));
            return self.respond(over);
        };
        let params = question::plan(&self.id, &format!("plan-{key}"), &title, content);
        let Some(stopped) = self.prompts.until_cancelled(key) else { return };
        let asked = self.ask("session/request_permission", params);
        self.work.push(Box::pin(unless(stopped, async move {
            let answer = asked.answer().await;
            let agrees = question::chosen(answer.as_ref()) == Some(question::ONCE);
            Done::Agreed { key, input: agrees.then(|| slash::carried_out(input, &token)) }
        })));
    }

    /// Asks whether what the workspace brings along is to be in force, if the user has not answered for it as it is.
    pub(super) fn ask_for_trust(&mut self, key: u64, found: Result<Contributions, Error>) {
        let found = match found {
            Ok(found) => found,
            Err(error) => {
                self.say(&Failure::from(error).message);
                let over = self.prompts.end(key, Ok("end_turn"));
                return self.respond(over);
            }
        };
        let shown = slash::contributions(&found);
        let is_inert = |it: &Contribution| matches!(it.standing, Standing::New | Standing::Changed | Standing::Inert);
        if !found.all.iter().any(is_inert) {
            self.say(&shown);
            let over = self.prompts.end(key, Ok("end_turn"));
            return self.respond(over);
        }
        let params = question::trust(&self.id, &format!("trust-{key}"), &shown);
        let Some(stopped) = self.prompts.until_cancelled(key) else { return };
        let asked = self.ask("session/request_permission", params);
        self.work.push(Box::pin(unless(stopped, async move {
            let answer = asked.answer().await;
            let answer = question::trust_answer(question::chosen(answer.as_ref()));
            Done::Agreed { key, input: Some(Input::AnswerTrust { answer, seen: found.seen(), folder: found.folder }) }
        })));
    }
}

fn paths(it: &RestorePreview) -> String {
    let paths: Vec<&str> = it.files.iter().map(|file| file.path.as_str()).collect();
    paths.join(", ")
}
