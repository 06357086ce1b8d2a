//! Messages that wait for the running Turn: to join it, or to begin when it has ended.

use super::Session;
use super::work::Work;
use crate::protocol::error::{Code, Error, Result};
use crate::protocol::event::{Delivery, Live};
use crate::protocol::input::{Accepted, Message, Queued};
use crate::protocol::now::Queue;

/// The most messages that wait.
const MOST: usize = 64;
/// The most text of all messages that wait, bytes.
const MOST_TEXT: usize = 8 << 20;

/// What begins when the running Turn has ended.
pub(super) enum Waiting {
    Say(Message),
    Run { command: String, send_to_model: bool },
}

impl Waiting {
    /// As the user typed it.
    fn text(&self) -> String {
        match self {
            Waiting::Say(message) => message.text.clone(),
            Waiting::Run { command, send_to_model: true } => format!("!{command}"),
            Waiting::Run { command, send_to_model: false } => format!("!!{command}"),
        }
    }
}

impl Session {
    /// # Errors
    /// `TOO_MANY_ITEMS` when the queue is full.
    pub(super) fn wait_in_line(&mut self, next: Waiting) -> Result<Accepted> {
        self.has_place_for(&next.text())?;
        self.follow_up.push_back(next);
        self.publish_queue();
        let queued = Queued { delivery: Delivery::FollowUp, position: self.follow_up.len() };
        Ok(Accepted { queued: Some(queued), ..Accepted::default() })
    }

    /// # Errors
    /// `TOO_MANY_ITEMS` when the queue is full.
    pub(super) fn steer(&mut self, message: Message) -> Result<Accepted> {
        self.has_place_for(&message.text)?;
        self.steer.push_back(message);
        self.mark_steered();
        self.publish_queue();
        let queued = Queued { delivery: Delivery::Steer, position: self.steer.len() };
        let turn = self.work.as_ref().and_then(Work::turn).map(|turn| turn.number);
        Ok(Accepted { turn, queued: Some(queued), ..Accepted::default() })
    }

    fn has_place_for(&self, text: &str) -> Result<()> {
        let Queue { steer, follow_up } = self.queue();
        let waiting = || steer.iter().chain(&follow_up);
        let full = if waiting().count() >= MOST {
            format!("{MOST} messages wait already")
        } else if waiting().map(String::len).sum::<usize>() + text.len() > MOST_TEXT {
            format!("the messages that wait have more than {} MiB of text", MOST_TEXT >> 20)
        } else {
            return Ok(());
        };
        Err(Error::new(Code::TooManyItems, full, "send it when the turn has ended, or take the others back"))
    }

    /// A steer that came too late to join the work that has ended starts the next Turn.
    pub(super) async fn begin_next(&mut self) {
        let steer = self.steer.pop_front().map(|message| ("steer", Waiting::Say(message)));
        let next = steer.or_else(|| self.follow_up.pop_front().map(|next| ("follow_up", next)));
        let Some((input, next)) = next else { return };
        self.publish_queue();
        let begun = match next {
            Waiting::Say(message) => self.begin_turn(input, message, Delivery::FollowUp).await,
            Waiting::Run { command, send_to_model } => {
                self.run_command("run_user_command", command, send_to_model).await
            }
        };
        if let Err(error) = begun {
            self.refuse(input, &error);
        }
    }

    pub(super) fn queue(&self) -> Queue {
        Queue {
            steer: self.steer.iter().map(|it| it.text.clone()).collect(),
            follow_up: self.follow_up.iter().map(Waiting::text).collect(),
        }
    }

    pub(super) fn publish_queue(&mut self) {
        let Queue { steer, follow_up } = self.queue();
        self.publish(Live::QueueChanged { steer, follow_up });
    }

    pub(super) fn clear_queue(&mut self) {
        if self.steer.is_empty() && self.follow_up.is_empty() {
            return;
        }
        self.steer.clear();
        self.follow_up.clear();
        self.mark_steered();
        self.publish_queue();
    }

    pub(super) fn mark_steered(&self) {
        if let Some(turn) = self.work.as_ref().and_then(Work::turn) {
            turn.steered.send_replace(!self.steer.is_empty());
        }
    }
}
