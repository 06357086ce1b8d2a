//! An index with one line for each Session, so that a list needs to read no Log. A line that is out of date is updated
//! from its Log.

use std::collections::HashMap;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Place, write_whole};
use crate::log::{self, Position};
use crate::regular;
use protocol::event::{Cost, Delivery, Entry, Fact, SessionId, Usage, WorkflowEvent};

const FILE: &str = "index.jsonl";
/// The most characters of a first prompt that a summary holds.
const MAX_PROMPT: usize = 200;

/// A Session's summary, available without opening the Session.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The Session's id.
    pub id: String,
    /// The name that the user gave it.
    pub name: Option<String>,
    /// The root of its workspace.
    pub workspace: String,
    /// The first paragraph of the first prompt, as one line; `None` if there was no prompt.
    pub first_prompt: Option<String>,
    /// The model, as `provider/model`.
    pub model: String,
    /// When the Session started.
    #[serde(serialize_with = "protocol::event::to_the_millisecond")]
    pub created: Timestamp,
    /// When the last Entry was recorded.
    #[serde(serialize_with = "protocol::event::to_the_millisecond")]
    pub last_activity: Timestamp,
    /// Number of Entries.
    pub entries: u64,
    /// Number of Turns.
    pub turns: u32,
    /// Number of calls.
    pub tool_calls: u64,
    /// Tokens of all requests.
    pub usage: Usage,
    /// Cost of all requests.
    pub cost: Cost,
    /// The Head.
    pub head: Option<u64>,
    /// The size of its Log, bytes.
    pub bytes: u64,
    /// The Session that it was forked from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<String>,
    /// The Entry of that Session that it continues from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forked_at: Option<u64>,
    /// The first Session of its family.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub family: Option<String>,
    /// The Session that started it, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// The workflow that was run in it, if one was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<String>,
    /// Whether its Log has damaged lines.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub damaged: bool,
    /// Whether the user wants it at the top of lists. No Log tells that, so the index leaves it out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pinned: bool,
}

impl Summary {
    /// Folds the next Entry.
    pub fn take(&mut self, entry: &Entry) {
        if self.entries == 0 {
            self.id = entry.session_id.to_string();
            self.created = entry.ts;
        }
        self.entries += 1;
        self.last_activity = entry.ts;
        if entry.fact.is_conversation() {
            self.head = Some(entry.seq);
        }
        match &entry.fact {
            Fact::SessionStarted(it) => {
                self.workspace.clone_from(&it.workspace);
                self.parent = it.parent.as_ref().map(|parent| parent.session_id.clone());
                self.model = format!("{}/{}", it.provider, it.model);
            }
            Fact::SettingsChanged(it) => {
                if let (Some(provider), Some(model)) = (&it.provider, &it.model) {
                    self.model = format!("{provider}/{model}");
                }
                if let Some(workspace) = &it.workspace {
                    self.workspace.clone_from(workspace);
                }
                if let Some(name) = &it.name {
                    self.name = Some(name.clone()).filter(|n| !n.is_empty());
                }
            }
            Fact::UserMessage(it) => {
                self.turns += u32::from(it.delivery != Delivery::Steer);
                self.begin_with(&it.text);
            }
            Fact::UserCommand(it) => {
                self.turns += 1;
                // Models read titles too, and a `!!` command is hidden from them.
                self.begin_with(if it.send_to_model { &it.command } else { "a command" });
            }
            Fact::WorkflowEvent(event) if let WorkflowEvent::Planned(it) = &**event => {
                self.turns += u32::from(self.workflow.is_none());
                self.workflow = Some(it.name.clone());
                self.begin_with(&format!("workflow {}", it.name));
            }
            Fact::WorkflowEvent(event) if let WorkflowEvent::Resumed(_) = &**event => self.turns += 1,
            Fact::ToolCall(_) => self.tool_calls += 1,
            Fact::ProviderUsage(it) => {
                self.usage += it.usage;
                self.cost += it.cost;
            }
            Fact::SessionFork(it) => {
                self.forked_from = Some(it.parent_session_id.clone());
                self.forked_at = Some(it.forked_to_seq);
                self.family = Some(it.fork_root_session_id.clone());
            }
            Fact::HeadMoved(it) => self.head = it.to_seq,
            _ => {}
        }
    }

    fn begin_with(&mut self, text: &str) {
        if self.first_prompt.is_none() {
            // What follows the first paragraph is often a document that goes with the prompt.
            let first = text.trim_start().split("\n\n").next().unwrap_or(text);
            let line = first.split_whitespace().collect::<Vec<_>>().join(" ");
            self.first_prompt = Some(line.chars().take(MAX_PROMPT).collect());
        }
    }

    /// When the last Entry was recorded, to the minute.
    pub fn last_minute(&self) -> String {
        self.last_activity.strftime("%Y-%m-%d %H:%M").to_string()
    }

    /// The name or the first prompt.
    pub fn title(&self) -> &str {
        self.name.as_deref().or(self.first_prompt.as_deref()).unwrap_or("(no prompt)")
    }
}

/// A summary, and the position in the Log that it covers.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Indexed {
    pub position: Position,
    pub summary: Summary,
}

impl Indexed {
    /// Adds a line to the index in one write. A failure is only logged, because the index can be rebuilt from the Logs.
    pub fn keep(&self, folder: &Path) {
        keep(folder, std::slice::from_ref(self));
    }
}

