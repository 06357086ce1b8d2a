//! Finds what is wrong with a Session and how to fix it, without changing anything.

use std::path::Path;

use serde::Serialize;

use conversation::history::History;
use protocol::error::{Code, ErrorBody, Result};
use protocol::event::{Fact, TurnStatus};
use protocol::remedy::{ModelNeed, Remedy};
use provider::choose::Providers;
use storage::blobs::Blobs;
use storage::log::{self, Log};
use storage::store::Place;

/// How serious a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Nothing is wrong.
    Ok,
    /// Worth knowing.
    Warn,
    /// The Session cannot continue like this.
    Fail,
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// How serious it is.
    pub level: Level,
    /// The part of the Session that it is about.
    pub about: &'static str,
    /// What is wrong, or that all is well.
    pub what: String,
    /// What to do, if anything.
    pub fix: Option<Remedy>,
}

/// All findings, and the next thing to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnosis {
    /// The Session's id.
    pub session_id: String,
    /// The findings.
    pub findings: Vec<Finding>,
    /// The fix of the most serious finding, or how to continue.
    pub next_action: Remedy,
}

/// Checks a Session's Log, lock, last Turn, files and Provider.
///
/// # Errors
/// `SESSION_NOT_FOUND`, `LOG_READ_FAILED`.
pub fn diagnose(place: &Place, blobs: &Blobs, providers: &Providers) -> Result<Diagnosis> {
    let id = place.id.as_str();
    let contents = log::read(&place.log())?;
    let mut it = Findings(Vec::new());
    match contents.damage.as_slice() {
        [] => it.ok("log", format!("{} entries; the chain proves every line", contents.entries.len())),
        damage => it.fail(
            "log",
            format!("{} damaged, the first is line {} ({})", lines(damage.len()), damage[0].line, damage[0].reason),
            Some(Remedy::Repair { id: id.to_owned() }),
        ),
    }
    if contents.torn > 0 {
        let what = format!("the last write was cut off ({} bytes)", contents.torn);
        it.warn("log end", what, Some("resume the session, which puts those bytes aside".into()));
    }
    let left = place.left_by_repairs();
    if !left.is_empty() {
        let names: Vec<String> =
            left.iter().filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned())).collect();
        it.ok("repairs", format!("kept by earlier repairs: {}", names.join(", ")));
    }
    look_at_lock(place, &contents, &mut it);
    let history = History::fold(contents.entries);
    look_at_turn(&history, id, &mut it);
    look_at_files(&history, place, blobs, &mut it);
    look_at_provider(&history, providers, &mut it);
    if let Some(what) = history.of_newer_build() {
        it.ok("version", what);
    }
    // The first of the most serious: earlier findings cause later ones.
    let worst = it.0.iter().filter(|f| f.level > Level::Ok && f.fix.is_some()).map(|f| f.level).max();
    let gravest = it.0.iter().find(|f| Some(f.level) == worst && f.fix.is_some());
    let next_action =
        gravest.and_then(|finding| finding.fix.clone()).unwrap_or_else(|| Remedy::Resume { id: id.to_owned() });
    Ok(Diagnosis { session_id: id.to_owned(), findings: it.0, next_action })
}

struct Findings(Vec<Finding>);

impl Findings {
    fn ok(&mut self, about: &'static str, what: String) {
        self.0.push(Finding { level: Level::Ok, about, what, fix: None });
    }

    fn warn(&mut self, about: &'static str, what: String, fix: Option<Remedy>) {
        self.0.push(Finding { level: Level::Warn, about, what, fix });
    }

    fn fail(&mut self, about: &'static str, what: String, fix: Option<Remedy>) {
        self.0.push(Finding { level: Level::Fail, about, what, fix });
    }
}

fn lines(n: usize) -> String {
    if n == 1 { "1 line is".into() } else { format!("{n} lines are") }
}

fn look_at_lock(place: &Place, contents: &log::Contents, it: &mut Findings) {
    // Opening the Log would repair its torn end, but a diagnosis changes nothing.
    if contents.torn > 0 || !contents.damage.is_empty() {
        return;
    }
    match Log::open(&place.log(), place.id.clone()) {
        Err(e) if e.code == Code::SessionLocked => it.warn("lock", e.message, Some(e.remedy)),
        Err(e) => it.fail("lock", e.message, Some(e.remedy)),
        Ok(_) => it.ok("lock", "no process has it open".into()),
    }
}

