//! What a Session can search: past Sessions of the workspace, memories and skills.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use crate::contributions;
use crate::roles::{self, Role};
use crate::servers::{self, ProjectServer};
use crate::skills::resources::{self, Resource};
use crate::skills::{Skill, activation, found, index};
use crate::templates::{self, Template};
use crate::workflows::{self, Workflows};
use config::mcp::McpServer;
use files::workspace::Workspace;
use permissions::repository::Leads;
use protocol::error::Result;
use protocol::event::{ActivatedBy, Entry, Fact, HistoryCompaction, SessionId, SkillActivation, SkillIndex};
use protocol::input::Message;
use protocol::trust::{Contributions, Standing};
use storage::log;
use storage::store::{Place, Summary, summaries};
use storage::trust::{Trust, TrustDecision, Trusted};

/// The most text around a match, characters.
const AROUND: usize = 160;

/// The sources that a Session searches. They are read anew each time: the Logs are the truth, and there is no index.
#[derive(Debug, Clone, Default)]
pub struct Library {
    /// The folder of the workspace's Logs.
    pub logs: PathBuf,
    /// The workspace.
    pub workspace: Option<Arc<Workspace>>,
    /// What the user decided about workspaces.
    pub trust: Option<Trust>,
    /// The workspace counts as trusted, whatever the user decided.
    pub is_trusted: bool,
    /// The user's own MCP servers that start in the workspace, which may hold programs for them.
    pub own_servers: BTreeMap<String, McpServer>,
    /// The folders of the user's skills, the first one first.
    pub skill_folders: Vec<PathBuf>,
    /// The folder of the user's prompt templates.
    pub user_folder: Option<PathBuf>,
    /// The Session that searches.
    pub session: Option<SessionId>,
}

/// A text in a Log that matches a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The id of the Session.
    pub session: String,
    /// The `seq` of the entry.
    pub seq: u64,
    /// The time of the entry, to the minute.
    pub when: String,
    /// The author of the text: `person`, `model`, `summary` or `memory`.
    pub who: &'static str,
    /// The text around the match, on one line.
    pub text: String,
}

/// A memory that has not been forgotten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remembered {
    /// The id of the memory.
    pub id: String,
    /// When it was recorded, to the minute.
    pub when: String,
    /// The text of the memory.
    pub text: String,
}

impl Library {
    /// Returns the skills of the workspace and of the user.
    pub fn skills(&self) -> Vec<Skill> {
        found::find(self.workspace.as_deref(), &self.trusted(), &self.skill_folders)
    }

    /// Reads a skill for an activation.
    ///
    /// # Errors
    /// As [`activation::activate`].
    pub fn activate(&self, name: &str, args: &str, by: ActivatedBy) -> Result<SkillActivation> {
        activation::activate(&self.skills(), self.workspace.as_deref(), &self.trusted(), (name, args), by)
    }

    /// The text of a skill that a role names.
    ///
    /// # Errors
    /// As [`activation::activate`].
    pub fn skill_for_role(&self, name: &str) -> Result<String> {
        Ok(self.activate(name, "", ActivatedBy::User)?.body)
    }

    /// A skill's text, for its user to look at.
    ///
    /// # Errors
    /// As [`found::text_of`].
    pub fn text_of(&self, skill: &Skill) -> Result<String> {
        found::text_of(skill, self.workspace.as_deref(), &self.trusted())
    }

    /// Reads a file of a skill's folder, or lists a folder of it.
    ///
    /// # Errors
    /// As [`resources::resource`].
    pub fn resource(&self, name: &str, path: &str) -> Result<Resource> {
        resources::resource(&self.skills(), self.workspace.as_deref(), &self.trusted(), (name, path))
    }

    /// The skills that a model may use, as the model reads of them.
    pub fn index(&self) -> SkillIndex {
        index::of(&self.skills())
    }

    /// The prompt templates of the workspace and of the user.
    pub fn templates(&self) -> Vec<Template> {
        templates::find(self.workspace.as_deref(), &self.trusted(), self.user_folder.as_deref())
    }