fn keep(folder: &Path, fresh: &[Indexed]) {
    let lines: String = fresh.iter().filter_map(|it| serde_json::to_string(it).ok()).map(|line| line + "\n").collect();
    let path = folder.join(FILE);
    let options = fs::OpenOptions::new().append(true).create(true).mode(0o600).clone();
    let file = if path.exists() { regular::open(&path, &options) } else { options.open(&path) };
    if let Err(e) = file.and_then(|mut file| file.write_all(lines.as_bytes())) {
        tracing::warn!("the session index was not written: {e}");
    }
}

pub(super) fn ids_in(folder: &Path) -> Vec<SessionId> {
    named_like_logs(folder).into_iter().filter(|(file, _)| is_regular(file)).map(|(_, id)| id).collect()
}

/// Everything in a folder that is named like a Log and is no file: it is never opened.
pub(super) fn special_files(folder: &Path) -> Vec<PathBuf> {
    named_like_logs(folder).into_iter().map(|(file, _)| file).filter(|it| !is_regular(it)).map(|it| it.path()).collect()
}

fn named_like_logs(folder: &Path) -> Vec<(fs::DirEntry, SessionId)> {
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    let log = |file: fs::DirEntry| {
        let id = SessionId::parse(file.file_name().to_str()?.strip_suffix(".ndjson")?).ok()?;
        Some((file, id))
    };
    files.filter_map(log).collect()
}

/// A regular file, or a link to one. The folder itself has the kind of most files, so that most need no system call.
fn is_regular(file: &fs::DirEntry) -> bool {
    match file.file_type() {
        Ok(kind) if kind.is_symlink() => fs::metadata(file.path()).is_ok_and(|it| it.is_file()),
        Ok(kind) => kind.is_file(),
        Err(_) => false,
    }
}

/// All Sessions of a folder, the latest first.
pub(super) fn list(folder: &Path) -> Vec<Summary> {
    let (mut known, lines) = kept(folder);
    let mut all = Vec::new();
    let mut fresh = Vec::new();
    for id in ids_in(folder) {
        match brought_up(folder, &id, known.remove(id.as_str())) {
            Some(Line::Stands(it)) => all.push(it),
            Some(Line::Anew(it)) => {
                fresh.push(it.clone());
                all.push(it);
            }
            None => {}
        }
    }
    if lines > 2 * all.len() + 64 {
        let whole: String = all.iter().filter_map(|it| serde_json::to_string(it).ok()).map(|l| l + "\n").collect();
        if let Err(e) = write_whole(&folder.join(FILE), whole.as_bytes()) {
            tracing::warn!("the session index was not written: {e}");
        }
    } else if !fresh.is_empty() {
        keep(folder, &fresh);
    }
    let mut all: Vec<Summary> = all.into_iter().map(|it| with_pin(folder, it.summary)).collect();
    all.sort_by(|a, b| b.last_activity.cmp(&a.last_activity).then_with(|| b.id.cmp(&a.id)));
    all
}

/// Returns one Session of a folder, without reading any other Log.
pub(super) fn one(folder: &Path, id: &SessionId) -> Option<Summary> {
    let it = match brought_up(folder, id, kept(folder).0.remove(id.as_str()))? {
        Line::Stands(it) => it,
        Line::Anew(it) => {
            it.keep(folder);
            it
        }
    };
    Some(with_pin(folder, it.summary))
}

fn with_pin(folder: &Path, summary: Summary) -> Summary {
    let pinned = SessionId::parse(&summary.id).is_ok_and(|id| Place::new(folder, id).is_pinned());
    Summary { pinned, ..summary }
}

/// The summaries of the index by id, and the number of its lines.
fn kept(folder: &Path) -> (HashMap<String, Indexed>, usize) {
    let text = regular::read_to_string(&folder.join(FILE)).unwrap_or_default();
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Indexed>(line).ok());
    let mut count = 0;
    let known = lines.inspect(|_| count += 1).map(|it| (it.summary.id.clone(), it)).collect();
    (known, count)
}

/// Whether a summary of the index is current or was read from the Log.
enum Line {
    Stands(Indexed),
    Anew(Indexed),
}

fn brought_up(folder: &Path, id: &SessionId, old: Option<Indexed>) -> Option<Line> {
    let path = folder.join(format!("{id}.ndjson"));
    let len = fs::metadata(&path).ok()?.len();
    match old {
        Some(it) if it.position.bytes == len => Some(Line::Stands(it)),
        old => old.and_then(|old| read_on(&path, old)).or_else(|| rebuild(&path)).map(Line::Anew),
    }
}

/// Updates a summary from the lines that were appended since.
fn read_on(path: &Path, mut it: Indexed) -> Option<Indexed> {
    let (entries, position) = log::read_on(path, it.position).ok()??;
    entries.iter().for_each(|entry| it.summary.take(entry));
    it.position = position;
    it.summary.bytes = position.bytes;
    Some(it)
}

fn rebuild(path: &Path) -> Option<Indexed> {
    let contents = log::read(path).ok()?;
    let mut summary = Summary::default();
    contents.entries.iter().for_each(|entry| summary.take(entry));
    summary.damaged = !contents.damage.is_empty();
    let position = contents.position();
    summary.bytes = position.bytes;
    // A Log whose first line is unreadable still has its file name.
    summary.id = path.file_stem()?.to_str()?.to_owned();
    Some(Indexed { position, summary })
}