fn look_at_turn(history: &History, id: &str, it: &mut Findings) {
    let last =
        history.entries().iter().rev().find_map(|e| if let Fact::TurnEnded(it) = &e.fact { Some(it) } else { None });
    if history.turn_open {
        let what = format!("turn {} has no end: the process stopped during it, or still runs", history.turns);
        let running = it.0.iter().any(|f| f.about == "lock" && f.level == Level::Warn);
        let fix = if running {
            None
        } else {
            let look = "look at the files, which the turn may have changed".into();
            Some(Remedy::steps([look, Remedy::Resume { id: id.to_owned() }]))
        };
        let what = if running { format!("turn {} is running", history.turns) } else { what };
        return it.warn("last turn", what, fix);
    }
    match last {
        None => it.ok("last turn", "no turn yet".into()),
        Some(end) if end.status == TurnStatus::Completed => it.ok("last turn", "completed".into()),
        Some(end) => {
            let why = end.error.as_ref().map_or(String::new(), |e| format!(": {}", e.message));
            let fix = end.error.as_deref().map(ErrorBody::remedy).filter(|fix| !fix.is_empty());
            let fix = fix.unwrap_or_else(|| Remedy::Resume { id: id.to_owned() });
            it.warn("last turn", format!("{}{why}", end.status.name()), Some(fix));
        }
    }
}

fn look_at_files(history: &History, place: &Place, blobs: &Blobs, it: &mut Findings) {
    let workspace = Path::new(&history.settings.workspace);
    if workspace.as_os_str().is_empty() {
        it.warn("workspace", "the line that names it is lost".into(), None);
    } else if !workspace.is_dir() {
        let what = format!("the workspace {} does not exist", workspace.display());
        it.fail(
            "workspace",
            what,
            Some(Remedy::any_of(["put the folder back".into(), Remedy::OpenReadOnly { id: place.id.to_string() }])),
        );
    }
    let (mut changes, mut lost, mut unknown) = (0, 0, 0);
    for change in history.entries().iter().flat_map(|e| e.fact.all_changes()) {
        changes += 1;
        let names = [&change.before_blob, &change.after_blob].into_iter().flatten();
        lost += usize::from(names.into_iter().any(|name| !blobs.has(name)));
        let before_is_known = change.kind == protocol::event::ChangeKind::Created || change.before_blob.is_some();
        unknown += usize::from(!before_is_known);
    }
    match lost {
        0 => it.ok("files", format!("{changes} file changes; all versions are stored")),
        n => it.fail("files", format!("{n} changes name a version that is no longer stored"), None),
    }
    if unknown > 0 {
        let what = format!("{unknown} changes cannot be undone: the earlier content was not captured");
        it.warn("undo", what, None);
    }
    let overflow = history.entries().iter().filter_map(|e| match &e.fact {
        Fact::ToolResult(result) => result.overflow_path.as_deref(),
        _ => None,
    });
    let named = |path: &str| path.rsplit('/').next().map(|name| place.outputs().join(name));
    let gone = overflow.filter(|path| !named(path).is_some_and(|path| path.is_file())).count();
    if gone > 0 {
        it.warn("outputs", format!("{gone} saved outputs are no longer stored"), None);
    }
}

fn look_at_provider(history: &History, providers: &Providers, it: &mut Findings) {
    let settings = &history.settings;
    let (provider, model) = (&settings.provider, &settings.model);
    match providers.connect(provider) {
        Ok(_) => it.ok("provider", format!("{provider}/{model}, {}", providers.describe(provider))),
        Err(_) => it.warn(
            "provider",
            format!("{provider}, which answered last, is not configured here"),
            Some(Remedy::any_of([Remedy::CheckSetup, Remedy::ChooseModel { need: ModelNeed::Any }])),
        ),
    }
    let used = history.last_input.unwrap_or_else(|| history.estimated_tokens());
    if let Some(window) = providers.window(provider, model)
        && used * 100 > window * 85
    {
        let what = format!("{used} of {window} tokens are in use");
        it.warn("context", what, Some(Remedy::any_of([Remedy::Compact, "send a prompt, which compacts first".into()])));
    }
}
