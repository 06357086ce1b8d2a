//! Messages that wait for the running Turn: to join it, or to begin when it has ended.

use std::collections::VecDeque;

use super::Session;
use super::work::Work;
use protocol::error::{Code, Error, Result};
use protocol::event::{Delivery, Live, QueueExit};
use protocol::input::{Accepted, Message, Queued};
use protocol::now::Queue;

/// The most messages that wait.
const MOST: usize = 64;
/// The most text of all messages that wait, bytes.
const MOST_TEXT: usize = 8 << 20;

/// The messages of a Session that wait.
#[derive(Default)]
pub(super) struct Waiters {
    steer: VecDeque<InLine<Message>>,
    follow_up: VecDeque<InLine<Waiting>>,
    /// How many messages have waited so far.
    count: u64,
}

/// Something that waits, with its number in the Session.
struct InLine<T> {
    id: u64,
    it: T,
}

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
        let id = self.waiters.number();
        self.waiters.follow_up.push_back(InLine { id, it: next });
        self.publish_queue();
        let position = self.waiters.follow_up.len();
        let queued = Queued { delivery: Delivery::FollowUp, position, id: Some(id) };
        Ok(Accepted { queued: Some(queued), ..Accepted::default() })
    }

    /// # Errors
    /// `TOO_MANY_ITEMS` when the queue is full.
    pub(super) fn steer(&mut self, message: Message) -> Result<Accepted> {
        self.has_place_for(&message.text)?;
        let id = self.waiters.number();
        self.waiters.steer.push_back(InLine { id, it: message });
        self.mark_steered();
        self.publish_queue();
        let queued = Queued { delivery: Delivery::Steer, position: self.waiters.steer.len(), id: Some(id) };
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

    /// The messages that wait for a place between two requests join the Turn.
    ///
    /// # Errors
    /// The message that could not be recorded has left the queue too.
    pub(super) async fn join_steers(&mut self, turn: Option<u32>) -> Result<()> {
        while let Some(InLine { id, it: message }) = self.waiters.steer.pop_front() {
            let text = message.text.clone();
            let message = self.said(message, Delivery::Steer);
            let recorded = self.record(turn, message.into()).await;
            self.publish_queue();
            self.left_queue(id, text, recorded.as_ref().err());
            recorded?;
        }
        self.mark_steered();
        Ok(())
    }

    /// A steer that came too late to join the work that has ended starts the next Turn. A message that is refused makes way
    /// for the one behind it.
    pub(super) async fn begin_next(&mut self) {
        while self.work.is_none()
            && let Some((input, InLine { id, it: next })) = self.waiters.pop()
        {
            self.publish_queue();
            let text = next.text();
            let begun = match next {
                Waiting::Say(message) => self.begin_turn(input, message, Delivery::FollowUp).await,
                Waiting::Run { command, send_to_model } => {
                    self.run_command("run_user_command", command, send_to_model).await
                }
            };
            if let Err(error) = &begun {
                self.refuse(input, error);
            }
            self.left_queue(id, text, begun.as_ref().err());
        }
    }

    /// Tells the watchers that a message which waited is part of the present Turn, or why it is not.
    fn left_queue(&mut self, id: u64, text: String, error: Option<&Error>) {
        let to = match error {
            None => QueueExit::Delivered { turn: self.history.turns },
            Some(error) => QueueExit::Refused { text, error: Box::new(error.body()) },
        };
        self.publish(Live::QueueLeft { id, to });
    }

    pub(super) fn queue(&self) -> Queue {
        Queue {
            steer: self.waiters.steer.iter().map(|waiting| waiting.it.text.clone()).collect(),
            follow_up: self.waiters.follow_up.iter().map(|waiting| waiting.it.text()).collect(),
        }
    }

    pub(super) fn publish_queue(&mut self) {
        let Queue { steer, follow_up } = self.queue();
        self.publish(Live::QueueChanged { steer, follow_up });
    }

    pub(super) fn clear_queue(&mut self) {
        let Waiters { steer, follow_up, .. } = &mut self.waiters;
        let ids: Vec<u64> = steer.drain(..).map(|it| it.id).chain(follow_up.drain(..).map(|it| it.id)).collect();
        if ids.is_empty() {
            return;
        }
        self.mark_steered();
        self.publish_queue();
        for id in ids {
            self.publish(Live::QueueLeft { id, to: QueueExit::TakenBack });
        }
    }

    pub(super) fn mark_steered(&self) {
        if let Some(turn) = self.work.as_ref().and_then(Work::turn) {
            turn.steered.send_replace(!self.waiters.steer.is_empty());
        }
    }
}

impl Waiters {
    fn number(&mut self) -> u64 {
        self.count += 1;
        self.count
    }

    /// What begins next, with the name of its Input.
    fn pop(&mut self) -> Option<(&'static str, InLine<Waiting>)> {
        if let Some(InLine { id, it }) = self.steer.pop_front() {
            return Some(("steer", InLine { id, it: Waiting::Say(it) }));
        }
        self.follow_up.pop_front().map(|next| ("follow_up", next))
    }
}
