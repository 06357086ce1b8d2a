//! What the model is told about where it is: the machine, the project, the repository, and what it may do.

use crate::git::{self, Git};
use crate::project::{Project, Purpose};
use files::workspace::Workspace;
use protocol::event::{ContextDocument, GitState, Mode, Surroundings, Toolset};
use storage::regular;

/// The longest name of the operating system, characters.
const MAX_NAME: usize = 60;

/// What pixir itself knows about a Session, without looking.
#[derive(Debug, Clone, Copy)]
pub struct Posture {
    pub mode: Mode,
    pub toolset: Toolset,
    /// A user can answer approvals and questions.
    pub attended: bool,
}

impl Posture {
    /// The surroundings with this state of the repository.
    pub fn with(self, git: Option<GitState>) -> Surroundings {
        let Posture { mode, toolset, attended } = self;
        Surroundings { mode, toolset, attended, git, role: None, roles: None, folders: None }
    }
}

/// The document that tells of the environment, and the part of it that can change.
pub fn collect(
    workspace: &Workspace,
    variables: &[(String, String)],
    posture: Posture,
) -> (ContextDocument, Surroundings) {
    let git = Git::of(workspace.root());
    let surroundings = posture.with(git.as_ref().map(Git::state));
    let project = Project::of(workspace);
    let mut lines = vec![
        format!("workspace: {}", workspace.root().display()),
        format!("os: {}", system()),
        "shell: bash".to_owned(),
        format!("date: {}", today(variables)),
    ];
    match (&surroundings.git, &git) {
        (Some(state), Some(git)) => {
            lines.push(format!("git: {}", git::line(state)));
            let commits = git.commits();
            if !commits.is_empty() {
                lines.push("last commits:".to_owned());
                lines.extend(commits.into_iter().map(|commit| format!("  {commit}")));
            }
        }
        _ => lines.push("git: pixir can read no repository here".to_owned()),
    }
    if !project.languages.is_empty() {
        lines.push(format!("languages: {}", project.languages.join(", ")));
    }
    let tests = project.commands_for(Purpose::Test);
    if !tests.is_empty() {
        lines.push(format!("usual tests: {tests} (pixir concludes this from the names of files)"));
    }
    lines.push(format!("mode: {}", mode(surroundings.mode)));
    lines.push(format!("toolset: {}", surroundings.toolset.name()));
    lines.push(format!("user: {}", attendance(surroundings.attended)));
    (ContextDocument { source: "environment".into(), text: lines.join("\n") }, surroundings)
}

/// The repository of a workspace, as it is now.
pub fn git_state(root: &std::path::Path) -> Option<GitState> {
    Git::of(root).map(|git| git.state())
}

/// What the model is told where its surroundings are not what it was told before. Empty if they are.
pub fn changes(before: &Surroundings, now: &Surroundings) -> Vec<ContextDocument> {
    let mut documents = Vec::new();
    let mut tell = |source: &str, text: String| documents.push(ContextDocument { source: source.to_owned(), text });
    if before.mode != now.mode {
        tell("mode", mode(now.mode).to_owned());
    }
    if before.toolset != now.toolset {
        let text = match now.toolset {
            Toolset::None => "none: answer in words from here on, because no call will run".to_owned(),
            now => format!("{}: from here on, use the tools of this request", now.name()),
        };
        tell("toolset", text);
    }
    if before.attended != now.attended {
        tell("user", attendance(now.attended).to_owned());
    }
    if before.git != now.git {
        tell("git", now.git.as_ref().map_or_else(|| "pixir can read no repository here".to_owned(), git::line));
    }
    if before.roles != now.roles {
        tell(
            "roles",
            now.roles.clone().unwrap_or_else(|| {
                "agents can have the roles explorer, reviewer, tester and worker, and no others".to_owned()
            }),
        );
    }
    if before.folders != now.folders {
        let text = now.folders.as_ref().map_or_else(
            || "the workspace is the only folder that may be changed now".to_owned(),
            |folders| format!("{}\n{folders}", crate::folders::OTHERS),
        );
        tell("folders", text);
    }
    documents
}

const fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::ReadOnly => "read-only: you may look, and pixir refuses what would change something",
        Mode::Ask => "ask: what changes something needs the user's approval, or a rule of the user that allows it",
        Mode::Auto => "auto: calls run without asking the user, except for changes of protected files",
    }
}

const fn attendance(attended: bool) -> &'static str {
    if attended { "a user can answer your questions and approve calls" } else { "no user can answer" }
}

/// The operating system with its release.
fn system() -> String {
    let kernel = rustix::system::uname();
    let kernel = format!("{} {}", kernel.sysname().to_string_lossy(), kernel.release().to_string_lossy());
    let release = regular::read_to_string("/etc/os-release".as_ref()).unwrap_or_default();
    let name = release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    match name.map(|name| name.trim_matches(['"', '\''])) {
        Some(name) => {
            format!("{} ({kernel}, {})", name.chars().take(MAX_NAME).collect::<String>(), std::env::consts::ARCH)
        }
        None => format!("{kernel}, {}", std::env::consts::ARCH),
    }
}

/// The date here. Where no variable names a time zone, the rules of this machine's own are in one file; to learn their
/// name, jiff would walk the whole database of zones.
fn today(variables: &[(String, String)]) -> jiff::civil::Date {
    let is_named = variables.iter().any(|(name, value)| name == "TZ" && !value.is_empty());
    let rules = if is_named { None } else { std::fs::read("/etc/localtime").ok() };
    match rules.and_then(|rules| jiff::tz::TimeZone::tzif("local", &rules).ok()) {
        Some(zone) => jiff::Timestamp::now().to_zoned(zone).date(),
        None => jiff::Zoned::now().date(),
    }
}
