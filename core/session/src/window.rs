//! The window of the model: what is done before a request would not fit into it.

use super::Session;
use super::work::Work;
use config::SummaryAuthor;
use context::compaction::{self, Author, Plan, Room, Summary, SummaryRequest};
use context::lighter::{Lighter, Refused, lighter};
use context::prompt;
use conversation::history::Settings;
use protocol::error::{Code, Error, NoticeCode, Result};
use protocol::event::{Fact, Label, SettingsChanged, Severity, Toolset, Trigger};
use turn::{CompactionOptions, smaller};

/// How often History is compacted before one request; each compaction leaves half as much as the one before.
const MAX_SHRINKS: u32 = 4;
/// The least window that a compaction is made for, tokens.
const MIN_WINDOW: u64 = 1_024;

/// The conversation needs at least a quarter of the window.
fn leaves_room(fixed: u64, window: u64) -> bool {
    fixed <= window / 4 * 3
}

impl Session {
    /// Compacts until the next request uses less of the window than [`CompactionOptions::threshold`]. If a model is to write
    /// the summary, returns what asks it.
    ///
    /// [`CompactionOptions::threshold`]: crate::CompactionOptions::threshold
    pub(super) async fn relieve_pressure(&mut self) -> Result<Option<Box<SummaryRequest>>> {
        let Settings { provider, model, .. } = self.history.settings.clone();
        let facts = self.services.providers.now().facts(&provider, &model);
        let Some(window) = facts.working_window() else { return Ok(None) };
        if let Some(window) = facts.window {
            self.take_smaller_toolset(window).await?;
        }
        let estimated = self.fixed_tokens();
        let scale = self.history.scale(estimated);
        let fixed = scale.count(estimated);
        let CompactionOptions { threshold, below_price_step, .. } = self.services.options.compaction;
        let step = facts.price.and_then(|price| price.step).map(|step| step.above).filter(|_| below_price_step);
        // Without room for a conversation below the step, the window is all that counts.
        let step = step.filter(|above| leaves_room(fixed, *above));
        let working = step.map_or(window, |above| above.min(window));
        let is_full = |tokens: u64| tokens as f64 >= working as f64 * threshold;
        if facts.window.is_some_and(|window| !leaves_room(fixed, window)) {
            return Err(self.cannot_fit(fixed, window, "its instructions and tools"));
        }
        for shrink in 0..MAX_SHRINKS {
            if !is_full(self.history.expected_tokens(estimated)) {
                return Ok(None);
            }
            let room = Room { window: working, fixed, scale, shrink };
            if self.shorten_newest(room).await? && !is_full(self.history.expected_tokens(estimated)) {
                return Ok(None);
            }
            let plan = match compaction::plan(&self.history, Trigger::Threshold, None, Some(room)) {
                Ok(plan) => plan,
                // All of it is recent. The newest results can still be shorter; the Provider will say if it is too much.
                Err(error) if error.code == Code::NothingToDo => continue,
                Err(error) => return Err(error),
            };
            match self.summary(plan, None) {
                Summary::Asked(request) => return Ok(Some(request)),
                Summary::Made(compaction) => self.record(None, (*compaction).into()).await?,
            }
        }
        // An estimate may be a tenth too high.
        let needed = self.history.expected_tokens(estimated);
        if facts.window.is_some_and(|window| needed / 10 * 9 > window) {
            return Err(self.cannot_fit(needed, window, "what may not be compacted"));
        }
        Ok(None)
    }

    /// The summary of this compaction, or what asks the model for it.
    pub(super) fn summary(&self, mut plan: Plan, instructions: Option<&str>) -> Summary {
        let Settings { provider, toolset, .. } = &self.history.settings;
        let author = self.services.options.compaction.author;
        // The model has just written a summary, and it was too long.
        let is_again = self.history.path().last().is_some_and(|it| matches!(it.fact, Fact::HistoryCompaction(_)));
        if author == SummaryAuthor::Pixir || is_again {
            return Summary::Made(Box::new(plan.compaction));
        }
        let connected = match self.services.providers.now().connect(provider) {
            Ok(connected) => connected,
            Err(error) => {
                plan.compaction.limitations.push(format!("no model could be asked: {}", error.message));
                return Summary::Made(Box::new(plan.compaction));
            }
        };
        if author == SummaryAuthor::Auto && !connected.writes_summaries() {
            return Summary::Made(Box::new(plan.compaction));
        }
        let tools = self.services.specs(*toolset);
        let family = self.history.family.as_deref().unwrap_or(self.id.as_str());
        let (history, blobs) = (&self.history, &self.services.blobs);
        let scale = self.history.scale(self.fixed_tokens());
        let author = Author { provider: connected, history, scale, tools, blobs, cache_key: family };
        SummaryRequest::of(author, plan, instructions)
    }

