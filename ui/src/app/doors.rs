//! What the program around the interface does for a command: checks, the log file, exports; and candidates of arguments.

use std::path::PathBuf;

use pixir_core::event::SessionId;
use pixir_core::input::{FolderAccess, RuleReach};
use pixir_core::text::human::human_size;
use pixir_core::{Error, Harness, Input};

use super::background::BackgroundEvent;
use super::connecting::MODELS_TIMEOUT;
use super::{App, log_tail};
use crate::input::argument::{Argument, Candidate, ExportFormat};
use crate::overlay::Loaded;
use crate::overlay::log::{LogTail, LogView};
use crate::overlay::report::ReportView;
use crate::render::figures::age;
use crate::state::uses::{Counts, merged};
use crate::theme::Theme;
use crate::update::{arguments, refused};

/// An export that has ended: the new file and its bytes.
pub(super) type Exported = Result<(PathBuf, u64), Error>;

impl App {
    /// Checks this machine.
    pub(super) fn examine(&mut self) {
        match &self.program.examine {
            Some(examine) => {
                let checks = examine();
                self.spawn(async move {
                    let checks = checks.await;
                    BackgroundEvent::Loaded(Loaded::new(move |view: &mut ReportView| view.show_checks(&checks)))
                });
            }
            None => self.state.say("the checks are not available here; `pixir doctor` runs them"),
        }
    }

    /// Reads the end of the log file.
    pub(super) fn read_log(&mut self) {
        let Some(path) = self.program.log.clone() else {
            self.state.say("pixir writes no log file here");
            return;
        };
        self.log_bytes = self.log_size();
        self.spawn_blocking(move || {
            let shown = path.display().to_string();
            let (lines, error) = match log_tail::read(&path) {
                Ok((lines, _)) => (lines, None),
                Err(why) => (Vec::new(), Some(why)),
            };
            let tail = LogTail { path: shown, lines, error };
            BackgroundEvent::Loaded(Loaded::new(move |view: &mut LogView| view.show(&tail)))
        });
    }

    /// Reads the log file again, if it has grown.
    pub(super) fn follow_log(&mut self) {
        if self.log_bytes != self.log_size() {
            self.read_log();
        }
    }

    fn log_size(&self) -> u64 {
        self.program.log.as_ref().and_then(|path| std::fs::metadata(path).ok()).map_or(0, |it| it.len())
    }

    /// Reads again what the layer on top shows, because it may have grown.
    pub(super) async fn follow_file(&mut self) {
        let effects = self.state.overlays.last_mut().map_or_else(Vec::new, |overlay| overlay.view_mut().follow());
        self.perform(effects).await;
    }

    /// Lets the Session read a folder or work on it.
    pub(super) async fn add_folder(&mut self, path: &str, access: FolderAccess, holds: RuleReach) {
        let folder = self.program.path(path, &self.state.session.workspace);
        self.send(Input::AddFolder { path: folder.display().to_string(), access, holds }).await;
    }

    /// The path of a file that the user wants to attach.
    pub(super) fn typed_path(&self, path: String) -> String {
        if path.starts_with('~') {
            self.program.path(&path, &self.state.session.workspace).display().to_string()
        } else {
            path
        }
    }

    /// Writes the Session to a new file.
    pub(super) fn export(&mut self, format: ExportFormat, file: Option<&str>) {
        let (Some(export), Some(harness), Some(id)) =
            (self.program.export.clone(), self.harness.clone(), self.state.session.id.clone())
        else {
            self.state.say("exports are not available here; `pixir sessions export last` writes one");
            return;
        };
        if self.state.history.head().is_none() {
            self.state.say("nothing to export yet");
            return;
        }
        let name =
            file.map_or_else(|| file_name(&id, self.state.history.settings.name.as_deref(), format), str::to_owned);
        let path = self.program.path(&name, &self.state.session.workspace);
        self.spawn_blocking(move || {
            let written = export(&harness, &id, format, &path);
            BackgroundEvent::Exported(written.map(|bytes| (path, bytes)))
        });
    }