    /// The roles of agents: those that pixir has, the user's and the workspace's.
    pub fn roles(&self) -> Vec<Role> {
        roles::found::find(self.workspace.as_deref(), &self.trusted(), self.user_folder.as_deref())
    }

    /// The workflows: those that pixir has, the user's, those of skills and of the workspace.
    pub fn workflows(&self) -> Workflows {
        let trusted = self.trusted();
        workflows::find(self.workspace.as_deref(), &trusted, self.user_folder.as_deref(), &self.skills())
    }

    /// The MCP servers that the workspace brings along.
    pub fn servers(&self) -> Vec<ProjectServer> {
        self.workspace.as_deref().map_or(Vec::new(), |it| servers::of_workspace(it, &self.trusted()))
    }

    /// How a server of the user that starts in the workspace stands there.
    pub fn standing_of_own(&self, name: &str) -> Standing {
        let found = self.workspace.as_deref().zip(self.own_servers.get(name));
        found.map_or(Standing::New, |(workspace, it)| servers::own(name, it, workspace, &self.trusted()).standing)
    }

    /// The roles that a model may give to agents, besides those that pixir has by itself.
    pub fn roles_for_model(&self) -> Option<String> {
        roles::list_for_model(&self.roles())
    }

    /// The message that a template makes.
    ///
    /// # Errors
    /// As [`templates::expand`].
    pub fn expand(&self, name: &str, args: &str) -> Result<Message> {
        templates::expand(&self.templates(), name, args)
    }

    /// What the workspace brings along, and how it stands.
    pub fn contributions(&self) -> Contributions {
        let Some(workspace) = &self.workspace else { return Contributions::default() };
        let trusted = self.trusted();
        let own = self.own_servers.iter().map(|(name, it)| servers::own(name, it, workspace, &trusted));
        Contributions {
            workspace: workspace.root().display().to_string(),
            folder: None,
            all: own.chain(contributions::find(workspace, &trusted)).collect(),
            trusted_for_run: self.is_trusted,
        }
    }

    /// Which of what the workspace brings along is in force.
    /// Whether the user trusts that the repository of the workspace leads to these folders.
    pub fn trusts_leads(&self, leads: &Leads) -> bool {
        contributions::standing_of(leads, &self.trusted()).0 == Standing::InForce
    }

    fn trusted(&self) -> Trusted {
        match (&self.trust, &self.workspace) {
            (Some(trust), Some(it)) if !self.is_trusted => trust.of(it.root()),
            (None, Some(_)) if !self.is_trusted => Trusted::By(TrustDecision::default()),
            (_, _) => Trusted::Everything,
        }
    }

    /// Returns the Sessions of the workspace that have a conversation, newest first.
    pub fn sessions(&self) -> Vec<Summary> {
        summaries(&self.logs)
    }

    /// Returns a Session's entries; none when its Log cannot be read.
    fn entries(&self, id: &str) -> Vec<std::sync::Arc<Entry>> {
        let place = SessionId::parse(id).map(|id| Place::new(&self.logs, id));
        place.and_then(|place| log::read(&place.log())).map(|contents| contents.entries).unwrap_or_default()
    }

    /// Finds up to `most` texts that hold all of these words, in any order and case, newest Session first. Of the own
    /// Session, only what a compaction has replaced.
    pub fn search(&self, words: &str, most: usize, is_cancelled: &dyn Fn() -> bool) -> Vec<Found> {
        let words: Vec<String> = words.split_whitespace().map(str::to_lowercase).collect();
        let mut found = Vec::new();
        for summary in self.sessions() {
            if found.len() >= most || is_cancelled() {
                break;
            }
            let is_own = self.session.as_ref().is_some_and(|own| own.as_str() == summary.id);
            if !self.mentions(&summary.id, &words) {
                continue;
            }
            let entries = self.entries(&summary.id);
            // The model still sees the rest of its own conversation.
            let last = last_compaction(&entries);
            let is_gone = |entry: &&Arc<Entry>| !is_own || last.is_some_and(|it| it.has_replaced(entry.seq));
            let hits = entries.iter().rev().filter(is_gone).filter_map(|entry| {
                let (who, text) = said(&entry.fact)?;
                let folded = text.to_lowercase();
                let at = words.iter().map(|word| folded.find(word)).collect::<Option<Vec<_>>>()?.into_iter().min()?;
                Some(Found {
                    session: summary.id.clone(),
                    seq: entry.seq,
                    when: minute(entry),
                    who,
                    text: around(text, &folded, at),
                })
            });
            found.extend(hits.take(most - found.len()));
        }
        found
    }

