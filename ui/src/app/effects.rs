//! Carries out what `update` asks for: files, background work, Inputs for the Session.

use super::App;
use super::background::BackgroundEvent;
use super::editor::Borrower;
use crate::overlay::sessions::Work;
use crate::state::{Connection, Effect};
use crate::theme::Theme;
use crate::transcript::reading::find;
use crate::update::{self, settings};

impl App {
    pub(crate) async fn perform(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            // These need the Harness, and wait until it is connected.
            let needs_harness = match effect {
                Effect::AttachFile { .. }
                | Effect::AttachClipboard
                | Effect::OpenNew
                | Effect::Open(_)
                | Effect::ReadDiff(_)
                | Effect::LoadComparison { .. }
                | Effect::Load(_)
                | Effect::LoadModels
                | Effect::PlanWorkflow(_)
                | Effect::LoadCandidates(_)
                | Effect::Stored(_)
                | Effect::ReadPast(_)
                | Effect::EnterAgent { .. }
                | Effect::ReadPrompt { .. }
                | Effect::LoadOffers => true,
                Effect::Send(_)
                | Effect::Deliver { .. }
                | Effect::Find { .. }
                | Effect::MentionFile { .. }
                | Effect::FindFiles(_)
                | Effect::Edit
                | Effect::Examine
                | Effect::OpenPalette
                | Effect::ReadLog
                | Effect::FollowLog
                | Effect::AddFolder { .. }
                | Effect::Export { .. }
                | Effect::EditFile { .. }
                | Effect::MergeByHand { .. }
                | Effect::Copy(_)
                | Effect::Connect(_)
                | Effect::ListThemes
                | Effect::LoadSettings
                | Effect::ReadRepository
                | Effect::SaveSettings(..)
                | Effect::UnsetSetting(..)
                | Effect::SetTheme(_)
                | Effect::RestoreTheme(_)
                | Effect::Quit => false,
            };
            let is_for_session = matches!(
                effect,
                Effect::Send(_) | Effect::Deliver { .. } | Effect::Open(_) | Effect::OpenNew | Effect::AddFolder { .. }
            );
            if self.state.replay.is_some() && is_for_session {
                self.state.say("this is a replay; `pixir resume` continues the session");
                continue;
            }
            // Without a Harness no image can be read, so the pasted path stays text.
            if let (Effect::AttachFile { pasted, .. }, Connection::Failed(_)) =
                (&effect, &self.state.session.connection)
            {
                self.state.composer.insert(pasted);
                continue;
            }
            if self.harness.is_none() && needs_harness {
                self.until_connected.push(effect);
                continue;
            }
            match effect {
                Effect::Send(input) => self.send(input).await,
                // The Session is still opening; what a layer shows is of the Session on the screen.
                Effect::Deliver { .. } | Effect::Load(_) | Effect::Stored(Work::List(_))
                    if self.handle.is_none() && self.is_opening() =>
                {
                    self.until_open.push_back(effect);
                }
                Effect::Deliver { input, mentions } => self.deliver(input, mentions),
                Effect::AttachFile { path, pasted } => self.attach_file(self.typed_path(path), pasted),
                Effect::MentionFile { path, mention } => self.mention_file(path, mention),
                Effect::AttachClipboard => self.attach_clipboard(),
                Effect::OpenNew => self.reopen(|harness| harness.start()).await,
                Effect::Open(id) => self.reopen(move |harness| harness.resume_or_read(&id)).await,
                Effect::ReadDiff(want) => self.read_diff(want),
                Effect::LoadComparison { left, right } => self.load_comparison(&left, &right),
                Effect::ReadRepository => self.read_repository(),
                Effect::Load(load) => self.load(load),
                Effect::LoadModels => self.load_models(),
                Effect::LoadSettings => self.load_settings(),
                Effect::SaveSettings(settings, place) => self.save_settings(settings, place),
                Effect::UnsetSetting(key, place) => self.unset_setting(key, place),
                Effect::Connect(order) => self.order(order),
                Effect::PlanWorkflow(order) => self.plan_workflow(*order),
                Effect::LoadCandidates(argument) => self.load_candidates(argument),
                Effect::OpenPalette => {
                    self.state.uses.load(self.saved_uses());
                    let effects = update::read::palette(&mut self.state);
                    Box::pin(self.perform(effects)).await;
                }
                Effect::Stored(work) => self.work_on_stored(work).await,
                Effect::ReadPast(path) => self.read_past(path),
                Effect::EnterAgent { path, from_list } => self.enter_agent(path, from_list),
                Effect::Examine => self.examine(),
                Effect::ReadLog => self.read_log(),
                Effect::FollowLog => self.follow_log(),
                Effect::AddFolder { path, holds } => self.add_folder(&path, holds).await,
                Effect::Export { format, file } => self.export(format, file.as_deref()),
                Effect::LoadOffers => {
                    if !self.state.uses.is_known() {
                        self.state.uses.load(self.saved_uses());
                    }
                    self.load_offers();
                }
                Effect::ReadPrompt { name, args } => self.read_prompt(name, args),
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
}
