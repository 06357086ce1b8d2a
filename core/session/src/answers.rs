//! What the user answers: decisions on calls, and answers to questions.

use super::Session;
use super::work::Work;
use call::Answers;
use protocol::agent::Asker;
use protocol::error::{Code, Error, Result};
use protocol::event::{Live, Status};
use protocol::input::{Accepted, Decision};
use protocol::remedy::Remedy;

impl Session {
    pub(super) fn decide(&mut self, call_id: &str, decision: Decision, word: Option<&str>) -> Result<Accepted> {
        let turn = self.work.as_mut().and_then(Work::turn_mut);
        let open = turn.and_then(|turn| {
            let at = turn.approvals.iter().position(|it| it.approval.call_id == call_id)?;
            Some((turn, at))
        });
        let (turn, at) = open.ok_or_else(|| not_open("approval", call_id, Remedy::AnswerOpenApproval))?;
        // The call goes on waiting, so that the word can still be typed.
        call::check_word(&turn.approvals[at].approval, &decision, word)?;
        let (number, open) = (turn.number, turn.approvals.remove(at));
        let _ = open.reply.send(Some(decision));
        self.set_status_answered();
        Ok(Accepted { turn: Some(number), ..Accepted::default() })
    }

    pub(super) fn answer(&mut self, call_id: &str, answers: Option<Answers>) -> Result<Accepted> {
        let turn = self.work.as_mut().and_then(Work::turn_mut);
        let open = turn.and_then(|turn| {
            let at = turn.forms.iter().position(|it| it.form.call_id == call_id)?;
            Some((turn.number, turn.forms.remove(at)))
        });
        let (number, open) = open.ok_or_else(|| not_open("form", call_id, Remedy::AnswerOpenForm))?;
        let _ = open.reply.send(answers);
        // No result of a call tells the watchers that it is no longer open.
        if !self.history.orphans().any(|id| id == call_id) {
            self.publish(Live::AnswerTaken { call_id: call_id.to_owned(), agent: Asker::default() });
        }
        self.set_status_answered();
        Ok(Accepted { turn: Some(number), ..Accepted::default() })
    }

    /// Refuses everything that waits for the user. No user is recorded as the one who decided.
    pub(super) fn stop_asking(&mut self) -> Accepted {
        self.services.options.can_ask = false;
        if let Some(agents) = &self.services.agents {
            agents.stop_asking();
        }
        if let Some(turn) = self.work.as_mut().and_then(Work::turn_mut) {
            turn.approvals.drain(..).for_each(|open| drop(open.reply.send(None)));
            turn.forms.drain(..).for_each(|open| drop(open.reply.send(None)));
            if self.status == Status::Asking {
                self.set_status(Status::Working);
            }
        }
        Accepted::default()
    }

    /// One question less is open.
    pub(super) fn set_status_answered(&mut self) {
        let turn = self.work.as_ref().and_then(Work::turn);
        if turn.is_some_and(|turn| turn.approvals.is_empty() && turn.forms.is_empty()) {
            self.set_status(Status::Working);
        }
    }
}

fn not_open(what: &str, call_id: &str, remedy: Remedy) -> Error {
    Error::new(Code::NotFound, format!("that {what} is no longer open"), remedy).with("input", call_id)
}
