//! Skills and prompt templates: what the user activates or sends, and the index that the model reads.

use super::Session;
use super::queue::Waiting;
use super::work::Work;
use protocol::error::Result;
use protocol::event::{ActivatedBy, Attachment, Delivery, Fact, SkillIndex};
use protocol::input::{Accepted, Message};

impl Session {
    /// A skill's text joins the conversation. With a task, a Turn starts.
    pub(super) async fn activate_skill(
        &mut self,
        input: &'static str,
        skill: &str,
        args: String,
        attachments: Vec<Attachment>,
    ) -> Result<Accepted> {
        let activation = self.services.library.activate(skill, &args, ActivatedBy::User)?;
        self.record(None, activation.into()).await?;
        if args.is_empty() {
            return Ok(Accepted::default());
        }
        self.begin_turn(input, Message { text: args, attachments, ..Message::default() }, Delivery::Prompt).await
    }

    /// Sends the message that a template makes.
    pub(super) async fn use_template(
        &mut self,
        input: &'static str,
        template: &str,
        args: &str,
        attachments: Vec<Attachment>,
    ) -> Result<Accepted> {
        let message = Message { attachments, ..self.services.library.expand(template, args)? };
        if self.work.is_some() {
            return self.wait_in_line(Waiting::Say(message));
        }
        self.begin_turn(input, message, Delivery::Prompt).await
    }

    /// Records the index of skills, if the part of the conversation that the model reads does not have it yet.
    pub(super) async fn offer_skills(&mut self, index: SkillIndex) -> Result<()> {
        let last = self.history.recent_path().rev().find_map(|entry| match &entry.fact {
            Fact::SkillIndex(it) => Some(it),
            _ => None,
        });
        let is_known = last.map_or(index.listed == 0, |last| **last == index);
        self.skill_index = Some(index.clone());
        if is_known {
            return Ok(());
        }
        let turn = self.work.as_ref().and_then(Work::turn).map(|turn| turn.number);
        self.record(turn, index.into()).await
    }

    /// A compaction that has just replaced the index is followed by it again.
    pub(super) async fn offer_skills_again(&mut self) -> Result<()> {
        let is_compacted = self.history.path().last().is_some_and(|it| matches!(it.fact, Fact::HistoryCompaction(_)));
        match self.skill_index.clone().filter(|_| is_compacted) {
            Some(index) => self.offer_skills(index).await,
            None => Ok(()),
        }
    }
}
