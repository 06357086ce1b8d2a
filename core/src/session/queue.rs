//! What waits for the running Turn: to join it, or to begin when it has ended.

use std::sync::atomic::Ordering;

use super::Session;
use crate::protocol::event::{Delivery, Event, Live};
use crate::protocol::input::Message;

/// What begins when the running Turn has ended.
pub(super) enum Waiting {
    Say(Message),
    Run { command: String, send_to_model: bool },
}

impl Waiting {
    /// As the person typed it.
    fn text(&self) -> String {
        match self {
            Waiting::Say(message) => message.text.clone(),
            Waiting::Run { command, send_to_model: true } => format!("!{command}"),
            Waiting::Run { command, send_to_model: false } => format!("!!{command}"),
        }
    }
}

impl Session {
    /// What came too late to join the work that has ended starts the next Turn.
    pub(super) async fn begin_next(&mut self) {
        let next = self.steer.pop_front().map(Waiting::Say).or_else(|| self.follow_up.pop_front());
        let Some(next) = next else { return };
        self.publish_queue();
        let begun = match next {
            Waiting::Say(message) => self.begin_turn(message, Delivery::FollowUp).await,
            Waiting::Run { command, send_to_model } => self.run_command(command, send_to_model).await,
        };
        if let Err(error) = begun {
            self.publish(Event::Live(Live::Refused(error.body())));
        }
    }

    pub(super) fn publish_queue(&mut self) {
        let live = Live::QueueChanged {
            steer: self.steer.iter().map(|it| it.text.clone()).collect(),
            follow_up: self.follow_up.iter().map(Waiting::text).collect(),
        };
        self.publish(Event::Live(live));
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
        if let Some(work) = &self.work {
            work.steered.store(!self.steer.is_empty(), Ordering::Relaxed);
        }
    }
}
