//! Carries out what `update` asks for: files, background work, Inputs for the Session.

use pixir_core::Harness;

use super::App;
use super::background::BackgroundEvent;
use super::editor::Borrower;
use crate::overlay::sessions::Work;
use crate::state::{Connection, Effect, OnHarness};
use crate::theme::Theme;
use crate::transcript::reading::find;
use crate::update::{self, settings};

impl App {
    pub(crate) async fn perform(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            let is_for_session = matches!(
                effect,
                Effect::Send(_)
                    | Effect::Deliver { .. }
                    | Effect::OnHarness(OnHarness::Open(_) | OnHarness::OpenNew)
                    | Effect::AddFolder { .. }
            );
            if self.state.replay.is_some() && is_for_session {
                self.state.say("this is a replay; `pixir resume` continues the session");
                continue;
            }
            match effect {
                Effect::Send(input) => self.send(input).await,
                Effect::OnHarness(work) => match self.harness.clone() {
                    Some(harness) => Box::pin(self.perform_on(harness, work)).await,
                    None => self.wait_for_harness(work),
                },
                // The Session is still opening.
                Effect::Deliver { .. } if self.handle.is_none() && self.is_opening() => {
                    self.until_open.push_back(effect);
                }
                Effect::Deliver { input, mentions } => self.deliver(input, mentions),
                Effect::MentionFile { path, mention } => self.mention_file(path, mention),
                Effect::ReadRepository => self.read_repository(),
                Effect::LoadSettings => self.load_settings(),
                Effect::SaveSettings(settings, place) => self.save_settings(settings, place),
                Effect::UnsetSetting(key, place) => self.unset_setting(key, place),
                Effect::Connect(order) => self.order(order),
                Effect::OpenPalette => {
                    self.state.uses.load(self.saved_uses());
                    let effects = update::read::palette(&mut self.state);
                    Box::pin(self.perform(effects)).await;
                }
                Effect::Examine => self.examine(),
                Effect::ReadLog => self.read_log(),
                Effect::FollowLog => self.follow_log(),
                Effect::AddFolder { path, access, holds } => self.add_folder(&path, access, holds).await,
                Effect::Export { format, file } => self.export(format, file.as_deref()),
                Effect::Find { number, text } => {
                    let hay = find::haystack(&self.state.transcript, &self.state.look.more.remedies);
                    self.spawn_blocking(move || BackgroundEvent::Matches(number, find::find(&hay, &text)));
                }
                Effect::Copy(text) => self.copy(text),
                Effect::ListThemes => {
                    let names = Theme::names(self.themes_folder.as_deref());
                    let all = names.into_iter().map(|name| {
                        let theme = self.load_theme(&name).ok();
                        (name, theme)
                    });
                    let all = all.collect();
                    let effects = settings::on_themes(&mut self.state, all);
                    Box::pin(self.perform(effects)).await;
                }
                Effect::SetTheme(name) => {
                    let loaded = self.load_theme(&name);
                    settings::on_theme_chosen(&mut self.state, &name, loaded);
                }
                Effect::RestoreTheme(name) => {
                    let loaded = self.load_theme(&name);
                    settings::use_theme(&mut self.state, &name, loaded);
                }
                Effect::FindFiles(letters) => self.find_files(letters),
                Effect::Edit => self.lends_terminal = Some(Borrower::Draft),
                Effect::MergeByHand { path, text } => self.lends_terminal = Some(Borrower::Merge { path, text }),
                Effect::EditFile { path, line } => self.lends_terminal = Some(Borrower::File { path, line }),
                Effect::Quit => self.done = true,
            }
        }
    }

    /// Does such work once the Harness is there.
    fn wait_for_harness(&mut self, work: OnHarness) {
        match (work, &self.state.session.connection) {
            // Without a Harness no image can be read, so the pasted path stays text.
            (OnHarness::AttachFile { pasted, .. }, Connection::Failed(_)) => self.state.composer.insert(&pasted),
            (work, _) => self.until_connected.push(work),
        }
    }

    async fn perform_on(&mut self, harness: Harness, work: OnHarness) {
        match work {
            // What a layer shows is of the Session on the screen.
            OnHarness::Load(_) | OnHarness::Stored(Work::List(_)) if self.handle.is_none() && self.is_opening() => {
                self.until_open.push_back(work.into());
            }
            OnHarness::AttachFile { path, pasted } => self.attach_file(harness, self.typed_path(path), pasted),
            OnHarness::AttachClipboard => self.attach_clipboard(harness),
            OnHarness::OpenNew => self.reopen(harness, |harness| harness.start()).await,
            OnHarness::Open(id) => self.reopen(harness, move |harness| harness.resume_or_read(&id)).await,
            OnHarness::ReadDiff(want) => self.read_diff(&harness, want),
            OnHarness::LoadComparison { left, right } => self.load_comparison(&harness, &left, &right),
            OnHarness::Load(load) => self.load(harness, load),
            OnHarness::LoadModels => self.load_models(harness),
            OnHarness::PlanWorkflow(order) => self.plan_workflow(harness, *order),
            OnHarness::LoadCandidates(argument) => self.load_candidates(harness, argument),
            OnHarness::Stored(work) => self.work_on_stored(harness, work).await,
            OnHarness::ReadPast(path) => self.read_past(path),
            OnHarness::EnterAgent { path, from_list } => self.enter_agent(harness, path, from_list),
            OnHarness::ReadPrompt { name, args } => self.read_prompt(harness, name, args),
            OnHarness::LoadOffers => {
                if !self.state.uses.is_known() {
                    self.state.uses.load(self.saved_uses());
                }
                self.load_offers(harness);
            }
        }
    }
}
