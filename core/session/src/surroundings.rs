//! What the model knows about its surroundings is kept current: a change is appended to the conversation.

use std::sync::Arc;
use std::time::Duration;

use super::Session;
use super::folders;
use super::work::Work;
use context::environment::{self, Posture};
use context::sketch;
use protocol::error::{Code, Error, Result};
use protocol::event::{ContextChanged, ContextDocument, Delivery, GitState, Surroundings};
use protocol::input::Accepted;

/// A Session that began less than this ago has just told of the repository.
const JUST_NOW: Duration = Duration::from_secs(2);
/// How long the Session waits for the file system, which may not answer.
const MOST_WAIT: Duration = Duration::from_millis(100);
/// What the model reads when the user takes the role away.
const NO_ROLE: &str = "your role has ended: what it told you no longer holds";

impl Session {
    /// Appends what has changed since the model was told last. It is called between two requests, when every call has its
    /// result, so the item stands where a message of the user could. The repository is looked at once a Turn.
    pub(super) async fn tell_surroundings(&mut self, turn: Option<u32>) -> Result<()> {
        let Some(running) = self.work.as_ref().and_then(Work::turn) else { return Ok(()) };
        let seen = running.repository.clone();
        let settings = &self.history.settings;
        let attended = self.services.options.can_ask;
        let mode = self.services.standing.mode();
        let posture = Posture { mode, toolset: settings.toolset, attended };
        let told = self.history.told_surroundings(&posture.with(None));
        let git = match seen {
            Some(seen) => seen,
            None => self.look_at_repository(told.git.clone()).await,
        };
        if let Some(running) = self.work.as_mut().and_then(Work::turn_mut) {
            running.repository = Some(git.clone());
        }
        let (folders, of_folders) = self.look_at_folders(told.folders.clone()).await;
        let role = self.role.as_ref().map(|role| role.name.clone());
        let roles = self.roles.clone().filter(|_| self.services.agents.is_some());
        let surroundings = Surroundings { role, roles, folders, ..posture.with(git) };
        let mut documents = environment::changes(&told, &surroundings);
        if told.folders != surroundings.folders {
            documents.extend(of_folders);
        }
        if told.role != surroundings.role {
            let text = self.role.as_ref().map_or(NO_ROLE, |role| role.body.as_str());
            let named = self.role.as_ref().map_or(String::new(), |role| format!(" {}", role.name));
            documents.push(ContextDocument { source: format!("role{named}"), text: text.to_owned() });
        }
        if documents.is_empty() {
            return Ok(());
        }
        self.record(turn, ContextChanged { surroundings, documents }.into()).await
    }

    /// Records a text about the Turn that the model reads next.
    pub(super) async fn tell(&mut self, source: &str, text: &str) -> Result<()> {
        let turn = self.work.as_ref().and_then(Work::turn).map(|turn| turn.number);
        let settings = &self.history.settings;
        let attended = self.services.options.can_ask;
        let posture = Posture { mode: self.services.standing.mode(), toolset: settings.toolset, attended };
        let surroundings = self.history.told_surroundings(&posture.with(None));
        let documents = vec![ContextDocument { source: source.into(), text: text.into() }];
        self.record(turn, ContextChanged { surroundings, documents }.into()).await
    }

    /// The repository as it is now, or as the model was told where there is no need to look or no answer.
    async fn look_at_repository(&self, told: Option<GitState>) -> Option<GitState> {
        if !self.may_have_another_repository() {
            return told;
        }
        let workspace = Arc::clone(&self.services.workspace);
        let look = task::spawn_blocking(move || environment::git_state(workspace.root()));
        match tokio::time::timeout(MOST_WAIT, look).await {
            Ok(Ok(looked)) => looked,
            Ok(Err(_)) | Err(_) => told,
        }
    }

    /// The folders beside the workspace as they are now, or as the model knows them where the file system does not answer.
    async fn look_at_folders(&self, told: Option<String>) -> (Option<String>, Vec<ContextDocument>) {
        let services = self.services.clone();
        let look = task::spawn_blocking(move || folders::told(&services));
        match tokio::time::timeout(MOST_WAIT, look).await {
            Ok(Ok(looked)) => looked,
            Ok(Err(_)) | Err(_) => (told, Vec::new()),
        }
    }

    /// Starts a Turn in which the model writes AGENTS.md.
    pub(super) async fn begin_init(&mut self, input: &'static str) -> Result<Accepted> {
        let workspace = Arc::clone(&self.services.workspace);
        let sketched = task::spawn_blocking(move || sketch::prompt(&workspace)).await;
        let prompt =
            sketched.map_err(|e| Error::new(Code::CommandFailed, format!("sketch AGENTS.md: {e}"), "try again"))?;
        self.begin_turn(input, prompt.into(), Delivery::Prompt).await
    }

    /// The repository may stand otherwise than the model was told. A Log of an older build never told of it, and goes on
    /// so.
    fn may_have_another_repository(&self) -> bool {
        let began = self.history.entries().first().map(|first| first.ts);
        let age = began.and_then(|began| Duration::try_from(jiff::Timestamp::now().duration_since(began)).ok());
        let is_new = self.history.turns <= 1 && age.is_some_and(|age| age < JUST_NOW);
        self.history.started.surroundings.is_some() && !is_new
    }
}