    /// Makes room after the Provider rejected a request as too long. Each attempt leaves half as much as the one before.
    pub(super) async fn make_room(&mut self, attempt: u32, window_before: Option<u64>, tokens: u64) -> Result<()> {
        let Settings { provider, model, .. } = self.history.settings.clone();
        let facts = self.services.providers.now().facts(&provider, &model);
        // The server named its window. The request may only have asked for too long an answer.
        let has_learnt = facts.window != window_before;
        if let Some(window) = facts.window.filter(|_| has_learnt)
            && (tokens as f64) < window as f64 * self.services.options.compaction.threshold
        {
            return Ok(());
        }
        if let Some(window) = facts.window
            && self.take_smaller_toolset(window).await?
        {
            return Ok(());
        }
        // Without any window, the rejected request is the only measure.
        let window = facts.working_window().unwrap_or(tokens).min(tokens.max(MIN_WINDOW));
        let room = self.room_of(window, attempt - 1);
        // The server has just refused a request of this length, so it is not asked to summarize it.
        let is_shorter = self.shorten_newest(room).await?;
        match compaction::plan(&self.history, Trigger::Overflow, None, Some(room)) {
            Ok(plan) => self.record(None, plan.compaction.into()).await,
            Err(error) if error.code == Code::NothingToDo && is_shorter => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Offers the smaller toolset where the larger one leaves no room for a conversation, and the user has chosen neither.
    async fn take_smaller_toolset(&mut self, window: u64) -> Result<bool> {
        let Settings { model, toolset, .. } = &self.history.settings;
        if matches!(toolset, Toolset::Run | Toolset::None) || self.services.options.keeps_toolset {
            return Ok(false);
        }
        let fixed = self.fixed_tokens();
        let scale = self.history.scale(fixed);
        let needed = scale.count(fixed);
        if leaves_room(needed, window) {
            return Ok(false);
        }
        let smaller = prompt::fixed_tokens(&self.history, &self.services.specs(Toolset::Run));
        if !leaves_room(scale.count(smaller), window) {
            return Ok(false);
        }
        let text = format!(
            "{model} has a window of {window} tokens, and instructions and tools need {needed}: it is offered the toolset `run`"
        );
        let turn = self.work.as_ref().and_then(Work::turn).map(|turn| turn.number);
        let change =
            SettingsChanged { toolset: Some(Toolset::Run), reason: Some(text.clone()), ..SettingsChanged::default() };
        self.record(turn, change.into()).await?;
        self.notice(Severity::Warning, NoticeCode::ToolsetReduced.name(), text);
        self.tell_surroundings(turn).await?;
        Ok(true)
    }

    /// Offers no tools, because the model takes none.
    pub(super) async fn drop_tools(&mut self, reason: &str) -> Result<bool> {
        let Settings { model, toolset, .. } = &self.history.settings;
        if *toolset == Toolset::None {
            return Ok(false);
        }
        let text =
            format!("{model} takes no tools ({reason}), so it answers in words, and reads, runs and changes nothing");
        let turn = self.work.as_ref().and_then(Work::turn).map(|turn| turn.number);
        let change =
            SettingsChanged { toolset: Some(Toolset::None), reason: Some(text.clone()), ..SettingsChanged::default() };
        self.record(turn, change.into()).await?;
        self.notice(Severity::Warning, NoticeCode::ToolsetDropped.name(), text);
        self.tell_surroundings(turn).await?;
        Ok(true)
    }

    /// Has requests show less of the results of the newest calls, where those are too long to stay beside a compaction.
    async fn shorten_newest(&mut self, room: Room) -> Result<bool> {
        let results = compaction::too_long(&self.history, room);
        let is_any = !results.is_empty();
        for (seq, bytes) in results {
            self.record(None, Label { seq, shortened_to: Some(bytes), ..Label::default() }.into()).await?;
        }
        Ok(is_any)
    }

    /// Has requests leave out what the server has refused for its size, and says so. Returns whether there was anything.
    pub(super) async fn lighten(&mut self, refused: &Refused) -> Result<bool> {
        let Some(Lighter { labels, told }) = lighter(&self.history, refused) else { return Ok(false) };
        for label in labels {
            self.record(None, label.into()).await?;
        }
        self.notice(Severity::Warning, NoticeCode::LeftOut.name(), told);
        Ok(true)
    }

    pub(super) fn fixed_tokens(&self) -> u64 {
        prompt::fixed_tokens(&self.history, &self.services.specs(self.history.settings.toolset))
    }

    /// The room of a compaction on request.
    pub(super) fn room(&self) -> Option<Room> {
        let Settings { provider, model, .. } = &self.history.settings;
        let window = self.services.providers.now().facts(provider, model).working_window()?;
        Some(self.room_of(window, 0))
    }

    fn room_of(&self, window: u64, shrink: u32) -> Room {
        let fixed = self.fixed_tokens();
        let scale = self.history.scale(fixed);
        Room { window, fixed: scale.count(fixed), scale, shrink }
    }

    fn cannot_fit(&self, tokens: u64, window: u64, what: &str) -> Error {
        let Settings { model, toolset, .. } = &self.history.settings;
        let message = format!("the request does not fit: {what} need about {tokens} of the {window} tokens of {model}");
        Error::new(Code::ContextOverflow, message, smaller(*toolset)).with("tokens", tokens).with("window", window)
    }
}
