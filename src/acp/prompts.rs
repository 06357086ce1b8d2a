//! Prompts that have no response yet. Each gets exactly one, when its own Turn has ended.

use std::collections::HashMap;

use pixir_core::error::ErrorKind;
use pixir_core::event::{QueueExit, TurnEnded, TurnStatus};
use pixir_core::{Accepted, Code};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::json_rpc::Failure;

/// The reason for which a prompt ended, as the protocol names it.
pub(super) type Outcome = Result<&'static str, Failure>;

struct Prompt<R> {
    key: u64,
    reply: R,
    stage: Stage,
    cancel: Cancel,
    /// What the user is told when the slash command is done.
    after: String,
}

/// How far a prompt has come.
#[derive(Debug)]
enum Stage {
    /// The Session has not answered its Input, or there is none yet.
    Sent,
    /// It waits in the queue of the Session under this number.
    Waits(u64),
    /// It belongs to this Turn.
    Runs(u32),
    /// A slash command that waits for the user. Dropping the sender stops it.
    Asks(#[expect(dead_code, reason = "its drop is what counts")] oneshot::Sender<()>),
    /// A slash command that the client has stopped.
    Stopped,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cancel {
    No,
    /// The client does not want it any more.
    Asked,
}

/// The prompts of one Session, oldest first; `R` answers one of them.
pub(super) struct Prompts<R> {
    open: Vec<Prompt<R>>,
    next: u64,
    /// What happened to Turns and messages while prompts wait for the answers of the Session: it can be about them.
    ended: HashMap<u32, Outcome>,
    left: HashMap<u64, QueueExit>,
}

impl<R> Prompts<R> {
    pub(super) fn new() -> Prompts<R> {
        Prompts { open: Vec::new(), next: 0, ended: HashMap::new(), left: HashMap::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Whether one of the prompts is answered by a reply of this kind.
    pub(super) fn any(&self, is_meant: impl Fn(&R) -> bool) -> bool {
        self.open.iter().any(|prompt| is_meant(&prompt.reply))
    }

    /// Takes a prompt; its key names it from now on.
    pub(super) fn add(&mut self, reply: R) -> u64 {
        let key = self.next;
        self.next += 1;
        self.open.push(Prompt { key, reply, stage: Stage::Sent, cancel: Cancel::No, after: String::new() });
        key
    }

    fn find(&mut self, key: u64) -> Option<&mut Prompt<R>> {
        self.open.iter_mut().find(|prompt| prompt.key == key)
    }

    /// The user is told this when the slash command is done.
    pub(super) fn tells(&mut self, key: u64, text: String) {
        if let Some(prompt) = self.find(key) {
            prompt.after = text;
        }
    }

    /// What the user is to be told now.
    pub(super) fn told(&mut self, key: u64) -> String {
        self.find(key).map(|prompt| std::mem::take(&mut prompt.after)).unwrap_or_default()
    }

    /// What ends when the client cancels this prompt.
    pub(super) fn until_cancelled(&mut self, key: u64) -> Option<oneshot::Receiver<()>> {
        let prompt = self.find(key)?;
        let (stop, stopped) = oneshot::channel();
        prompt.stage = Stage::Asks(stop);
        Some(stopped)
    }

    /// The user agreed to what a slash command would do: its Input is sent.
    pub(super) fn sent(&mut self, key: u64) {
        if let Some(prompt) = self.find(key) {
            prompt.stage = Stage::Sent;
        }
    }

    /// Ends a prompt.
    #[must_use]
    pub(super) fn end(&mut self, key: u64, outcome: Outcome) -> Option<(R, Outcome)> {
        let at = self.open.iter().position(|prompt| prompt.key == key)?;
        let prompt = self.open.remove(at);
        self.forget();
        let outcome = if prompt.cancel == Cancel::No { outcome } else { Ok("cancelled") };
        Some((prompt.reply, outcome))
    }

    /// Ends the prompts that are over.
    fn end_all(&mut self, is_over: impl Fn(&Prompt<R>) -> bool, outcome: &Outcome) -> Vec<(R, Outcome)> {
        let keys: Vec<u64> = self.open.iter().filter(|it| is_over(it)).map(|it| it.key).collect();
        keys.into_iter().filter_map(|key| self.end(key, outcome.clone())).collect()
    }

    fn awaits_an_answer(&self) -> bool {
        self.open.iter().any(|prompt| matches!(prompt.stage, Stage::Sent))
    }

    fn forget(&mut self) {
        if !self.awaits_an_answer() {
            self.ended.clear();
            self.left.clear();
        }
    }

    /// The Session has answered the Input of a prompt: its Turn is known, or it waits, or it has done all that there was to do.
    #[must_use]
    pub(super) fn accepted(&mut self, key: u64, accepted: &Accepted) -> Option<(R, Outcome)> {
        let over = match (accepted.queued.and_then(|queued| queued.id), accepted.turn) {
            (Some(id), _) => {
                self.find(key)?.stage = Stage::Waits(id);
                self.left.remove(&id).and_then(|exit| self.left_queue(id, exit))
            }
            (None, Some(turn)) => self.runs(key, turn),
            (None, None) => self.end(key, Ok("end_turn")),
        };
        self.forget();
        over
    }

    fn runs(&mut self, key: u64, turn: u32) -> Option<(R, Outcome)> {
        self.find(key)?.stage = Stage::Runs(turn);
        let outcome = self.ended.get(&turn).cloned()?;
        self.end(key, outcome)
    }

    /// A message has left the queue of the Session.
    #[must_use]
    pub(super) fn left_queue(&mut self, id: u64, exit: QueueExit) -> Option<(R, Outcome)> {
        let waiting = self.open.iter().find(|prompt| matches!(prompt.stage, Stage::Waits(it) if it == id));
        let Some(key) = waiting.map(|prompt| prompt.key) else {
            if self.awaits_an_answer() {
                self.left.insert(id, exit);
            }
            return None;
        };
        match exit {
            QueueExit::Delivered { turn } => self.runs(key, turn),
            QueueExit::Refused { error, .. } => self.end(key, Err((&*error).into())),
            QueueExit::TakenBack => self.end(key, Ok("cancelled")),
        }
    }

    #[must_use]
    pub(super) fn turn_ended(&mut self, turn: u32, outcome: Outcome) -> Vec<(R, Outcome)> {
        let over = self.end_all(|it| matches!(it.stage, Stage::Runs(its) if its == turn), &outcome);
        if self.awaits_an_answer() {
            self.ended.insert(turn, outcome);
        }
        over
    }

    /// The client wants none of these prompts any more. Slash commands stop at once.
    pub(super) fn cancel(&mut self) {
        for prompt in &mut self.open {
            prompt.cancel = Cancel::Asked;
            if matches!(prompt.stage, Stage::Asks(_)) {
                prompt.stage = Stage::Stopped;
            }
        }
    }

    /// Nothing of what the client has stopped goes on.
    #[must_use]
    pub(super) fn stopped(&mut self) -> Vec<(R, Outcome)> {
        self.end_all(|it| matches!(it.stage, Stage::Stopped), &Ok("cancelled"))
    }

    /// Whether the client has cancelled a prompt that belongs to this Turn.
    pub(super) fn is_cancelled(&self, turn: u32) -> bool {
        let is_it = |prompt: &Prompt<R>| matches!(prompt.stage, Stage::Runs(its) if its == turn);
        self.open.iter().any(|prompt| prompt.cancel == Cancel::Asked && is_it(prompt))
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
    use pixir_core::Error;
    use pixir_core::event::Delivery;
    use pixir_core::input::Queued;

    use super::*;

    fn begins(turn: u32) -> Accepted {
        Accepted { turn: Some(turn), ..Accepted::default() }
    }

    /// A steer is answered with the Turn that it may join.
    fn queued(id: u64) -> Accepted {
        let queued = Queued { delivery: Delivery::Steer, position: 1, id: Some(id) };
        Accepted { turn: Some(1), queued: Some(queued), ..Accepted::default() }
    }

    fn waits(prompts: &mut Prompts<&'static str>, name: &'static str, id: u64) {
        let key = prompts.add(name);
        assert_eq!(prompts.accepted(key, &queued(id)), None);
    }

    /// Broken build: a steer ends with the Turn that it came too late for.
    #[test]
    fn each_prompt_ends_with_its_own_turn() {
        let mut prompts = Prompts::new();
        let first = prompts.add("a");
        assert_eq!(prompts.accepted(first, &begins(1)), None);
        waits(&mut prompts, "b", 1);
        waits(&mut prompts, "c", 2);
        assert_eq!(prompts.left_queue(2, QueueExit::Delivered { turn: 1 }), None);
        assert_eq!(prompts.turn_ended(1, Ok("end_turn")), [("a", Ok("end_turn")), ("c", Ok("end_turn"))]);
        assert_eq!(prompts.left_queue(1, QueueExit::Delivered { turn: 2 }), None);
        assert_eq!(prompts.turn_ended(2, Ok("max_tokens")), [("b", Ok("max_tokens"))]);
        assert!(prompts.is_empty());
    }

    /// Broken build: what happened before the answer of the Session is read is forgotten, and the prompt waits for ever.
    #[test]
    fn what_happens_before_the_answer_is_read_counts() {
        let error = || Box::new(Error::new(Code::LogWriteFailed, "no space", "make room").body());
        let exits = [
            (QueueExit::Delivered { turn: 7 }, Ok("end_turn")),
            (QueueExit::TakenBack, Ok("cancelled")),
            (QueueExit::Refused { text: "a".to_owned(), error: error() }, Err(Failure::from(&*error()))),
        ];
        for (exit, outcome) in exits {
            let mut prompts = Prompts::new();
            let key = prompts.add("a");
            assert_eq!(prompts.left_queue(3, exit), None);
            for turn in 1..40 {
                assert_eq!(prompts.turn_ended(turn, Ok("end_turn")), []);
            }
            assert_eq!(prompts.accepted(key, &queued(3)), Some(("a", outcome)));
            assert!(prompts.ended.is_empty() && prompts.left.is_empty(), "no end is kept that no prompt waits for");
        }
        let mut prompts = Prompts::new();
        let key = prompts.add("a");
        assert_eq!(prompts.turn_ended(1, Ok("end_turn")), []);
        assert_eq!(prompts.accepted(key, &begins(1)), Some(("a", Ok("end_turn"))));
    }

    /// Broken build: a cancelled prompt ends with the reason of its Turn.
    #[test]
    fn a_cancel_ends_slash_commands_at_once_and_what_runs_with_its_turn() {
        let mut prompts = Prompts::new();
        let running = prompts.add("a");
        assert_eq!(prompts.accepted(running, &begins(1)), None);
        waits(&mut prompts, "b", 1);
        let command = prompts.add("c");
        let mut stopped = prompts.until_cancelled(command).expect("it is open");
        prompts.cancel();
        assert!(prompts.is_cancelled(1) && !prompts.is_cancelled(2));
        assert_eq!(stopped.try_recv(), Err(oneshot::error::TryRecvError::Closed));
        assert_eq!(prompts.stopped(), [("c", Ok("cancelled"))]);
        assert_eq!(prompts.left_queue(1, QueueExit::TakenBack), Some(("b", Ok("cancelled"))));
        assert_eq!(prompts.turn_ended(1, Ok("end_turn")), [("a", Ok("cancelled"))]);
    }

    /// Broken build: the refusal of a message that waited ends the prompt of another.
    #[test]
    fn a_refusal_ends_the_prompt_that_it_is_about() {
        let mut prompts = Prompts::new();
        waits(&mut prompts, "first", 1);
        waits(&mut prompts, "second", 2);
        let error = Box::new(Error::new(Code::LogEncodeFailed, "too large", "shorten it").body());
        let failure = Failure::from(&*error);
        let refused = prompts.left_queue(2, QueueExit::Refused { text: "again".to_owned(), error });
        assert_eq!(refused, Some(("second", Err(failure))));
        assert_eq!(prompts.close(), [("first", Ok("cancelled"))]);
    }
}