    /// Whether a Log contains the words at all. Most do not, and scanning bytes is cheaper than decoding entries.
    fn mentions(&self, id: &str, words: &[String]) -> bool {
        let Ok(id) = SessionId::parse(id) else { return false };
        let Ok(bytes) = std::fs::read(Place::new(&self.logs, id).log()) else { return false };
        let folded = String::from_utf8_lossy(&bytes).to_lowercase();
        // JSON escapes quotes and control characters, so a word that has them does not match the raw Log.
        words.iter().filter(|word| word.chars().all(char::is_alphanumeric)).all(|word| folded.contains(word.as_str()))
    }

    /// Returns the memories, oldest first.
    pub fn remembered(&self) -> Vec<Remembered> {
        let mut all: BTreeMap<String, (jiff::Timestamp, Option<Remembered>)> = BTreeMap::new();
        let key = "\"memory_fact\"";
        for summary in self.sessions() {
            let path = SessionId::parse(&summary.id).map(|id| Place::new(&self.logs, id).log());
            let has_any = path.is_ok_and(|path| {
                std::fs::read(path).is_ok_and(|bytes| memchr::memmem::find(&bytes, key.as_bytes()).is_some())
            });
            if !has_any {
                continue;
            }
            for entry in self.entries(&summary.id) {
                let Fact::MemoryFact(it) = &entry.fact else { continue };
                let text = it.text.clone();
                let now = text.map(|text| Remembered { id: it.id.clone(), when: minute(&entry), text });
                match all.get(&it.id) {
                    Some((ts, _)) if *ts > entry.ts => {}
                    _ => drop(all.insert(it.id.clone(), (entry.ts, now))),
                }
            }
        }
        let mut left: Vec<_> = all.into_values().filter_map(|(ts, it)| Some((ts, it?))).collect();
        left.sort_by_key(|(ts, _)| *ts);
        left.into_iter().map(|(_, it)| it).collect()
    }
}

/// The last compaction of a Log.
fn last_compaction(entries: &[Arc<Entry>]) -> Option<&HistoryCompaction> {
    entries.iter().rev().find_map(|entry| match &entry.fact {
        Fact::HistoryCompaction(it) => Some(&**it),
        _ => None,
    })
}

fn minute(entry: &Entry) -> String {
    entry.ts.strftime("%Y-%m-%d %H:%M").to_string()
}

fn said(fact: &Fact) -> Option<(&'static str, &str)> {
    match fact {
        Fact::UserMessage(it) => Some(("user", &it.text)),
        Fact::UserCommand(it) if it.send_to_model => Some(("user", &it.command)),
        Fact::AssistantMessage(it) => Some(("model", &it.text)),
        Fact::HistoryCompaction(it) => Some(("summary", &it.summary)),
        Fact::BranchSummary(it) => Some(("summary", &it.summary)),
        Fact::MemoryFact(it) => Some(("memory", it.text.as_deref()?)),
        _ => None,
    }
}

/// Returns one line of text around the match.
fn around(text: &str, folded: &str, at: usize) -> String {
    // Case folding may change lengths, so the offset is only approximate.
    let before = folded[..at].chars().count();
    let from = before.saturating_sub(AROUND / 4);
    let cut: String = text.chars().skip(from).take(AROUND).collect();
    let line = cut.split_whitespace().collect::<Vec<_>>().join(" ");
    let (start, end) = (if from > 0 { "…" } else { "" }, if text.chars().count() > from + AROUND { "…" } else { "" });
    format!("{start}{line}{end}")
}
