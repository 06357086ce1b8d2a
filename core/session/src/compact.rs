//! Compactions on request: previews, drafts by the model, and what the user approved. What fills the context, and what the
//! user drops from it.

use super::travel::Trip;
use super::{Session, on_entry};
use context::compaction::{self, Summary, plan_with};
use context::{ledger, prompt};
use conversation::history::{Settings, is_request};
use protocol::error::{Code, Error, Result};
use protocol::event::{CompactionPreview, Draft, Fact, Label, Live, Trigger};
use protocol::input::{Accepted, CompactOptions};
use provider::RequestBody;

impl Session {
    /// Compacts or previews at once, or returns the background request for the summary.
    pub(super) async fn compact(
        &mut self,
        instructions: Option<String>,
        dry_run: bool,
        options: CompactOptions,
    ) -> Result<Option<Trip>> {
        let instructions = instructions.as_deref();
        if options.seen.as_ref().is_some_and(|seen| *seen != compaction::token(&self.history)) {
            return Err(compaction::is_stale());
        }
        let plan = plan_with(&self.history, Trigger::Manual, instructions, self.room(), &options)?;
        if let (Some(text), false) = (&options.summary, dry_run) {
            let compaction = plan.with_text(text, self.previewed.as_deref())?;
            plan.check_fits(&compaction)?;
            self.previewed = None;
            return self.record(None, compaction.into()).await.map(|()| None);
        }
        if !dry_run {
            if options.has_moves() {
                plan.check_fits(&plan.compaction)?;
            }
            return match self.summary(plan, instructions) {
                Summary::Asked(request) => Ok(Some(Trip::Compact(request))),
                Summary::Made(compaction) => self.record(None, (*compaction).into()).await.map(|()| None),
            };
        }
        let preview = plan.preview(&self.history);
        let (preview, request) = match self.summary(plan, instructions) {
            Summary::Asked(request) => {
                let (author, cost_usd) = (Some(request.model().to_owned()), request.usd());
                let draft = if options.draft { Draft::Writing } else { Draft::NotAsked };
                (CompactionPreview { author, cost_usd, draft, ..preview }, Some(request).filter(|_| options.draft))
            }
            Summary::Made(compaction) => (CompactionPreview { compaction: *compaction, ..preview }, None),
        };
        self.publish_preview(preview.clone());
        Ok(request.map(|request| Trip::Draft(request, Box::new(preview))))
    }

    fn publish_preview(&mut self, preview: CompactionPreview) {
        let preview = Box::new(preview);
        self.previewed = Some(preview.clone());
        self.publish(Live::CompactionPreviewed(preview));
    }

    /// Publishes what fills the window of the next request.
    pub(super) fn show_context(&mut self) -> Accepted {
        let Settings { provider, model, toolset, .. } = &self.history.settings;
        let family = self.history.family.as_deref().unwrap_or(self.id.as_str());
        let services = &self.services;
        let request = prompt::request(&self.history, services.specs(*toolset), &services.blobs, family);
        let body = match services.providers.now().connect(provider) {
            Ok(connected) => connected.body(request),
            Err(_) => RequestBody::described(request),
        };
        let window = services.providers.now().facts(provider, model).working_window();
        let mut report = ledger::report(&self.history, &body, window);
        for part in &mut report.parts {
            if let Some(dropped) = part.seq.and_then(|seq| self.drops.get(&seq)) {
                part.waits = *dropped != part.dropped;
            }
        }
        self.publish(Live::ContextListed(Box::new(report)));
        Accepted::default()
    }

    /// Puts a note in place of an Entry in every request from now on, or sends the Entry again. A running Turn does so before
    /// its next request.
    pub(super) async fn drop_entry(&mut self, seq: u64, dropped: bool) -> Result<Accepted> {
        on_entry(&self.history, seq)?;
        let is_last_request =
            self.history.path().rfind(|entry| is_request(&entry.fact)).is_some_and(|it| it.seq == seq);
        let why = match &self.history.entry(seq).map(|entry| &entry.fact) {
            _ if !dropped => None,
            _ if is_last_request => Some("it is your last request"),
            Some(Fact::HistoryCompaction(_)) => Some("it is the summary of the earlier conversation"),
            Some(Fact::ContextChanged(_) | Fact::SkillIndex(_)) => Some("it tells the model how things are"),
            _ => None,
        };
        if let Some(why) = why {
            let message = format!("entry {seq} cannot be dropped: {why}");
            return Err(Error::new(Code::InvalidArgs, message, "drop another entry").with("input", seq));
        }
        if self.work.is_some() {
            self.drops.insert(seq, dropped);
            return Ok(Accepted::default());
        }
        self.record(None, Label { seq, dropped: Some(dropped), ..Label::default() }.into()).await?;
        Ok(Accepted::default())
    }

    /// Records the drops that came while a request was under way.
    pub(super) async fn record_drops(&mut self) -> Result<()> {
        while let Some((seq, dropped)) = self.drops.pop_first() {
            // The Head may have moved meanwhile.
            if on_entry(&self.history, seq).is_ok() {
                self.record(None, Label { seq, dropped: Some(dropped), ..Label::default() }.into()).await?;
            }
        }
        Ok(())
    }
}
