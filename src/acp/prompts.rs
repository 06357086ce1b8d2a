//! Prompts that have no response yet. Each gets exactly one, when its own Turn has ended.

use std::collections::HashMap;

use pixir_core::error::ErrorKind;
use pixir_core::event::{TurnEnded, TurnStatus, UserMessage};
use pixir_core::{Accepted, Code, Error};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::json_rpc::Failure;

/// The most prompts of a Session that wait for their responses.
const MOST: usize = 128;

/// The reason for which a prompt ended, as the protocol names it.
pub(super) type Outcome = Result<&'static str, Failure>;

/// How a prompt reaches a Turn that runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Delivery {
    FollowUp,
    Steer,
}

struct Prompt<R> {
    key: u64,
    reply: R,
    /// As the client sent it.
    text: String,
    delivery: Delivery,
    turn: Option<u32>,
    /// It waits for the running Turn.
    waits: bool,
    cancel: Cancel,
    /// Ends the slash command that it is.
    stop: Option<oneshot::Sender<()>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cancel {
    No,
    /// The client does not want it any more.
    Asked,
    /// The Session's queue was emptied and its Turn interrupted since.
    Done,
}

/// The prompts of one Session, oldest first; `R` answers one of them.
pub(super) struct Prompts<R> {
    open: Vec<Prompt<R>>,
    next: u64,
    /// How the last Turns ended, for prompts whose answer by the Session comes later.
    ended: HashMap<u32, Outcome>,
}

impl<R> Prompts<R> {
    pub(super) fn new() -> Prompts<R> {
        Prompts { open: Vec::new(), next: 0, ended: HashMap::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Whether one of the prompts is answered by a reply of this kind.
    pub(super) fn any(&self, is_meant: impl Fn(&R) -> bool) -> bool {
        self.open.iter().any(|prompt| is_meant(&prompt.reply))
    }

    /// Takes a prompt; its key names it from now on.
    ///
    /// # Errors
    /// `TOO_MANY_ITEMS` when too many prompts have no response, with the right to answer this one.
    pub(super) fn add(&mut self, reply: R, text: String, delivery: Delivery) -> Result<u64, (R, Error)> {
        if self.open.len() >= MOST {
            let message = format!("{MOST} prompts of this session have no response yet");
            let fix = "wait for a response, or cancel the session's prompts";
            return Err((reply, Error::new(Code::TooManyItems, message, fix)));
        }
        let key = self.next;
        self.next += 1;
        let (turn, waits, cancel, stop) = (None, false, Cancel::No, None);
        self.open.push(Prompt { key, reply, text, delivery, turn, waits, cancel, stop });
        Ok(key)
    }

    fn find(&mut self, key: u64) -> Option<&mut Prompt<R>> {
        self.open.iter_mut().find(|prompt| prompt.key == key)
    }

    /// What ends when the client cancels this prompt.
    pub(super) fn until_cancelled(&mut self, key: u64) -> Option<oneshot::Receiver<()>> {
        let prompt = self.find(key)?;
        let (stop, stopped) = oneshot::channel();
        prompt.stop = Some(stop);
        Some(stopped)
    }

    /// Ends a prompt.
    #[must_use]
    pub(super) fn end(&mut self, key: u64, outcome: Outcome) -> Option<(R, Outcome)> {
        let at = self.open.iter().position(|prompt| prompt.key == key)?;
        let prompt = self.open.remove(at);
        let outcome = if prompt.cancel == Cancel::No { outcome } else { Ok("cancelled") };
        Some((prompt.reply, outcome))
    }

    /// Ends the prompts that are over.
    fn end_all(&mut self, is_over: impl Fn(&Prompt<R>) -> bool, outcome: &Outcome) -> Vec<(R, Outcome)> {
        let keys: Vec<u64> = self.open.iter().filter(|it| is_over(it)).map(|it| it.key).collect();
        keys.into_iter().filter_map(|key| self.end(key, outcome.clone())).collect()
    }

    /// The Session has answered the Input of a prompt: its Turn is known, or it waits, or it has done all that there was to do.
    #[must_use]
    pub(super) fn accepted(&mut self, key: u64, accepted: &Accepted) -> Option<(R, Outcome)> {
        let prompt = self.find(key)?;
        if prompt.turn.is_some() {
            return None;
        }
        prompt.turn = accepted.turn;
        prompt.waits = accepted.turn.is_none() && accepted.queued.is_some();
        // The queue was emptied after the Session had answered, and before that answer was read.
        let was_dropped = prompt.waits && prompt.cancel == Cancel::Done;
        match accepted.turn {
            None if accepted.queued.is_none() => self.end(key, Ok("end_turn")),
            None if was_dropped => self.end(key, Ok("cancelled")),
            None => None,
            Some(turn) => {
                let outcome = self.ended.get(&turn).cloned()?;
                self.end(key, outcome)
            }
        }
    }

    /// A message of the queue has begun a Turn, or joined one.
    pub(super) fn delivered(&mut self, turn: Option<u32>, message: &UserMessage) {
        let is_it = |prompt: &Prompt<R>| match &message.template {
            // The text is what the template made of the client's.
            Some(template) => {
                let line = prompt.text.strip_prefix('/').unwrap_or_default();
                line.split_whitespace().next() == Some(template.name.as_str())
            }
            None => prompt.text == message.text,
        };
        if let Some(prompt) = self.open.iter_mut().find(|it| it.turn.is_none() && is_it(it)) {
            (prompt.turn, prompt.waits) = (turn, false);
        }
    }

    /// The Session could not begin the Turn of the oldest message that waited.
    #[must_use]
    pub(super) fn refused(&mut self, input: &str, failure: Failure) -> Option<(R, Outcome)> {
        let delivery = match input {
            "steer" => Delivery::Steer,
            "follow_up" => Delivery::FollowUp,
            _ => return None,
        };
        let key = self.open.iter().find(|it| it.waits && it.delivery == delivery)?.key;
        self.end(key, Err(failure))
    }

    #[must_use]
    pub(super) fn turn_ended(&mut self, turn: u32, outcome: Outcome) -> Vec<(R, Outcome)> {
        let is_over =
            |it: &Prompt<R>| it.turn == Some(turn) || (it.cancel != Cancel::No && !it.waits && it.stop.is_none());
        let over = self.end_all(is_over, &outcome);
        // Only prompts that the Session has not answered yet can belong to a Turn that has ended.
        self.ended.retain(|other, _| other + 8 > turn);
        self.ended.insert(turn, outcome);
        over
    }

    /// The client wants none of these prompts any more. Slash commands stop at once.
    pub(super) fn cancel(&mut self) {
        for prompt in &mut self.open {
            (prompt.cancel, prompt.stop) = (Cancel::Asked, None);
        }
    }

    /// No message waits any more, and what runs is about to end.
    #[must_use]
    pub(super) fn cancelled(&mut self, still_runs: bool) -> Vec<(R, Outcome)> {
        for prompt in self.open.iter_mut().filter(|it| it.cancel == Cancel::Asked) {
            prompt.cancel = Cancel::Done;
        }
        self.end_all(|it| it.cancel == Cancel::Done && (it.waits || !still_runs), &Ok("cancelled"))
    }

    /// The Session has closed.
    #[must_use]
    pub(super) fn close(&mut self) -> Vec<(R, Outcome)> {
        self.end_all(|_| true, &Ok("cancelled"))
    }
}

/// The result of a prompt's response.
pub(super) fn response(outcome: Outcome) -> Result<Value, Failure> {
    outcome.map(|reason| json!({ "stopReason": reason }))
}

/// The reason for which a Turn ended, as the protocol names it.
pub(super) fn outcome(end: &TurnEnded) -> Outcome {
    let error = || end.error.as_deref().map_or_else(Failure::internal, Failure::from);
    match (end.status, end.error.as_deref()) {
        (TurnStatus::Completed, _) => Ok("end_turn"),
        (TurnStatus::Interrupted, _) => Ok("cancelled"),
        (TurnStatus::Incomplete | TurnStatus::PartialFailed | TurnStatus::Failed, Some(it))
            if it.code == Code::Refused.name() =>
        {
            Ok("refusal")
        }
        // A truncated answer is of the same kind as the limits of a Turn.
        (TurnStatus::Incomplete, _) if end.details.contains_key("output_truncation") => Ok("max_tokens"),
        (TurnStatus::Incomplete, Some(it)) if it.kind == ErrorKind::IterationCap => Ok("max_turn_requests"),
        (TurnStatus::Incomplete | TurnStatus::PartialFailed | TurnStatus::Failed | TurnStatus::TimedOut, _) => {
            Err(error())
        }
    }
}

#[cfg(test)]
mod tests {
    use pixir_core::event::TemplateUse;
    use pixir_core::input::Queued;

    use super::*;

    fn waits(prompts: &mut Prompts<&'static str>, name: &'static str, delivery: Delivery) -> u64 {
        let key = prompts.add(name, name.to_owned(), delivery).expect("there is room");
        let queued = Some(Queued { delivery: pixir_core::event::Delivery::FollowUp, position: 1 });
        assert_eq!(prompts.accepted(key, &Accepted { queued, ..Accepted::default() }), None);
        key
    }

    fn says(text: &str) -> UserMessage {
        UserMessage { text: text.to_owned(), ..UserMessage::default() }
    }

    #[test]
    fn each_prompt_ends_with_its_own_turn() {
        let mut prompts = Prompts::new();
        let first = prompts.add("a", "a".to_owned(), Delivery::FollowUp).expect("there is room");
        assert_eq!(prompts.accepted(first, &Accepted { turn: Some(1), ..Accepted::default() }), None);
        waits(&mut prompts, "b", Delivery::FollowUp);
        waits(&mut prompts, "c", Delivery::Steer);
        prompts.delivered(Some(1), &says("c"));
        assert_eq!(prompts.turn_ended(1, Ok("end_turn")), [("a", Ok("end_turn")), ("c", Ok("end_turn"))]);
        prompts.delivered(Some(2), &says("b"));
        assert_eq!(prompts.turn_ended(2, Ok("max_tokens")), [("b", Ok("max_tokens"))]);
        assert!(prompts.is_empty());
    }

    /// Broken build: a message that a template made is matched by its text, and its prompt waits for ever.
    #[test]
    fn a_template_that_waited_is_known_by_its_name() {
        let mut prompts = Prompts::new();
        waits(&mut prompts, "/review src", Delivery::FollowUp);
        let template = json!({ "name": "review", "path": "review.md", "origin": "user", "digest": "" });
        let template: TemplateUse = serde_json::from_value(template).expect("a template");
        prompts.delivered(Some(3), &UserMessage { template: Some(Box::new(template)), ..says("Look at src.") });
        assert_eq!(prompts.turn_ended(3, Ok("end_turn")), [("/review src", Ok("end_turn"))]);
    }

    #[test]
    fn a_turn_that_ends_before_the_answer_is_read_ends_its_prompt() {
        let mut prompts = Prompts::new();
        let key = prompts.add("a", "a".to_owned(), Delivery::FollowUp).expect("there is room");
        assert_eq!(prompts.turn_ended(1, Ok("end_turn")), []);
        let accepted = Accepted { turn: Some(1), ..Accepted::default() };
        assert_eq!(prompts.accepted(key, &accepted), Some(("a", Ok("end_turn"))));
    }

    /// Broken build: a prompt whose place in the queue becomes known after the queue was emptied waits for ever.
    #[test]
    fn a_cancel_ends_what_waits_at_once_and_what_runs_with_its_turn() {
        let mut prompts = Prompts::new();
        let running = prompts.add("a", "a".to_owned(), Delivery::FollowUp).expect("there is room");
        assert_eq!(prompts.accepted(running, &Accepted { turn: Some(1), ..Accepted::default() }), None);
        waits(&mut prompts, "b", Delivery::FollowUp);
        let late = prompts.add("c", "c".to_owned(), Delivery::FollowUp).expect("there is room");
        prompts.cancel();
        assert_eq!(prompts.cancelled(true), [("b", Ok("cancelled"))]);
        let queued = Some(Queued { delivery: pixir_core::event::Delivery::FollowUp, position: 2 });
        let accepted = Accepted { queued, ..Accepted::default() };
        assert_eq!(prompts.accepted(late, &accepted), Some(("c", Ok("cancelled"))));
        assert_eq!(prompts.turn_ended(1, Ok("end_turn")), [("a", Ok("cancelled"))]);
    }

    /// Broken build: the refusal of a message that waited ends the prompt of another.
    #[test]
    fn a_refusal_ends_the_oldest_prompt_that_waited_in_this_way() {
        let mut prompts = Prompts::new();
        waits(&mut prompts, "follow", Delivery::FollowUp);
        waits(&mut prompts, "steer", Delivery::Steer);
        let failure = Failure::invalid_params("no");
        assert_eq!(prompts.refused("steer", failure.clone()), Some(("steer", Err(failure.clone()))));
        assert_eq!(prompts.refused("undo", failure), None);
    }

    /// Broken build: prompts without a response have no limit.
    #[test]
    fn prompts_without_a_response_are_bounded() {
        let mut prompts = Prompts::new();
        for _ in 0..MOST {
            assert!(prompts.add("a", String::new(), Delivery::FollowUp).is_ok());
        }
        let (reply, error) = prompts.add("b", String::new(), Delivery::FollowUp).expect_err("it is one too many");
        assert_eq!((reply, error.code), ("b", Code::TooManyItems));
    }
}