    pub(super) fn on_exported(&mut self, exported: Exported) {
        match exported {
            Ok((path, bytes)) => {
                let path = path.strip_prefix(&self.state.session.workspace).unwrap_or(&path).display().to_string();
                self.state.say(format!("wrote {path} ({})", human_size(bytes)));
            }
            Err(error) => {
                let why = refused::because(&self.state, &error);
                refused::refuse_late(&mut self.state, "export", why);
            }
        }
    }

    /// Loads what can complete an argument.
    pub(super) fn load_candidates(&mut self, harness: Harness, argument: Argument) {
        match argument {
            Argument::Session => {
                let current = self.state.session.id.clone();
                let now = self.state.now.wall;
                self.spawn_on_session(move || {
                    let is_other = |id: &str| current.as_ref().is_none_or(|it| it.as_str() != id);
                    let sessions = harness.sessions().into_iter().filter(|it| is_other(&it.id));
                    let candidate = |it: pixir_core::store::Summary| {
                        let ago = now.saturating_sub(since_1970(it.last_activity.as_millisecond()));
                        Candidate::new(it.id.clone(), format!("{} · {}", it.title(), age(ago)))
                    };
                    BackgroundEvent::Candidates(argument, sessions.map(candidate).collect())
                });
            }
            Argument::Model => {
                let providers = harness.providers();
                self.spawn(async move {
                    let models = providers.models(MODELS_TIMEOUT).await;
                    let candidates = models.into_iter().map(|it| Candidate::new(it, "")).collect();
                    BackgroundEvent::Candidates(argument, candidates)
                });
            }
            Argument::Skill => {
                self.spawn_blocking(move || {
                    let skills = harness.skills().into_iter();
                    let usable = skills.filter(|it| it.is_active() && it.fields.user_invocable);
                    let candidates = usable.map(|it| Candidate::new(it.name, it.description)).collect();
                    BackgroundEvent::Candidates(argument, candidates)
                });
            }
            Argument::Theme => {
                let current = self.state.look.theme_name.clone();
                let mut names = Theme::names(self.themes_folder.as_deref());
                names.sort_by_key(|name| *name != current);
                let about = |name: &str| if name == current { "current" } else { "" };
                let candidates = names.iter().map(|name| Candidate::new(name.as_str(), about(name))).collect();
                arguments::on_loaded(&mut self.state, argument, candidates);
            }
            Argument::Text
            | Argument::Words(_)
            | Argument::Turn
            | Argument::File
            | Argument::Folder
            | Argument::Command => {}
        }
    }
}

impl App {
    /// How often the user has chosen each action, in all Sessions.
    pub(super) fn saved_uses(&self) -> Counts {
        self.harness.as_ref().map(saved_uses).unwrap_or_default()
    }

    /// Adds the uses since the last time to those in the file.
    pub(super) fn hand_over_uses(&mut self) {
        let Some(harness) = self.harness.clone() else { return };
        let Some(fresh) = self.state.uses.take_fresh() else { return };
        self.saver.hand_over(move || {
            let text = serde_json::json!(merged(saved_uses(&harness), &fresh)).to_string();
            if let Err(e) = harness.store().keep_presenter_state(&text) {
                tracing::warn!("cannot save how often commands are used: {e}");
            }
        });
    }
}

fn saved_uses(harness: &Harness) -> Counts {
    let text = harness.store().presenter_state();
    text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
}

pub(super) fn since_1970(milliseconds: i64) -> std::time::Duration {
    std::time::Duration::from_millis(u64::try_from(milliseconds).unwrap_or(0))
}

/// `pixir-my-work.md`: the Session's name, or its id.
fn file_name(id: &SessionId, name: Option<&str>, format: ExportFormat) -> String {
    let name = name.unwrap_or(id.as_str());
    let safe: String =
        name.chars().map(|c| if c.is_alphanumeric() || c == '-' || c == '_' { c } else { '-' }).collect();
    let safe = safe.trim_matches('-').chars().take(60).collect::<String>();
    format!("pixir-{}.{}", if safe.is_empty() { id.as_str() } else { safe.as_str() }, format.ending())
}
